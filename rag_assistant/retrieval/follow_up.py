"""Tell whether a question leans on what was said before it, and on what: pure, without a model and in any language.

A question of a conversation is compared with two things: the exchanges before it, and the best chunk of the library.
A question that stands alone is much nearer to the library than to whatever was said before; one that leans is not
("And for boats?" is near to nothing). No list of pronouns tells that one leans. Words that neither the library nor the
conversation has tell that it does not: what was said before has no answer to them. Every figure here lies on a plateau
that was measured on mtrag, doc2dial, cranfield, cacm, covidqa and xquad (docs/retrieval-benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from rag_assistant.retrieval.tokenize import content_words, search_words

Exchange = tuple[str, str]

# What of the past a question can lean on: its last questions, and where the last answer begins.
QUESTIONS = 3
ANSWER_CHARACTERS = 120

# The context counts 0.8 where the conversation is as near as the library, and 0.15 less for each 0.1 that it is
# farther; under 0.4 the question stands alone, and so it does when nothing in the conversation is near to it at all.
MAX_SHARE = 0.8
MIN_SHARE = 0.4
SHARE_LOST = 1.5
MIN_SIMILARITY = 0.1
# A question of one telling word leans unless the library is that much nearer.
ONE_WORD_DISTANCE = 0.5
# One of two telling words leans if it is near to nothing in the library either ("And which setting changes that?").
FEW_CONTENT_WORDS = 2
NEAR_TO_NOTHING = 0.3

# A question of which so many telling words stand neither in the library nor in the conversation stands alone.
# But with one of these words it points back, whatever it asks ("Where is it stored?").
MIN_STRANGE_SHARE = 0.5
PRONOUNS = frozenset(
    "it its that this these those they them their he him his she her "
    "dies diese dieser dieses davon damit dafür daran er ihn ihr".split()
)
POINTING_BACK = PRONOUNS | frozenset("there one ones es das sie dort".split())

# A question of nothing but these has no words that tell what it is about. With one of the first it asks for something
# else than what was said; with a pronoun, one telling word is not enough where nothing was said.
SOMETHING_ELSE = frozenset("other others another else andere anderen anderer anderes sonst".split())
TELLING_NOTHING = (
    POINTING_BACK
    | SOMETHING_ELSE
    | frozenset(
        "more same thing things kind way example examples detail details tell mean mehr genau noch auch und aber was "
        "wie wo wann warum wieso wer welche welcher welches ist sind war der die den dem ein eine einen mit von "
        "für".split()
    )
)

# Without vectors: a question of so few words, or with such a share of its words in the context, leans a little less.
FEW_WORDS = 3
SHARED_WORDS = 0.25
SHARE_BY_WORDS = 0.6


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search with: the question as asked, and what it leans on, which counts ``share`` beside it.

    A question that stands alone has no context.
    """

    text: str
    context: str = ""
    share: float = 0.0

    @property
    def is_follow_up(self) -> bool:
        """Whether the question needs what was said before it."""
        return bool(self.context)


@dataclass(frozen=True, slots=True)
class Similarity:
    """How near a question is to the conversation before it, and to the best chunk of the library: cosines."""

    conversation: float
    library: float


def search_query(
    question: str,
    exchanges: Sequence[Exchange],
    similarity: Similarity | None = None,
    unknown: Set[str] = frozenset(),
) -> SearchQuery:
    """Return what to search with after some exchanges (question and answer each, the oldest first).

    Without ``similarity`` (no embedding model, or one that does not know the language) the words decide. ``unknown``
    are the words of the question that no document has: where the conversation does not have them either, they are
    about something else, and what was said before would only find what was found before.
    """
    context = context_of(exchanges)
    if not context or _is_about_something_else(question, context, unknown):
        return SearchQuery(question)
    share = _share_by_words(question, context) if similarity is None else _share(question, similarity)
    return SearchQuery(question, context, share) if share else SearchQuery(question)


def is_unclear(question: str, exchanges: Sequence[Exchange]) -> bool:
    """Tell whether neither a question nor what was said before it tells what it is about ("And the other one?").

    Of questions that stand alone at most 0.6 % are told to be so (docs/retrieval-benchmarks.md).
    """
    words = set(search_words(question))
    telling = sum(word not in TELLING_NOTHING for word in content_words(question))
    if context_of(exchanges):
        return not telling and not SOMETHING_ELSE.isdisjoint(words)
    return not telling or (telling == 1 and not PRONOUNS.isdisjoint(words))


def context_of(exchanges: Sequence[Exchange]) -> str:
    """Return what a question can lean on, as one text; empty at the beginning of a conversation."""
    asked = [question.strip() for question, _ in exchanges[-QUESTIONS:]]
    answer = exchanges[-1][1].strip()[:ANSWER_CHARACTERS] if exchanges else ""
    return " ".join(part for part in [*asked, answer] if part)


def compared_with(exchanges: Sequence[Exchange]) -> list[str]:
    """Return the texts of a conversation of which the nearest one says how near the whole is to a question."""
    parts = (exchanges[-1][0].strip(), context_of(exchanges)) if exchanges else ()
    return list(dict.fromkeys(part for part in parts if part))


def _is_about_something_else(question: str, context: str, unknown: Set[str]) -> bool:
    strange = unknown - set(search_words(context)) - TELLING_NOTHING
    if not POINTING_BACK.isdisjoint(search_words(question)):
        return False
    return bool(strange) and len(strange) >= MIN_STRANGE_SHARE * len(content_words(question))


def _share(question: str, similarity: Similarity) -> float:
    content = len(content_words(question))
    distance = similarity.library - similarity.conversation
    lost = content <= FEW_CONTENT_WORDS and similarity.library < NEAR_TO_NOTHING
    if content == 0 or lost or (content == 1 and distance < ONE_WORD_DISTANCE):
        return MAX_SHARE
    share = min(MAX_SHARE, 1 - SHARE_LOST * distance)
    return share if share >= MIN_SHARE and similarity.conversation >= MIN_SIMILARITY else 0.0


def _share_by_words(question: str, context: str) -> float:
    words = search_words(question)
    content = content_words(question)
    if len(words) <= FEW_WORDS or not content:
        return SHARE_BY_WORDS
    context_words = set(search_words(context))
    return SHARE_BY_WORDS if sum(word in context_words for word in content) >= SHARED_WORDS * len(content) else 0.0
