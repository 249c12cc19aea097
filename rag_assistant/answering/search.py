"""Search the documents for a question: unchanged, with its follow-up context, or as a model rewrites it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from rag_assistant.answering.coverage import with_everything
from rag_assistant.answering.live import LiveTurn
from rag_assistant.answering.quoting import asks_for, quoted_answer
from rag_assistant.answering.request import Draft, SearchResult
from rag_assistant.conversations.prompts import rewrite_request
from rag_assistant.conversations.summary_lines import LEAD_GUIDE, without_lead
from rag_assistant.conversations.window import Window
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import Part
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import EXCHANGES, Exchange, ModelRequest, exchanges_of
from rag_assistant.retrieval.claims import NUMBER
from rag_assistant.retrieval.follow_up import SearchQuery, is_unclear
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.retrieval.search import Retriever, sections_of
from rag_assistant.retrieval.table_words import needs_everything
from rag_assistant.retrieval.tokenize import content_stems, search_words, stem
from rag_assistant.retrieval.value_kinds import has_named_kind
from rag_assistant.retrieval.versions import time_of, without_other_versions
from rag_assistant.runtime.telemetry.steps import step
from rag_assistant.settings.schema import Settings

if TYPE_CHECKING:
    from rag_assistant.answering.task import Task

# From this probability on a model is asked to rewrite a question. It repairs more than our own method, so that a
# possible follow-up is worth the request (bench/retrieval/README.md).
MIN_LEANING_TO_REWRITE = 0.4
# Waiting longer for a rewritten query is worse than searching with the words at hand.
TIMEOUT_SECONDS = 8.0
MAX_TOKENS = 120
MAX_QUERY_CHARS = 600
# How many documents are named to somebody who asks which there are.
MAX_LISTED = 30
ADDS_NOTHING = "It adds nothing to the question."


@step("search")
def search_for(
    draft: Draft, task: Task, search_result: SearchResult | None = None, *, may_rewrite: bool = True
) -> SearchResult:
    """Return what the documents have about a turn's question; without passages to send there is no search.

    ``search_result`` is from before the question was accepted: there is another search only with a model's query, which
    may rewrite a follow-up if ``may_rewrite``. Raises AnswerStopped.
    """
    live, settings, profile = task.live, task.settings, draft.profile
    turn, quotes = live.turn, profile.endpoint.quotes
    if (
        not profile.passages
        or any(asks_for(kind, turn.question) for kind in ("conversation", "thanks", "greeting"))
        or (quotes and asks_for("task", turn.question))
    ):
        return SearchResult()
    if quotes and asks_for("documents", turn.question):
        documents, count = task.deps.documents.find("", turn.scope, MAX_LISTED)
        names, searched = tuple(one.name for one in documents), count if turn.scope else None
        return SearchResult(documents=names, document_count=count, searched_documents=searched)
    is_rewritten = may_rewrite and settings.query_rewriting == "model" and not (quotes or profile.small_model)
    if search_result is not None and not (is_rewritten and search_result.query.leaning >= MIN_LEANING_TO_REWRITE):
        return search_result
    live.tell("searching", "Searching your documents.")
    return _searched(draft, task, is_rewritten)


def _searched(draft: Draft, task: Task, is_rewritten: bool) -> SearchResult:
    """Return what the documents have, also with a model's query if one ``is_rewritten``."""
    live, deps, profile, budget = task.live, task.deps, draft.profile, task.settings.passages_token_budget
    turn, retriever, quotes = live.turn, deps.retriever, profile.endpoint.quotes
    exchanges, library = exchanges_seen(draft.window, task.settings), retriever.library(turn.scope)
    query = retriever.follow_up(turn.question, exchanges, library)
    rewritten, record = None, None
    if is_rewritten and query.leaning >= MIN_LEANING_TO_REWRITE:
        rewritten, record = rewrite_query(deps.models, live, exchanges, profile.endpoint)
    searched = query if rewritten is None else SearchQuery(rewritten)
    passages, support = retriever.find(searched, profile.passages, library, budget, for_model=not quotes)
    if searched is not query and support == "nothing_found":  # The words may find something nonetheless.
        searched = query
        passages, support = retriever.find(query, profile.passages, library, budget, for_model=not quotes)
    if quotes and support == "nothing_found":
        passages = []  # A model judges for itself.
    document_count = deps.documents.find("", turn.scope, 1)[1] if not passages else None
    if document_count == 0 and not turn.scope:
        return SearchResult(rewrite=record)  # Nothing could have been found.
    # A filter's remaining documents tell what a question is about.
    unclear = not turn.scope and is_unclear(turn.question, exchanges)
    nearest, language = sections_of(passages) if unclear else [], ""
    if quotes and not passages:
        nearest = retriever.nearest_headings(query, library)
        language = retriever.foreign_language(turn.question, library)
    search_result = SearchResult(
        sources=number_sources(passages),
        search={
            "query": searched.text,
            "by": "words" if searched.is_follow_up else "question" if searched is query else "model",
            "follow_up_context": searched.context or None,
            "found": len(passages),
            "support": support,
        },
        query=query,
        guide=frozenset(n for n, one in enumerate(passages, 1) if one.of_guide),
        nearest=tuple(nearest),
        rewrite=record,
        search_notes=retriever.notes(library),
        searched_documents=document_count if turn.scope else None,
        unclear=unclear,
        language=language,
        time=time_of(turn.question, turn.created_at.date()),
        today=turn.created_at.date().isoformat(),
    )
    if unclear or not needs_everything(turn.question, [one.text for one in search_result.sources]):
        return search_result
    return with_everything(search_result, retriever, searched, profile, budget)


def quoted(retriever: Retriever, draft: Draft, call: ModelCall, lead: str) -> Generator[Part]:
    """Yield an answer with quotes from a request's sources. Raises AnswerStopped."""
    result, count = draft.found, len(draft.sources)
    computed = [one for one in (result.computed,) if one is not None and one.n <= count]
    valid = without_other_versions(draft.sources, result.time)
    sources = retriever.sources
    quotes = computed or sources.quotes(result.query, valid) or sources.quotes(result.query, draft.sources)
    coverage = None if computed else result.coverage
    if quotes and not lead and result.guide.issuperset(one.n for one in quotes):
        lead = LEAD_GUIDE
    # The passages may have an insurer where what is quoted of them has none.
    parts = [part for one in quotes for each in one.sentences for part in (each.heading, each.lead, each.text)]
    parts += [draft.sources[one.n - 1].document for one in quotes]
    is_near = result.near or not has_named_kind(result.query.text, parts)
    for piece in quoted_answer(quotes, count, lead=lead, is_near=is_near, coverage=coverage):
        call.refuse_stopped()
        yield piece


def exchanges_seen(window: Window, settings: Settings) -> Sequence[Exchange]:
    """Return the newest exchanges that the model sees: follow-ups don't refer to others."""
    if settings.query_rewriting == "off" or window.conversation.visible_turns == 0:
        return ()
    return [(question, without_lead(answer)) for question, answer in exchanges_of(window.messages)[-EXCHANGES:]]


def rewrite_query(
    models: LanguageModels, live: LiveTurn, exchanges: Sequence[Exchange], endpoint: Endpoint
) -> tuple[str | None, dict[str, Any] | None]:
    """Return a turn's question as a model rewrites it, ``None`` if that is late or unusable, and the request's record.

    The record has the answer, and why it was ``refused``. Raises AnswerStopped.
    """
    if not models.extra_requests.is_worth_sending(endpoint, "rewriting"):
        return None, None
    request = ModelRequest(
        tuple(rewrite_request(live.turn.question, exchanges)),
        max_tokens=MAX_TOKENS,
        temperature=0.0,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    live.tell("rewriting", "Rewriting your question for the search.")
    record = models.ask_aside(endpoint, request, live.call)
    lines = list(filter(None, map(str.strip, record["answer"].splitlines())))
    only = lines[0].strip("\"'`“”„«»* ") if len(lines) == 1 else ""
    query = only if 0 < len(only) <= MAX_QUERY_CHARS else None
    refused = None if query is None else why_refused(live.turn.question, query, exchanges)
    # It may need nothing; and who was busy or away may be able to. Who was too slow is not.
    if refused != ADDS_NOTHING and (record["answer"] or live.call.overdue):
        models.extra_requests.learn(endpoint, "rewriting", query is not None and refused is None)
    return (query, record) if refused is None else (None, record | {"refused": refused})


def why_refused(question: str, query: str, exchanges: Sequence[Exchange]) -> str | None:
    """Return in a sentence why a model's query differs from the question; ``None`` if it is usable.

    Small models answer the question instead, or invent its subject (bench/retrieval/README.md).
    """
    question_words, query_words = content_stems(question), content_stems(query)
    conversation_words = {stem(word) for exchange in exchanges for text in exchange for word in search_words(text)}
    added = query_words - question_words
    if question.rstrip().endswith("?") and query.endswith((".", "!")):
        return "It is a statement, not a question."
    if not set(NUMBER.findall(question)) <= set(NUMBER.findall(query)):
        return "A number from the question is missing."
    if len(question_words - query_words) > len(question_words) / 2:
        return "Most words of the question are missing."
    if not added:
        return ADDS_NOTHING
    if len(added - conversation_words) > max(1, len(added) / 2):
        return "Most of its words appear in neither the question nor the conversation."
    return None
