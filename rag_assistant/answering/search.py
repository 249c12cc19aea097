"""Search the documents for a question: as it stands, with its follow-up context, or as a model rewrites it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.answering.query_rewrite import NO_REWRITE, rewrite_query
from rag_assistant.answering.quoting import needs_model, quoted_answer
from rag_assistant.answering.request import SearchResult
from rag_assistant.conversations.extract import without_lead
from rag_assistant.conversations.prompts import number_sources
from rag_assistant.records import EXCHANGES, Exchange, exchanges_of
from rag_assistant.retrieval.follow_up import is_unclear
from rag_assistant.retrieval.postprocess import within_budget
from rag_assistant.retrieval.search import sections_of
from rag_assistant.runtime.telemetry.steps import measured

if TYPE_CHECKING:
    from rag_assistant.answering.live import LiveTurn
    from rag_assistant.answering.request import Draft
    from rag_assistant.conversations.window import Window
    from rag_assistant.llm.calls import ModelCall
    from rag_assistant.llm.models import LanguageModels
    from rag_assistant.records import Scope, Source
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.settings.schema import Settings
    from rag_assistant.storage.documents.documents import DocumentStore

# So many cited passages come along: two hold what a question leans on as often as more (docs/retrieval-benchmarks.md).
MAX_EVIDENCE = 2
# From here on a model is asked to rewrite a question. It repairs more than our own way does, so that one which may lean
# is worth the request (docs/retrieval-benchmarks.md).
MIN_LEANING_TO_REWRITE = 0.4


class DocumentSearch(Struct, frozen=True):
    """Finds the passages for a question."""

    retriever: Retriever
    documents: DocumentStore
    models: LanguageModels

    @measured("search")
    def find(
        self,
        draft: Draft,
        live: LiveTurn,
        settings: Settings,
        found: SearchResult | None = None,
        *,
        may_rewrite: bool = True,
    ) -> SearchResult:
        """Return what the documents have about the question of a turn; without passages to send they are not searched.

        ``found`` is what they had when the question was looked at before it was accepted: they are searched again only
        with a query of a model, which may rewrite a follow-up where ``may_rewrite``. Raises AnswerStopped.
        """
        turn, window, profile = live.turn, draft.window, draft.profile
        quotes = profile.endpoint.quotes
        if not profile.passages or (quotes and needs_model(turn.question)):
            return SearchResult()
        is_rewritten = may_rewrite and settings.query_rewriting == "model" and not quotes
        if found is not None and not (is_rewritten and found.query.leaning >= MIN_LEANING_TO_REWRITE):
            return found
        live.tell("searching", "Searching your documents.")
        exchanges = exchanges_seen(window, settings)
        query = self.retriever.follow_up(turn.question, exchanges, turn.scope)
        how = {
            "query": turn.question,
            "by": "words" if query.is_follow_up else "question",
            "leans_on": query.context or None,
        }
        limit, budget = profile.passages, settings.passages_token_budget
        rewrite, passages = NO_REWRITE, []
        if is_rewritten and query.leaning >= MIN_LEANING_TO_REWRITE:
            rewrite = rewrite_query(self.models, live, exchanges, profile.endpoint)
            if rewrite.query is not None:
                passages = self.retriever.search(rewrite.query, limit, turn.scope, budget)
                how = {"query": rewrite.query, "by": "model", "leans_on": None} if passages else how
        # A rewritten query may find nothing where the words do.
        passages = passages or self.retriever.search(query, limit, turn.scope, budget)
        if not passages and self.documents.find("", turn.scope, 1)[1] == 0:
            return SearchResult(rewrite=rewrite.record)  # There is nothing that could have been found.
        # What a filter leaves says what a question is about.
        unclear = not turn.scope and is_unclear(turn.question, exchanges)
        nearest = sections_of(passages) if unclear else []
        if quotes and not passages:
            nearest = self.retriever.nearest_headings(query, turn.scope)
        return SearchResult(
            sources=number_sources(passages),
            search=how | {"found": len(passages)},
            query=query,
            nearest=tuple(nearest),
            rewrite=rewrite.record,
            by_keywords_alone=self.retriever.by_keywords_alone,
            not_reranked=self.retriever.reranking.failing,
            unclear=unclear,
        )

    def evidence(
        self, cited: Mapping[int, Sequence[Source]], found: Sequence[Source], scope: Scope, budget_tokens: int | None
    ) -> tuple[Source, ...]:
        """Return passages that earlier answers cited, numbered behind those that were found.

        ``cited`` has them by the turn's number, those that matter most first. They come as far as the budget has room,
        if they still stand in the library and were not found anyway.
        """
        candidates = [
            replace(source, cited=False, doubts=(), offered=(), cited_in=number, score=found[-1].score)
            for number, sources in cited.items()
            for source in sources
            if not any(_overlap(source, one) for one in found)
        ]
        standing = self.retriever.standing(candidates, scope) if candidates else []
        fitting = [one for one in within_budget([*found, *_apart(standing)], budget_tokens) if one.cited_in is not None]
        return tuple(replace(one, n=n) for n, one in enumerate(fitting[:MAX_EVIDENCE], len(found) + 1))

    def quoted(self, draft: Draft, call: ModelCall, model_failed: bool) -> Iterator[str]:
        """Yield an answer with quotes of the sources that are in a request. Raises AnswerStopped."""
        quotes = self.retriever.quotes(draft.found.query, draft.sources)
        for piece in quoted_answer(quotes, len(draft.sources), model_failed):
            call.refuse_stopped()
            yield piece


def _apart(sources: Iterable[Source]) -> list[Source]:
    """Return some sources without those that overlap with one before them."""
    kept: list[Source] = []
    for source in sources:
        if not any(_overlap(source, one) for one in kept):
            kept.append(source)
    return kept


def _overlap(one: Source, other: Source) -> bool:
    return one.document_id == other.document_id and one.start < other.end and other.start < one.end


def exchanges_seen(window: Window, settings: Settings) -> Sequence[Exchange]:
    """Return the newest exchanges that the model sees: nothing leans on what it does not see."""
    if settings.query_rewriting == "off" or window.conversation.visible_turns == 0:
        return ()
    exchanges = exchanges_of(window.messages)[-EXCHANGES:]
    return [(question, without_lead(answer)) for question, answer in exchanges]
