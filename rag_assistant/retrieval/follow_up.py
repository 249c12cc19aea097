"""Decide whether a question depends on the conversation before it, and on what. Pure, without a model, in any language.

The weight of the context is learned: a dozen features, whose weights (follow_up.json) bench/retrieval/leaning.py
learned and measures on held-out conversations. A question with words that are neither in the library nor in the
conversation doesn't depend on it: the conversation has no answer to them.
"""

import re
from collections.abc import Sequence, Set
from itertools import pairwise
from math import exp
from pkgutil import get_data

from msgspec import Struct
from msgspec.json import decode as from_json

from rag_assistant.records import Exchange
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.tokenize import content_words, search_words, stem

# How many of the question's best chunks are looked up among the context's, and the reverse.
LOOKED_AT = 10
MAX_TELLING = 8
_DATA = from_json(get_data(str(__package__), "follow_up.json") or b"")
# "What is the rent, and who is to be called?" are two questions; "between when it begins and when it ends" is one.
# "What did I say after we talked about the boiler?" asks for the turn beside the one with these words.
GOES_ON, TWO_QUESTIONS, SAID, AFTER, BEFORE = (
    re.compile(_DATA["patterns"][name], re.IGNORECASE | re.DOTALL)
    for name in ("goes_on", "two_questions", "said", "after", "before")
)
# The second predicts the first from the questions alone, before a context is embedded.
WEIGHTS, WEIGHTS_BY_QUESTIONS = _DATA["weights"], _DATA["weights_by_questions"]
PRONOUNS = frozenset(_DATA["pronouns"].split())
POINTING_BACK = PRONOUNS.union(_DATA["pointing_back"].split())
# A question of only these has no content words. With one of the first it asks for something else than before; with a
# pronoun, one content word isn't enough without a context.
SOMETHING_ELSE = frozenset(_DATA["something_else"].split())
TELLING_NOTHING = POINTING_BACK | SOMETHING_ELSE.union(_DATA["telling_nothing"].split())


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


# What a question can depend on: the last questions, and the beginning of the last answer.
QUESTIONS = 3
ANSWER_CHARACTERS = 120
# About the embedding model's limit. The longest of 1,966 in mtrag and doc2dial has 656.
MAX_CONTEXT_CHARACTERS = 1_000

# Below this the question is standalone.
MIN_SHARE = 0.5
# The minimum for a question without a content word.
SHARE_WITHOUT_WORDS = 0.8

# A question with this many content words that are neither in the library nor in the conversation is standalone. But a
# pronoun refers back, whatever it asks ("Where is it stored?").
MIN_STRANGE_SHARE = 0.5

# Without vectors: a question with this few words, or this share of its words in the context, depends a little less.
FEW_WORDS = 3
SHARED_WORDS = 0.25
SHARE_BY_WORDS = 0.6


# The end of a question. Each is searched separately, up to this many.
QUESTION_END = re.compile(r"\?(?=\s|$)|[\uff1f\u061f](?![\uff1f\u061f])")
MAX_PARTS = 3


class SearchQuery(Struct, frozen=True):
    """A search: the question, and the context, weighted with ``share``.

    A standalone question has no context, though its ``leaning``, from 0 to 1, may say that it is only just standalone.
    ``nearest`` are the chunks nearest to the text and to the context, if known already. ``before`` is the last
    question.
    """

    text: str
    context: str = ""
    share: float = 0.0
    leaning: float = 0.0
    nearest: tuple[Sequence[Hit], ...] = ()
    before: str = ""

    @property
    def is_follow_up(self) -> bool:
        """Whether the question needs the conversation before it."""
        return bool(self.context)


def search_query(question: str, exchanges: Sequence[Exchange], similarity: Similarity | None = None) -> SearchQuery:
    """Return the search query of a question after some exchanges (question and answer each, oldest first).

    Without ``similarity`` (no embedding model, or one that doesn't know the language) words decide.
    """
    context = context_of(exchanges)
    best_scores = () if similarity is None else (similarity.library, similarity.context_library)
    if not context:
        return SearchQuery(question)
    share = _share_by_words(question, context) if similarity is None else share_of(question, context, similarity)
    if share < MIN_SHARE:
        return SearchQuery(question, leaning=share, nearest=best_scores[:1], before=last_question(exchanges))
    return SearchQuery(question, context, share, share, best_scores, last_question(exchanges))


def share_of(question: str, context: str, similarity: Similarity) -> float:
    """Return the weight of the context, by vectors and words."""
    # "And in 2023?" says when, not what.
    tells = not TELLING_NOTHING.issuperset(word for word in content_words(question) if not word.isdigit())
    return max(leaning(question, context, similarity), 0.0 if tells else SHARE_WITHOUT_WORDS)


def is_unclear(question: str, exchanges: Sequence[Exchange]) -> bool:
    """Return whether neither a question nor the conversation says what it is about ("And the other one?").

    Of standalone questions at most 0.6 % are misjudged (bench/retrieval/README.md).
    """
    words = set(search_words(question))
    telling = sum(word not in TELLING_NOTHING for word in content_words(question))
    if context_of(exchanges):
        return not telling and not SOMETHING_ELSE.isdisjoint(words)
    return not telling or (telling == 1 and not PRONOUNS.isdisjoint(words))


def parts_of(query: SearchQuery) -> list[SearchQuery]:
    """Return each of several questions in one, with the one before as context if it refers back; otherwise nothing."""
    text = query.text.strip()
    match = TWO_QUESTIONS.fullmatch(text)
    ends = [0, *(end.end() for end in QUESTION_END.finditer(text))]
    texts = list(match.groups()) if match else [text[one:other].strip() for one, other in pairwise(ends)]
    if query.is_follow_up or not 1 < len(texts) <= MAX_PARTS or not all(map(content_words, texts)):
        return []
    points_back = (not PRONOUNS.isdisjoint(search_words(one)) for one in texts[1:])
    return [SearchQuery(texts[0])] + [
        SearchQuery(one, before, SHARE_BY_WORDS) if leans else SearchQuery(one)
        for (before, one), leans in zip(pairwise(texts), points_back, strict=True)
    ]


def beside_which(question: str) -> tuple[str, int]:
    """Return what a question asks about, and which turn it wants: 1 is the one after that, -1 before, 0 that one."""
    which = 1 if AFTER.search(question) else -1 if BEFORE.search(question) else 0
    if not which or not SAID.search(question):
        return question, 0
    return SAID.sub("", AFTER.sub("", BEFORE.sub("", question))), which


def last_question(exchanges: Sequence[Exchange]) -> str:
    """Return the last question, or else the context."""
    return exchanges[-1][0].strip() or context_of(exchanges)


def context_of(exchanges: Sequence[Exchange]) -> str:
    """Return the context that a question can depend on, as one text; empty at the start of a conversation.

    Of a long text, such as a file pasted into a question, the end counts.
    """
    answer = exchanges[-1][1].strip()[:ANSWER_CHARACTERS] if exchanges else ""
    return " ".join(part for part in [*questions_before(exchanges), answer] if part)[-MAX_CONTEXT_CHARACTERS:]


def questions_before(exchanges: Sequence[Exchange]) -> list[str]:
    """Return the last questions, the oldest first."""
    return [text for question, _ in exchanges[-QUESTIONS:] if (text := question.strip())]


def is_about_something_else(question: str, context: str, unknown: Set[str]) -> bool:
    """Return whether half of a question's content words are neither in the library nor in the conversation.

    ``unknown`` are its words that no document has. The context would only find what was found before.
    """
    strange = unknown - set(search_words(context)) - TELLING_NOTHING
    if not POINTING_BACK.isdisjoint(search_words(question)):
        return False
    return bool(strange) and len(strange) >= MIN_STRANGE_SHARE * len(content_words(question))


def _share_by_words(question: str, context: str) -> float:
    words = search_words(question)
    content = content_words(question)
    if len(words) <= FEW_WORDS or not content:
        return SHARE_BY_WORDS
    context_words = set(search_words(context))
    return SHARE_BY_WORDS if sum(word in context_words for word in content) >= SHARED_WORDS * len(content) else 0.0
