"""How likely a question depends on the conversation: a dozen features with learned weights. Pure.

bench/retrieval/leaning.py learned the tables, and measures them on held-out conversations.
"""

import re
from collections.abc import Sequence
from math import exp

from msgspec import Struct

from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.tokenize import content_words, search_words, stem

# How many of the question's best chunks are looked up among the context's, and the reverse.
LOOKED_AT = 10
MAX_TELLING = 8
GOES_ON = re.compile(
    r"\s*(and|but|so|or|also|then|what about|how about|und|aber|oder|auch|was ist mit)\b", re.IGNORECASE
)

PRONOUNS = frozenset(
    "it its that this these those they them their he him his she her "
    "dies diese dieser dieses davon damit dafür daran er ihn ihr".split()
)
POINTING_BACK = PRONOUNS | frozenset("there one ones es das sie dort".split())
# A question of only these has no content words. With one of the first it asks for something else than before; with a
# pronoun, one content word isn't enough without a context.
SOMETHING_ELSE = frozenset("other others another else andere anderen anderer anderes sonst".split())
TELLING_NOTHING = (
    POINTING_BACK
    | SOMETHING_ELSE
    | frozenset(
        "more same thing things kind way example examples detail details tell mean since until ago "
        "seit bis mehr genau noch auch und aber was "
        "wie wo wann warum wieso wer welche welcher welches ist sind war der die den dem ein eine einen mit von "
        "für".split()
    )
)

WEIGHTS = {
    "constant": -0.212,
    "last_question": -0.817,
    "context": -0.233,
    "library": -2.804,
    "context_library": 3.986,
    "question_misses": 1.908,
    "context_misses": 1.138,
    "gap": -5.835,
    "telling": -0.128,
    "tells_nothing": 2.008,
    "pronoun": 0.204,
    "goes_on": 1.862,
    "shared": 0.772,
}
# The same before a context is embedded: predicts WEIGHTS from the questions alone.
WEIGHTS_BY_QUESTIONS = {
    "constant": 0.311,
    "last_question": -0.837,
    "context": 0.852,
    "library": -2.950,
    "context_library": 3.229,
    "question_misses": 1.549,
    "context_misses": 0.652,
    "gap": -5.052,
    "telling": -0.172,
    "tells_nothing": 2.130,
    "pronoun": 0.357,
    "goes_on": 1.851,
    "shared": 0.778,
}


class Similarity(Struct, frozen=True):
    """What vectors say about a question: its cosines to the last question and to the whole context, and the library's
    chunks nearest to it and to the context, nearest first.

    With ``by_questions``, the sum of the earlier questions' vectors replaces the context's.
    """

    last_question: float
    context: float
    library: Sequence[Hit]
    context_library: Sequence[Hit]
    by_questions: bool = False


def leaning(question: str, context: str, similarity: Similarity) -> float:
    """Return the weight of the context, from 0 to 1, relative to the question's 1."""
    weights = WEIGHTS_BY_QUESTIONS if similarity.by_questions else WEIGHTS
    figures = features(question, context, similarity)
    return 1 / (1 + exp(-weights["constant"] - sum(weights[name] * value for name, value in figures.items())))


def features(question: str, context: str, similarity: Similarity) -> dict[str, float]:
    """Return the features by name."""
    words, content = search_words(question), content_words(question)
    telling = [word for word in content if word not in TELLING_NOTHING]
    context_words = set(map(stem, search_words(context)))
    own, others = similarity.library, similarity.context_library
    return {
        "last_question": similarity.last_question,
        "context": similarity.context,
        "library": _best(own),
        "context_library": _best(others),
        # The question's chunks are far from the context, and the reverse.
        "question_misses": _missed(others, own),
        "context_misses": _missed(own, others),
        # How much nearer the best chunk is than others.
        "gap": _best(own) - own[min(LOOKED_AT, len(own) - 1)][1] if own else 0.0,
        "telling": min(len(telling), MAX_TELLING),
        "tells_nothing": float(not telling),
        "pronoun": float(not PRONOUNS.isdisjoint(words)),
        "goes_on": float(GOES_ON.match(question) is not None),
        "shared": sum(stem(word) in context_words for word in content) / len(content) if content else 1.0,
    }


def _best(hits: Sequence[Hit]) -> float:
    return hits[0][1] if hits else 0.0


def _missed(hits: Sequence[Hit], others: Sequence[Hit]) -> float:
    """Return how far the first of the ``others`` fall behind the best of the ``hits``, by the scores of these."""
    if not hits:
        return 0.0
    scores = dict(hits)
    return hits[0][1] - max([scores.get(one, hits[-1][1]) for one, _ in others[:LOOKED_AT]], default=hits[-1][1])
