"""Search the documents for a question: as it stands, with its follow-up context, or as a model rewrites it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from rag_assistant.answering.query_rewrite import NO_REWRITE, rewrite_query
from rag_assistant.answering.quoting import needs_model, quoted_answer
from rag_assistant.answering.request import SearchResult
from rag_assistant.conversations.extract import without_lead
from rag_assistant.conversations.prompts import number_sources
from rag_assistant.records import EXCHANGES, Exchange, exchanges_of
from rag_assistant.retrieval.follow_up import is_unclear
from rag_assistant.retrieval.search import sections_of
from rag_assistant.runtime.telemetry.steps import measured

if TYPE_CHECKING:
    from rag_assistant.answering.answer import Dependencies
    from rag_assistant.answering.live import LiveTurn
    from rag_assistant.answering.request import Draft
    from rag_assistant.conversations.window import Window
    from rag_assistant.llm.calls import ModelCall
    from rag_assistant.llm.client import Part
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.settings.schema import Settings

# From here on a model is asked to rewrite a question. It repairs more than our own way does, so that one which may lean
# is worth the request (docs/retrieval-benchmarks.md).
MIN_LEANING_TO_REWRITE = 0.4


@measured("search")
def search_for(
    draft: Draft,
    live: LiveTurn,
    deps: Dependencies,
    settings: Settings,
    search_result: SearchResult | None = None,
    *,
    may_rewrite: bool = True,
) -> SearchResult:
    """Return what the documents have about the question of a turn; without passages to send they are not searched.

    ``found`` is what they had when the question was looked at before it was accepted: they are searched again only
    with a query of a model, which may rewrite a follow-up where ``may_rewrite``. Raises AnswerStopped.
    """
    turn, window, profile, retriever = live.turn, draft.window, draft.profile, deps.retriever
    quotes = profile.endpoint.quotes
    if not profile.passages or (quotes and needs_model(turn.question)):
        return SearchResult()
    is_rewritten = may_rewrite and settings.query_rewriting == "model" and not quotes
    if search_result is not None and not (is_rewritten and search_result.query.leaning >= MIN_LEANING_TO_REWRITE):
        return search_result
    live.tell("searching", "Searching your documents.")
    exchanges = exchanges_seen(window, settings)
    query = retriever.follow_up(turn.question, exchanges, turn.scope)
    how = {
        "query": turn.question,
        "by": "words" if query.is_follow_up else "question",
        "follow_up_context": query.context or None,
    }
    limit, budget = profile.passages, settings.passages_token_budget
    rewrite, passages = NO_REWRITE, []
    if is_rewritten and query.leaning >= MIN_LEANING_TO_REWRITE:
        rewrite = rewrite_query(deps.models, live, exchanges, profile.endpoint)
        if rewrite.query is not None:
            passages = retriever.search(rewrite.query, limit, turn.scope, budget)
            how = {"query": rewrite.query, "by": "model", "follow_up_context": None} if passages else how
    # A rewritten query may find nothing where the words do.
    passages = passages or retriever.search(query, limit, turn.scope, budget)
    if not passages and deps.documents.find("", turn.scope, 1)[1] == 0:
        return SearchResult(rewrite=rewrite.record)  # There is nothing that could have been found.
    # What a filter leaves says what a question is about.
    unclear = not turn.scope and is_unclear(turn.question, exchanges)
    nearest = sections_of(passages) if unclear else []
    if quotes and not passages:
        nearest = retriever.nearest_headings(query, turn.scope)
    return SearchResult(
        sources=number_sources(passages),
        search=how | {"found": len(passages)},
        query=query,
        nearest=tuple(nearest),
        rewrite=rewrite.record,
        by_keywords_alone=retriever.by_keywords_alone,
        not_reranked=retriever.reranking.failing,
        unclear=unclear,
    )


def quoted(retriever: Retriever, draft: Draft, call: ModelCall, model_failed: bool) -> Generator[Part]:
    """Yield an answer with quotes of the sources that are in a request. Raises AnswerStopped."""
    quotes = retriever.quotes(draft.found.query, draft.sources)
    for piece in quoted_answer(quotes, len(draft.sources), model_failed):
        call.refuse_stopped()
        yield piece


def exchanges_seen(window: Window, settings: Settings) -> Sequence[Exchange]:
    """Return the newest exchanges that the model sees: nothing leans on what it does not see."""
    if settings.query_rewriting == "off" or window.conversation.visible_turns == 0:
        return ()
    exchanges = exchanges_of(window.messages)[-EXCHANGES:]
    return [(question, without_lead(answer)) for question, answer in exchanges]
