"""Which passages are sent: reranked if there is a model, without duplicates, adjacent ones joined, within a budget."""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

from msgspec.structs import replace

from rag_assistant.history import estimate_tokens
from rag_assistant.records import Note, Passage, Source, lead_of
from rag_assistant.records.errors import RerankerFailed
from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.retrieval.tokenize import search_words
from rag_assistant.retrieval.versions import are_versions

log = logging.getLogger(__name__)

# Returns the indexes of texts, the best answer to a question first. Raises RerankerFailed.
Rerank = Callable[[str, Sequence[str]], list[int]]

MAX_RERANKED = 50
# After a failure the model isn't used for a while: each question would wait for it again.
COOLDOWN_SECONDS = 30.0


class Reranking:
    """Uses a reranking model. If it fails, the order is unchanged."""

    def __init__(self, rerank: Rerank | None) -> None:
        self.model = rerank
        self._rests_until = 0.0

    @property
    def candidates(self) -> int:
        """How many passages the model wants to see; 0 without one."""
        return MAX_RERANKED if self.model is not None else 0

    @property
    def failing(self) -> bool:
        """Whether the model failed a moment ago."""
        return time.monotonic() < self._rests_until

    def best_first(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages, the best answer to a question first."""
        if self.model is None or self.failing or len(passages) < 2:
            return list(passages)
        texts = [indexed_text(one.document, one.section, one.text) for one in passages[:MAX_RERANKED]]
        try:
            order = self.model(query, texts)
        except RerankerFailed as error:
            log.warning("The passages stay in the order of the search: %s", error)
            self._rests_until = time.monotonic() + COOLDOWN_SECONDS
            return list(passages)
        return [passages[index] for index in order] + list(passages[MAX_RERANKED:])


Item = TypeVar("Item")
Sized = TypeVar("Sized", Passage, Source, Note)

# Two passages are duplicates if they share this much of their words: the same page saved twice, with another date.
SAME = 0.9
MAX_COPIES, MAX_VERSIONS, HAS_DIGIT = 2, 4, re.compile(r"\d")
# The separator between two passages, counted with each of them.
TOKENS_BETWEEN = 4


def distinct(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Yield the passages without duplicates of a better one: each text once per document, twice in the library.

    The best come first, of a document's versions that differ by a figure up to four. A paragraph in several documents
    is taken from two of them, as it is unknown which one is meant: with one copy only, doc2dial loses 0.05 of the right
    documents.
    """
    better: list[tuple[Passage, frozenset[str]]] = []
    for passage in passages:
        vocabulary = frozenset(search_words(passage.text))
        alike = [(one, other) for one, other in better if len(vocabulary & other) >= SAME * len(vocabulary | other)]
        copies = [
            one
            for one, other in alike
            if not (are_versions(one, passage) and any(map(HAS_DIGIT.search, vocabulary ^ other)))
        ]
        is_new = passage.document_id not in {one.document_id for one, _ in alike}
        if is_new and len(copies) < MAX_COPIES and len(alike) < MAX_VERSIONS:
            better.append((passage, vocabulary))
            yield passage


def in_turn(rankings: Iterable[Iterable[Item]]) -> Iterator[Item]:
    """Yield the best of each ranking, then the second of each, and so on."""
    return (item for items in zip_longest(*rankings) for item in items if item is not None)


def within_budget(passages: Sequence[Sized], budget_tokens: int | None) -> list[Sized]:
    """Return the passages that fit into a budget together, always with the first; one that does not fit is skipped."""
    if budget_tokens is None:
        return list(passages)
    fitting: list[Sized] = []
    left = budget_tokens
    for passage in passages:
        tokens = estimate_tokens(passage.text) + TOKENS_BETWEEN
        if tokens <= left or not fitting:
            fitting.append(passage)
            left -= tokens
    return fitting


def joined(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages, joining adjacent ones on one page of a document, in the better one's place."""
    best_first = {passage.chunk_id: rank for rank, passage in enumerate(passages)}
    result: list[Passage] = []
    for passage in sorted(passages, key=lambda one: (one.document_id, one.start)):
        both = _join(result[-1], passage, best_first) if result else None
        if both is None:
            result.append(passage)
        else:
            result[-1] = both
    return sorted(result, key=lambda one: best_first[one.chunk_id])


def number_sources(passages: Sequence[Passage], first: int = 1) -> tuple[Source, ...]:
    """Return the passages as sources, numbered from ``first`` in order."""
    common = [name for name in Source.__struct_fields__ if name in Passage.__struct_fields__ and name != "score"]
    return tuple(
        Source(n=n, score=round(passage.score, 4), **{name: getattr(passage, name) for name in common})
        for n, passage in enumerate(passages, first)
    )


def _join(first: Passage, second: Passage, best_first: dict[int, int]) -> Passage | None:
    """Return two passages joined, with the id and score of the better; ``None`` if they aren't adjacent."""
    if second.gap is None or (first.document_id, first.end + len(second.gap)) != (second.document_id, second.start):
        return None
    better = min(first, second, key=lambda one: best_first[one.chunk_id])
    # Only the first one keeps its introduction.
    lead = lead_of(second.text, second.start, second.end)
    text = first.text + second.gap + second.text.removeprefix(lead)
    return replace(better, start=first.start, end=second.end, text=text, gap=first.gap)
