"""Tell whether a question leans on the conversation before it, and on what. Pure, without a model, in any language.

How much the context counts beside the question is learnt (leaning.py). Words that neither the library nor the
conversation has tell that a question leans on nothing: what was said before has no answer to them.
"""

import re
from collections.abc import Sequence, Set
from itertools import pairwise

from msgspec import Struct

from rag_assistant.records import Exchange
from rag_assistant.retrieval.hybrid import Hit
from rag_assistant.retrieval.leaning import (
    POINTING_BACK,
    PRONOUNS,
    SOMETHING_ELSE,
    TELLING_NOTHING,
    Similarity,
    leaning,
)
from rag_assistant.retrieval.tokenize import content_words, search_words

# What of the past a question can lean on: its last questions, and where the last answer begins.
QUESTIONS = 3
ANSWER_CHARACTERS = 120
# About what the embedding model reads at once. The longest of 1,966 in mtrag and doc2dial has 656.
MAX_CONTEXT_CHARACTERS = 1_000

# Below it the question stands alone.
MIN_SHARE = 0.5
# A question that has no telling word leans at least so much.
SHARE_WITHOUT_WORDS = 0.8

# A question of which so many content words stand neither in the library nor in the conversation stands alone.
# But with a pronoun it points back, whatever it asks ("Where is it stored?").
MIN_STRANGE_SHARE = 0.5

# Without vectors: a question of so few words, or with such a share of its words in the context, leans a little less.
FEW_WORDS = 3
SHARED_WORDS = 0.25
SHARE_BY_WORDS = 0.6


# "What is the rent, and who is to be called?" are two questions; "between when it begins and when it ends" is one.
TWO_QUESTIONS = re.compile(
    r"(\W*(?:who|what|when|where|which|how|why|is|are|do|does|can|may|must)\b(?:(?!\bbetween\b).){8,}?)[?,;]? and "
    r"((?:(?:by|until|since|from|for|to|at|in|on) )?(?-i:who|whom|whose|what|when|where|which|how|why)\b.{4,})",
    re.IGNORECASE | re.DOTALL,
)
# Where a question ends. Each is searched by itself, up to so many.
QUESTION_END = re.compile(r"\?(?=\s|$)|[\uff1f\u061f](?![\uff1f\u061f])")
MAX_PARTS = 3


class SearchQuery(Struct, frozen=True):
    """What to search with: the question as asked, and what it leans on, which counts ``share`` beside it.

    A question that stands alone has no context, though its ``leaning``, from 0 to 1, may say that it hardly does.
    ``nearest`` are the chunks nearest to the text and to the context, where they are known already.
    """

    text: str
    context: str = ""
    share: float = 0.0
    leaning: float = 0.0
    nearest: tuple[Sequence[Hit], ...] = ()

    @property
    def is_follow_up(self) -> bool:
        """Whether the question needs what was said before it."""
        return bool(self.context)


def search_query(
    question: str,
    exchanges: Sequence[Exchange],
    similarity: Similarity | None = None,
) -> SearchQuery:
    """Return the search query of a question after some exchanges (question and answer each, oldest first).

    Without ``similarity`` (no embedding model, or one that does not know the language) the words decide.
    """
    context = context_of(exchanges)
    best_scores = () if similarity is None else (similarity.library, similarity.context_library)
    if not context:
        return SearchQuery(question)
    share = _share_by_words(question, context) if similarity is None else share_of(question, context, similarity)
    if share < MIN_SHARE:
        return SearchQuery(question, leaning=share, nearest=best_scores[:1])
    return SearchQuery(question, context, share, share, best_scores)


def share_of(question: str, context: str, similarity: Similarity) -> float:
    """Return how much the context counts beside a question, by vectors and words."""
    tells = not TELLING_NOTHING.issuperset(content_words(question))
    return max(leaning(question, context, similarity), 0.0 if tells else SHARE_WITHOUT_WORDS)


def is_unclear(question: str, exchanges: Sequence[Exchange]) -> bool:
    """Tell whether neither a question nor what was said before it tells what it is about ("And the other one?").

    Of questions that stand alone at most 0.6 % are told to be so (bench/retrieval/README.md).
    """
    words = set(search_words(question))
    telling = sum(word not in TELLING_NOTHING for word in content_words(question))
    if context_of(exchanges):
        return not telling and not SOMETHING_ELSE.isdisjoint(words)
    return not telling or (telling == 1 and not PRONOUNS.isdisjoint(words))


def parts_of(query: SearchQuery) -> list[SearchQuery]:
    """Return several questions in one as each of them, leaning on the one before where it points back; else none."""
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


def last_question(exchanges: Sequence[Exchange]) -> str:
    """Return the last question, or else the context."""
    return exchanges[-1][0].strip() or context_of(exchanges)


def context_of(exchanges: Sequence[Exchange]) -> str:
    """Return the context that a question can lean on, as one text; empty at the beginning of a conversation.

    Of what is long, such as a file that was pasted into a question, the end counts.
    """
    answer = exchanges[-1][1].strip()[:ANSWER_CHARACTERS] if exchanges else ""
    return " ".join(part for part in [*questions_before(exchanges), answer] if part)[-MAX_CONTEXT_CHARACTERS:]


def questions_before(exchanges: Sequence[Exchange]) -> list[str]:
    """Return the last questions, the oldest first."""
    return [text for question, _ in exchanges[-QUESTIONS:] if (text := question.strip())]


def is_about_something_else(question: str, context: str, unknown: Set[str]) -> bool:
    """Tell whether neither the library nor the conversation has half of the words that a question is about.

    ``unknown`` are its words that no document has. What was said before would only find what was found before.
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
