"""Read in the sources of a question: sentences to quote, tables, and all sections of their documents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from rag_assistant.records import Passage, Source
from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.follow_up import SearchQuery, parts_of
from rag_assistant.retrieval.quotes import (
    MAX_TEXT_CHARS,
    Compare,
    Quote,
    SourceTable,
    choose_quotes,
    from_tables,
    nearest_range,
    tables_in,
)
from rag_assistant.retrieval.tables import MARKED

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.vector_search import ServingVectors, VectorSearch
    from rag_assistant.storage.documents.chunks import ChunkStore

log = logging.getLogger(__name__)
Chosen = TypeVar("Chosen")

# How many quotes answer each part of a question.
QUOTES_OF_PART = 2
# How many tables a model is asked to query.
MAX_TABLES = 3
# If a model sees only single letters of a text, its vectors say nothing at all.
MIN_KNOWN_PIECES = 0.5


class SourceReader(Struct, frozen=True):
    """Reads the documents of the sources that a search found."""

    chunks: ChunkStore
    vectors: VectorSearch

    def quotes(self, query: SearchQuery, sources: Sequence[Source]) -> list[Quote]:
        """Return the quotes from sources that answer a question."""
        if parts := parts_of(query):
            quotes = (quote for part in parts for quote in self.quotes(part, sources)[:QUOTES_OF_PART])
            return list(dict.fromkeys(quotes))
        texts = self._texts(sources)
        return with_vectors(self.vectors.now(), query, lambda compare: choose_quotes(query, sources, compare, texts))

    def computed(self, query: SearchQuery, sources: Sequence[Source]) -> list[Quote]:
        """Return the answer computed from all of a table or list in the sources; several if several tables fit."""
        with_rows = _with_rows(sources)
        return from_tables(query, sources, self._texts(with_rows)) if with_rows else []

    def tables(self, sources: Sequence[Source]) -> list[SourceTable]:
        """Return the first tables and lists in the sources."""
        return list(islice(tables_in(sources, self._texts(_with_rows(sources))), MAX_TABLES))

    def sections(self, sources: Sequence[Source]) -> dict[int, tuple[int, int, int]]:
        """Return all sections of the documents of some sources, by id: document, start and end of each."""
        return self.chunks.sections_of({one.document_id for one in sources})

    def in_full(
        self, sources: Sequence[Source], sections: Mapping[int, tuple[int, int, int]], max_chars: int
    ) -> list[Passage]:
        """Return all passages of as many documents as have at most ``max_chars`` together, best document first."""
        scores: dict[int, float] = {}
        left = max_chars
        for document_id, score in {one.document_id: one.score for one in reversed(sources)}.items():
            own = {
                section_id: end - start
                for section_id, (held_by, start, end) in sections.items()
                if held_by == document_id
            }
            if sum(own.values()) <= left:
                left -= sum(own.values())
                scores |= dict.fromkeys(own, score)
        return self.chunks.passages(scores)

    def _texts(self, sources: Sequence[Source]) -> dict[int, str]:
        return self.chunks.beginnings([one.document_id for one in sources], MAX_TEXT_CHARS)

    def nearest_range(self, query: SearchQuery, source: Source) -> tuple[int, int] | None:
        """Return the range of the sentence nearest to a question in a source's text; ``None`` if none stands out."""
        return with_vectors(self.vectors.now(), query, lambda compare: nearest_range(query, source, compare))


def _with_rows(sources: Sequence[Source]) -> list[Source]:
    """Return the sources with a table's row or a list's item: to look for those in whole documents takes long."""
    return [one for one in sources if "|" in one.text or MARKED.search(one.text)]


def with_vectors(
    vectors: ServingVectors | None, query: SearchQuery, choose: Callable[[Compare | None], Chosen]
) -> Chosen:
    """Choose sentences with the embedding model; if its vectors say nothing, by words alone."""
    try:
        if vectors is not None and vectors.familiarity(query.text).pieces >= MIN_KNOWN_PIECES:
            return choose(vectors.compare)
    except EmbedderFailed as error:
        log.warning("Choosing sentences by keywords alone: %s", error)
    return choose(None)
