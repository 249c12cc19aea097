"""Questions that need all of something, with a connected model: it queries a table, or reads documents in parts.

Each request and its answer are in the receipt. Without a model, ``retrieval/table_answers.py`` queries tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from msgspec import DecodeError, json
from msgspec.structs import replace

from rag_assistant.answering.request import Draft, SearchResult, shown_with
from rag_assistant.conversations.model_profile import ModelProfile, min_limit
from rag_assistant.conversations.prompts import reading_request, table_request
from rag_assistant.history import estimate_tokens
from rag_assistant.history.budget import in_parts
from rag_assistant.records import Message, ModelRequest, Source
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.postprocess import number_sources, within_budget
from rag_assistant.retrieval.search import Retriever
from rag_assistant.retrieval.table_query import MAX_CONDITIONS, MAX_SECONDS, QueryTooLarge, TableQuery
from rag_assistant.retrieval.table_words import asks_for_everything, needs_everything

if TYPE_CHECKING:
    from rag_assistant.answering.task import Task

# Up to this length together, short documents are sent whole if a question needs all of them: about ten pages.
MAX_WHOLE_CHARS = 27_000
# A model overlooks more in longer requests.
MAX_PART_TOKENS = 8_000
# How long a document may be, in characters for each token of the budget; the tokens are counted afterwards.
CHARS_PER_TOKEN = 4
NOTE = re.compile(r"^[^\w\n]*\[(\d+)\][^\w\n]*(.*(?:\n(?![^\w\n]*\[\d+\]).*)*)", re.MULTILINE)
NOTHING = "NONE"
# A query is a line or two: a model that thinks or reads for longer is not waited for.
QUERY_TIMEOUT_SECONDS = 60.0
QUERYING = "Asking the model what to look up in the table."
TOO_LARGE = "The model's query of a table was too large: {n} conditions and {n1} seconds of computing are allowed."
READING = "Reading {n} passages, about {n1} tokens. Request {n2} of {n3}."
TOO_LONG = (
    "This answer rests on part of the documents. Reading all of them would take about {n} tokens; "
    "reading_token_budget allows {n1}."
)
UNEXPLAINED = "The table was queried without these words of the question: {parts}."
NOT_READ = "{n} of {n1} requests to read the documents got no usable answer."


def with_everything(
    search_result: SearchResult, retriever: Retriever, query: SearchQuery, profile: ModelProfile, budget: int | None
) -> SearchResult:
    """Return the result of a question that needs all of something: with the result from a table or a list.

    Without one, a model gets all sections of short documents, if they fit.
    """
    sources, search = search_result.sources, search_result.search or {}
    computed = retriever.sources.computed(query, sources)
    if len(computed) == 1:
        return replace(search_result, computed=computed[0], search=search | {"support": "found"})
    if not asks_for_everything(query.text):
        return search_result
    sections = retriever.sources.sections(sources)
    if not profile.endpoint.quotes:
        passages = retriever.sources.in_full(sources, sections, MAX_WHOLE_CHARS)
        numbered = _before_others(number_sources(passages), sources, {one.document_id for one in passages})
        limit = min_limit(budget, profile.request_tokens and profile.request_tokens // 2)
        if list(numbered) == within_budget(numbered, limit):
            sources, search = numbered, search | {"found": len(numbered)}
    return replace(search_result, sources=sources, search=search, sections=tuple(sections.values()))


def with_coverage(draft: Draft, task: Task) -> Draft:
    """Return the draft of a question that needs all of something, with a table's result or notes of all sections.

    A model's query of a table comes before that of the rules, which understand less (bench/retrieval/README.md). All
    other drafts are returned as they are. Raises AnswerStopped.
    """
    coverage, budget = draft.found.coverage, task.settings.reading_token_budget
    texts = [one.text for one in draft.found.sources]
    if (
        not budget
        or draft.profile.endpoint.quotes
        or draft.profile.small_model
        or draft.found.unclear
        or not needs_everything(draft.question, texts)
    ):
        return draft
    draft = _from_table(draft, task)
    has_failed = any(not one["answer"] for one in draft.found.reading)
    if coverage is not None and coverage.read < coverage.of and draft.found.computed is None and not has_failed:
        draft = _in_parts(draft, task, budget)
    task.live.turn = shown_with(task.live.turn, draft)
    return draft


def _from_table(draft: Draft, task: Task) -> Draft:
    """Return the draft with the result of the model's query of a table in the sources, if there is one."""
    tables = task.deps.retriever.sources.tables(draft.found.sources)
    extras, endpoint = task.deps.models.extra_requests, draft.profile.endpoint
    if not tables or not extras.is_worth_sending(endpoint, "table query"):
        return draft
    task.live.tell("reading", QUERYING)
    answer, result = _ask(draft, table_request(_question(draft), tables), task, QUERY_TIMEOUT_SECONDS)
    draft = replace(draft, found=result)
    try:
        query = json.decode(answer[answer.find("{") : answer.rfind("}") + 1], type=TableQuery, strict=False)
        table = tables[query.table - 1] if 0 < query.table <= len(tables) else None
        if query.table != 0:  # Otherwise it found that no table has the answer.
            extras.learn(endpoint, "table query", table is not None)
        computed = table.queried(query) if table else None
    except DecodeError:
        if answer or task.live.call.overdue:  # Who was busy or away may be able to.
            extras.learn(endpoint, "table query", False)
        return draft
    except QueryTooLarge:
        task.live.note(TOO_LARGE.format(n=MAX_CONDITIONS, n1=MAX_SECONDS))
        return draft
    if table and computed and (words := table.unexplained(query, _question(draft))):
        task.live.note(UNEXPLAINED.format(parts=", ".join(words)))
    search = {**(result.search or {}), "support": "found"}
    return draft if computed is None else replace(draft, found=replace(result, computed=computed, search=search))


def _in_parts(draft: Draft, task: Task, budget: int) -> Draft:
    """Return the draft with the model's notes of all sections of the documents, as far as the budget allows."""
    before, retriever, live = draft.found.sources, task.deps.retriever, task.live
    sections = retriever.sources.sections(before)
    sources = number_sources(retriever.sources.in_full(before, sections, budget * CHARS_PER_TOKEN))
    tokens = sum(estimate_tokens(one.text) for one in sources)
    if not sources or tokens > budget:
        needed = tokens or sum(end - start for _, start, end in sections.values()) // CHARS_PER_TOKEN
        live.note(TOO_LONG.format(n=f"{needed:,}", n1=f"{budget:,}"))
        return draft
    limit = draft.profile.request_tokens and draft.profile.request_tokens // 2
    most = min_limit(limit, MAX_PART_TOKENS) or MAX_PART_TOKENS
    parts = in_parts(sources, most, lambda one: estimate_tokens(one.text))
    notes: dict[int, str] = {}
    read = usable = 0
    for number, part in enumerate(parts, 1):
        figures = {"n": len(sources), "n1": f"{tokens:,}", "n2": number, "n3": len(parts)}
        live.tell("reading", READING.format(**figures))
        answer, result = _ask(draft, reading_request(_question(draft), part), task)
        draft = replace(draft, found=result)
        own = {int(match[1]): match[2].strip() for match in NOTE.finditer(answer)}
        own = {one.n: own[one.n] for one in part if own.get(one.n)}
        if own or NOTHING in answer:
            usable, read, notes = usable + 1, read + len(part), notes | own
        elif not answer:
            break  # The model failed, and the answer's own request will say why.
    if usable < len(parts):
        live.note(NOT_READ.format(n=len(parts) - usable, n1=len(parts)))
    if not read:
        return draft
    chosen = [one for one in sources if one.n in notes]
    numbered = _before_others(chosen, before, {one.document_id for one in sources})
    result = replace(
        draft.found,
        sources=numbered,
        search={**(draft.found.search or {}), "found": len(numbered)},
        notes={n: notes[one.n] for n, one in enumerate(chosen, 1)},
        read_in_vain=read - len(chosen),
    )
    return replace(draft, found=result)


def _before_others(chosen: Sequence[Source], sources: Sequence[Source], whole: Set[int]) -> tuple[Source, ...]:
    """Return the chosen sources, then those of documents that were not read whole, numbered anew."""
    others = [one for one in sources if one.document_id not in whole]
    return tuple(replace(one, n=n) for n, one in enumerate([*chosen, *others], 1))


def _question(draft: Draft) -> str:
    """Return the question as it was searched: a model may have rewritten a follow-up."""
    return str((draft.found.search or {}).get("query", draft.question))


def _ask(
    draft: Draft, messages: Sequence[Message], task: Task, seconds: float | None = None
) -> tuple[str, SearchResult]:
    """Return a model's answer to a request of its own, and the search result that records it."""
    request = ModelRequest(
        tuple(messages), max_tokens=draft.profile.answer_tokens, temperature=0.0, timeout_seconds=seconds
    )
    record = task.deps.models.ask_aside(draft.profile.endpoint, request, task.live.call)
    return record["answer"], replace(draft.found, reading=(*draft.found.reading, record))
