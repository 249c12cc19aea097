"""Find the passages that a question needs: by keywords and by vectors, fused, and checked against SQL.

A follow-up question is searched for together with its context.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, islice
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import numpy as np

from rag_assistant.records import EVERYTHING, MAX_INT32, Correction, Exchange, Passage, Scope, Source, find_passage
from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.chunking import SEPARATOR as HEADING_SEPARATOR
from rag_assistant.retrieval.embeddings.minilm import Familiarity, Vectors
from rag_assistant.retrieval.follow_up import (
    SearchQuery,
    Similarity,
    context_of,
    is_about_something_else,
    last_question,
    parts_of,
    questions_before,
    search_query,
    share_of,
)
from rag_assistant.retrieval.hybrid import VECTOR_WEIGHT, Hit, add, fuse, mix
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.postprocess import Reranking, distinct, in_turn, joined, number_sources, within_budget
from rag_assistant.retrieval.source_reader import MIN_KNOWN_PIECES, SourceReader, with_vectors
from rag_assistant.retrieval.support import MAX_PASSAGES, SHARE_ACROSS_LANGUAGES, Support, support_of
from rag_assistant.retrieval.terms import forms_of, query_terms
from rag_assistant.retrieval.tokenize import FORMS, content_words, search_words
from rag_assistant.retrieval.value_kinds import has_named_kind
from rag_assistant.retrieval.versions import preferred, time_of
from rag_assistant.runtime.telemetry.steps import step

if TYPE_CHECKING:
    from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
    from rag_assistant.retrieval.indexes.vector_search import ServingVectors, VectorSearch
    from rag_assistant.storage.documents.chunks import ChunkStore

log = logging.getLogger(__name__)

KEYWORDS_ALONE = "The embedding model is not working, so your documents were searched by keyword only."
MEANING_ALONE = "Keyword search is not ready yet after a start, so your documents were searched by meaning only."
NOT_RERANKED = "The reranking model is not working, so the passages are in the search's own order."

CANDIDATES = 100  # How many hits each half contributes before they are fused.
# What is near a question or its context needs both its cosines: with 100 of each, mtrag loses 0.006 nDCG@10.
FOLLOW_UP_CANDIDATES = 300
MIN_CANDIDATES_READ = 10  # How many passages are checked before nothing counts as found.
# A cited passage: its document, its start, its text.
Place = tuple[int, int, str]
# How many sections are named if no passage is near enough.
MAX_HEADINGS = 3
# A question that depends on the earlier questions by less is standalone: with the whole context, at most 0.3 % of a
# set's questions would count as follow-ups (bench/retrieval/README.md).
SURELY_ALONE = 0.2
# For a model that knows fewer of a text's words whole, cosines between questions say nothing: all look alike.
MIN_KNOWN_WORDS = 0.5


class LibraryState:
    """What a question has to know of the library, read once; ``vectors`` are None while no embedding model is ready."""

    def __init__(self, chunks: ChunkStore, vectors: VectorSearch, scope: Scope) -> None:
        self.scope = scope
        self.within, self.pending, self.keywords, model = chunks.library(scope)
        self.vectors = vectors.now(model)


class Retriever:
    """Searches the library. A deleted document is never found, whatever an index still holds."""

    def __init__(
        self, chunks: ChunkStore, keywords: KeywordSearch, vectors: VectorSearch, reranking: Reranking | None = None
    ) -> None:
        self._chunks = chunks
        self._keywords = keywords
        self._vectors = vectors
        self.reranking = reranking or Reranking(None)
        self.sources = SourceReader(chunks, vectors)

    def library(self, scope: Scope | LibraryState) -> LibraryState:
        """Return the library within a scope, for everything that one question asks of it."""
        return scope if isinstance(scope, LibraryState) else LibraryState(self._chunks, self._vectors, scope)

    def search(self, query: str | SearchQuery, limit: int, scope: Scope = EVERYTHING) -> list[Passage]:
        """Return up to ``limit`` passages of the scope, best first; see ``find``."""
        return self.find(query, limit, scope)[0]

    def find(
        self,
        query: str | SearchQuery,
        limit: int,
        scope: Scope | LibraryState = EVERYTHING,
        budget_tokens: int | None = None,
        *,
        for_model: bool = False,
    ) -> tuple[list[Passage], Support]:
        """Return up to ``limit`` passages of the scope, best first, and how far they support an answer.

        Adjacent chunks are one passage. Together the passages have at most ``budget_tokens``, except that the best one
        is always returned. Those that support no answer are returned, too: a model judges better. While the embedding
        model isn't loaded, or doesn't work, there is only keyword search.
        """
        query = query if isinstance(query, SearchQuery) else SearchQuery(query)
        library = self.library(scope)
        if limit == 0:
            return [], "nothing_found"
        if parts := parts_of(query):
            share = ceil(limit / len(parts))
            results = [self.find(part, share, library, budget_tokens, for_model=for_model) for part in parts]
            return _together(results, budget_tokens)
        passages, best_cosine = self._candidates(query, limit, library)
        # Of chosen documents a model reads what is there, in whatever language.
        passages = [one for one in passages if one.score > 0 or (for_model and library.scope)]
        # The guide answers questions about the assistant: it is left out where a person's document answers best, and
        # is never merely the nearest.
        own = [one for one in passages if not one.of_guide]
        passages = own if own[:1] == passages[:1] else passages
        support = self._support(query, passages[:MIN_CANDIDATES_READ], best_cosine, library, for_model)
        passages = own if support == "nothing_found" else passages
        if support != "nothing_found":
            passages = self.reranking.best_first(f"{query.context}\n{query.text}".strip(), passages)
        passages = preferred(passages, time_of(query.text, datetime.now(UTC).date()))
        passages = joined(within_budget(list(islice(distinct(passages), limit)), budget_tokens))
        # "Oldest" may be nowhere in the text: a table that has all other words answers nonetheless.
        if support != "found" and self.sources.computed(query, number_sources(passages)):
            support = "found"
        return passages, support

    def standing(self, sources: Sequence[Source], scope: Scope = EVERYTHING) -> list[Source]:
        """Return the sources whose text is still unchanged in the scope."""
        texts = self._chunks.texts_at({(one.document_id, one.start) for one in sources}, scope)
        return [
            one for one in sources if (text := texts.get((one.document_id, one.start))) and one.text.startswith(text)
        ]

    def lost(self, sources: Iterable[Source]) -> dict[Place, Literal["changed", "deleted"]]:
        """Return which cited passages of documents are no longer in the library, and why."""
        cited = {place_of(one): one for one in sources if one.cited and one.turn is None}
        standing = set(map(place_of, self.standing(list(cited.values())))) if cited else set()
        lost: dict[Place, Literal["changed", "deleted"]] = {}
        for document_id, places in groupby(sorted(cited.keys() - standing), key=itemgetter(0)):
            # A document with different chunks may still contain them all.
            text = self._chunks.beginnings([document_id], MAX_INT32).get(document_id)
            for place in places:
                if text is None or find_passage(text, place[2], place[1], cited[place].end) is None:
                    lost[place] = "deleted" if text is None else "changed"
        return lost

    def similarities(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the similarity of short texts to a question; 0 while the embedding model does not work."""
        vectors = self._vectors.now() if texts else None
        if vectors is None:
            return [0.0] * len(texts)
        try:
            own, *others = vectors.of_questions([question, *texts])
        except EmbedderFailed as error:
            log.warning("The words alone tell which notes a question is about: %s", error)
            return [0.0] * len(texts)
        return [vectors.similarity(own, one) for one in others]

    def notes(self, library: LibraryState) -> tuple[str, ...]:
        """Return sentences about what the search lacks at the moment."""
        lacking = (
            (self._vectors.failing, KEYWORDS_ALONE),
            (self._keywords.is_loading(library.keywords), MEANING_ALONE),
            (self.reranking.failing, NOT_RERANKED),
        )
        return tuple(sentence for is_so, sentence in lacking if is_so)

    def nearest_headings(self, query: SearchQuery, scope: Scope | LibraryState = EVERYTHING) -> list[str]:
        """Return the documents and sections nearest to a question."""
        passages, _ = self._candidates(query, MAX_HEADINGS, self.library(scope))
        return sections_of(one for one in passages if not one.of_guide)[:MAX_HEADINGS]

    def _candidates(self, query: SearchQuery, limit: int, library: LibraryState) -> tuple[list[Passage], float | None]:
        """Return the hits of both methods, best first, and the best cosine; ``None`` if vectors say nothing."""
        ranked, best_cosine = self.ranked(query, library)
        return self._existing(ranked, max(2 * limit, MIN_CANDIDATES_READ, self.reranking.candidates)), best_cosine

    def ranked(self, query: SearchQuery, scope: Scope | LibraryState = EVERYTHING) -> tuple[list[Hit], float | None]:
        """Return both methods' chunks, best first, and the best cosine. Some chunks may be deleted."""
        library = self.library(scope)
        by_vector, familiarity = self._by_vector(query, library)
        ranked = fuse(self._by_keyword(query, library), by_vector, VECTOR_WEIGHT * familiarity.pieces)
        knows_text = by_vector and familiarity.pieces >= MIN_KNOWN_PIECES
        return ranked, by_vector[0][1] if knows_text else None

    def _support(
        self,
        query: SearchQuery,
        passages: Sequence[Passage],
        best_cosine: float | None,
        library: LibraryState,
        for_model: bool,
    ) -> Support:
        vectors, within = library.vectors, library.within
        chunks = len(within.ids) if within is not None else vectors.count if vectors is not None else 0

        def support_with(min_share: float) -> Support:
            own = partial(support_of, query, passages, best_cosine, chunks, min_share=min_share, for_model=for_model)
            return with_vectors(vectors, query, own)

        support = support_with(0.0)
        if support == "nothing_found" and _knows(vectors, query.text) and _across_languages(query.text, passages):
            support = support_with(SHARE_ACROSS_LANGUAGES)
        # In a language it hardly knows, a model only recognises what is unrelated.
        is_known = _knows(vectors, query.text) or not has_named_kind(query.text, [one.text for one in passages])
        return support if support == "nothing_found" or is_known else "found"

    def foreign_language(self, question: str, scope: Scope | LibraryState = EVERYTHING) -> str:
        """Return the language of a question, ``""`` if documents may be in it, or the embedding model knows it."""
        language, library = language_of(search_words(question)), self.library(scope)
        is_known = not {language, ""}.isdisjoint(library.keywords.languages) or _knows(library.vectors, question)
        return "" if is_known else language

    def follow_up(
        self, question: str, exchanges: Sequence[Exchange], scope: Scope | LibraryState = EVERYTHING
    ) -> SearchQuery:
        """Return the search query of a question after some exchanges (question and answer each, oldest first).

        Costs at most one embedding more than the question's own, of 30 to 50 words.
        """
        context, library = context_of(exchanges), self.library(scope)
        unknown = self.unknown(content_words(question), library) if context else set()
        if not context or is_about_something_else(question, context, unknown):
            return SearchQuery(question)
        try:
            similarity = self.similarity(question, exchanges, library, SURELY_ALONE)
        except EmbedderFailed as error:
            log.warning("The words alone tell whether a question leans on another: %s", error)
            similarity = None
        return search_query(question, exchanges, similarity)

    def unknown(self, words: Sequence[str], scope: Scope | LibraryState = EVERYTHING) -> set[str]:
        """Return which of the words no chunk contains in any form, also outside the scope."""
        library = self.library(scope)
        state, within = library.keywords, self._chunks.within(EVERYTHING) if library.scope else library.within
        forms = forms_of(words, state.languages)
        every_form = [form for some in forms.values() for form in some]
        unknown = self._keywords.unknown(every_form, within, state)
        return {word for word, some in forms.items() if some <= unknown}

    def similarity(
        self, question: str, exchanges: Sequence[Exchange], scope: Scope | LibraryState, min_share: float = 0.0
    ) -> Similarity | None:
        """Return the similarity of a question to the conversation and the library; ``None`` if the model can't tell.

        If the earlier questions alone would give the context less weight than ``min_share``, they represent all of it:
        their vectors are cached.
        """
        context, state = context_of(exchanges), self.library(scope)
        vectors = state.vectors if context and question.strip() else None
        if vectors is None or not vectors.count:
            return None
        last = last_question(exchanges)
        if vectors.familiarity(" ".join([question, last, context])).words < MIN_KNOWN_WORDS:
            return None

        def nearest(*some: Vectors) -> list[list[Hit]]:
            return _nearest(vectors, some, FOLLOW_UP_CANDIDATES, state)

        own, before = vectors.of_questions([question, last])
        of_last, library = vectors.similarity(own, before), []
        earlier = vectors.of_questions(questions_before(exchanges)) if min_share and content_words(question) else []
        if earlier:
            middle = np.sum(earlier, axis=0) / (float(np.linalg.norm(np.sum(earlier, axis=0))) or 1.0)
            library, of_questions = nearest(own, middle)
            near = vectors.similarity(own, middle)
            by_questions = Similarity(of_last, near, library, of_questions, by_questions=True)
            if share_of(question, context, by_questions) < min_share:
                return by_questions
        (around,) = vectors.of_questions([context])
        library, of_context = [library, *nearest(around)] if earlier else nearest(own, around)
        return Similarity(of_last, vectors.similarity(own, around), library, of_context)

    @step("keywords")
    def _by_keyword(self, query: SearchQuery, library: LibraryState) -> list[Hit]:
        # Pending chunks must not use up the limit.
        state, pending = library.keywords, library.pending

        def hits(text: str) -> list[Hit]:
            # With all forms of all words, doc2dial loses 0.006 of the right documents.
            irregular = [word for word in content_words(text) if word in FORMS]
            forms = [form for word in self.unknown(irregular, library) for form in FORMS[word]] if irregular else []
            words = query_terms(" ".join([text, *forms]), state.languages)
            ranked = self._keywords.search(words, CANDIDATES + len(pending), library.within, state)
            return _without_pending(ranked, pending, CANDIDATES)

        return add(hits(query.text), hits(query.context), query.share) if query.is_follow_up else hits(query.text)

    @step("vectors")
    def _by_vector(self, query: SearchQuery, library: LibraryState) -> tuple[list[Hit], Familiarity]:
        """Return the nearest chunks, and how well the model knows the question: nothing if it doesn't work."""
        nothing: tuple[list[Hit], Familiarity] = ([], Familiarity(0.0, 0.0))
        vectors = library.vectors
        if vectors is None or not vectors.count or not query.text.strip():
            return nothing
        try:
            familiarity = vectors.familiarity(f"{query.text} {query.context}".strip())
            texts = [query.text, query.context] if query.is_follow_up else [query.text]
            embedded = vectors.of_questions(texts)
        except EmbedderFailed as error:
            log.warning("Searching by keywords alone: %s", error)
            return nothing
        limit = FOLLOW_UP_CANDIDATES if query.is_follow_up else CANDIDATES
        nearest = query.nearest or _nearest(vectors, embedded, limit, library)
        if not query.is_follow_up:
            return list(nearest[0][:limit]), familiarity
        own, context = embedded
        length = float(np.linalg.norm(own + np.float32(query.share) * context)) or 1.0
        return mix(nearest[0], nearest[1], query.share, length), familiarity

    @step("passages")
    def _existing(self, ranked: Sequence[Hit], limit: int) -> list[Passage]:
        """Return the first ``limit`` hits that still exist in SQL."""
        passages: list[Passage] = []
        for start in range(0, len(ranked), limit):
            passages += self._chunks.passages(dict(ranked[start : start + limit]))
            if len(passages) >= limit:
                break
        return passages[:limit]


def place_of(source: Source) -> Place:
    """Return what identifies a cited passage."""
    return source.document_id, source.start, source.text


def corrections_of(
    sources: Iterable[Source], lost: Mapping[Place, Literal["changed", "deleted"]], turn: int | None = None
) -> list[Correction]:
    """Return what an answer cites that is no longer in the library; ``turn`` is its number, for a summary."""
    return [
        Correction("source", lost[place], turn=turn, n=one.n, document=one.document)
        for one in sources
        if one.cited and (place := place_of(one)) in lost
    ]


def sections_of(passages: Iterable[Passage]) -> list[str]:
    """Return the documents and sections of some passages, without duplicates."""
    return list(dict.fromkeys(HEADING_SEPARATOR.join(filter(None, (one.document, one.section))) for one in passages))


def _together(
    parts: Sequence[tuple[list[Passage], Support]], budget_tokens: int | None
) -> tuple[list[Passage], Support]:
    """Return what the parts of a question find, the best of each first; "near" if one of them finds nothing."""
    passages = {one.chunk_id: one for one in in_turn([some for some, _ in parts])}
    supports = {support for _, support in parts}
    support: Support = "found" if supports == {"found", "near"} else "near" if len(supports) > 1 else supports.pop()
    return joined(within_budget(list(passages.values()), budget_tokens)), support


def _knows(vectors: ServingVectors | None, question: str) -> bool:
    """Return whether an embedding model knows enough of the words of a question."""
    return vectors is not None and vectors.familiarity(question).words >= MIN_KNOWN_WORDS


def _across_languages(question: str, passages: Sequence[Passage]) -> bool:
    """Return whether a question is in another language than the best passages."""
    language, *others = (
        language_of(search_words(text)) for text in (question, *(one.text for one in passages[:MAX_PASSAGES]))
    )
    of_passages = set(others) - {""}
    return bool(language and of_passages) and language not in of_passages


def _nearest(vectors: ServingVectors, some: Sequence[Vectors], limit: int, library: LibraryState) -> list[list[Hit]]:
    pending = library.pending
    near = vectors.search(some, limit + len(pending), library.within)
    return [_without_pending(hits, pending, limit) for hits in near]


def _without_pending(hits: Sequence[Hit], pending: Set[int], limit: int) -> list[Hit]:
    return [hit for hit in hits if hit[0] not in pending][:limit] if pending else list(hits[:limit])
