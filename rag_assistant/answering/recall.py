"""What is recalled for a question: related left-out turns, passages cited before, and turns of other conversations.

They use the remaining room; related turns that aren't sent are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rag_assistant.answering.request import BuiltRequest, build_request
from rag_assistant.conversations.prompts import past_sources
from rag_assistant.history import UNANSWERED
from rag_assistant.retrieval.follow_up import SearchQuery, beside_which, parts_of
from rag_assistant.retrieval.postprocess import in_turn, within_budget
from rag_assistant.retrieval.terms import turn_query
from rag_assistant.retrieval.tokenize import content_stems

if TYPE_CHECKING:
    from rag_assistant.answering.request import Draft
    from rag_assistant.answering.task import Dependencies, Task
    from rag_assistant.conversations.viewed_history import ViewedHistory
    from rag_assistant.records import Note, RelatedTurn, Scope, Source, Turn
    from rag_assistant.retrieval.search import Retriever

# How many cited passages are added: two contain the needed one as often as more (bench/retrieval/README.md).
MAX_EVIDENCE = 2
# What a person left out never comes back by itself.
RECALLABLE = frozenset({"turn_limit", "token_limit", "filtered", "summarised"})
# How many turns are examined, more than are recalled: the rest is reported.
MAX_RELATED = 25
# A follow-up question refers to one of the last turns.
TURNS_WITH_EVIDENCE = 5
# How many passages are sent in all, including other conversations, which get at least this many (bench/history.md).
MAX_SENT, MIN_PAST = 10, 4
# From here on, by vectors or by the share of the question's words, a note matches a question.
MIN_ABOUT = 0.4
NOTES_BUDGET_TOKENS = 400
# A question that is only narrowly standalone may still need what was cited (bench/retrieval/README.md).
MIN_LEANING = 0.3


def with_recall(built: BuiltRequest, task: Task) -> BuiltRequest:
    """Return the request of a turn with what is recalled. Related turns that aren't sent are its ``missing``."""
    turn, deps, settings = task.live.turn, task.deps, task.settings
    limit = 0 if built.draft.profile.endpoint.quotes else settings.history_recall  # Quotes come from documents only.
    related = _related(built, turn, deps.history)
    recalled = tuple(one for one in related if one.why in RECALLABLE)[:limit]
    search, budget = built.draft.found, settings.passages_token_budget
    evidence: tuple[Source, ...] = ()
    if search.sources and not built.draft.profile.tools:
        cited = {turn.number: turn.sources for turn in recalled}
        if search.query.leaning >= MIN_LEANING:
            newest = built.fitted.receipt.kept_turns[-TURNS_WITH_EVIDENCE:]
            cited |= deps.history.cited(built.draft.window.conversation, newest)
        newest_first = dict(sorted(cited.items(), reverse=True))
        evidence = cited_passages(deps.retriever, newest_first, search.sources, turn.scope, budget)
    past = _past(built, evidence, deps.history, budget)
    if not (related or evidence or past):
        return built
    return build_request(replace(built.draft, related=related, recalled=recalled, evidence=evidence, past=past))


def _related(built: BuiltRequest, turn: Turn, history: ViewedHistory) -> tuple[RelatedTurn, ...]:
    """Return the left-out turns that match the question."""
    draft, receipt, conversation = built.draft, built.fitted.receipt, built.draft.window.conversation
    quotes = draft.profile.endpoint.quotes
    # Quotes see nothing of the conversation, whatever the window keeps.
    seen = () if quotes else receipt.kept_turns
    if not quotes and all(run.reason in UNANSWERED for run in receipt.left_out):
        return ()
    text, beside = beside_which(draft.question)
    query = SearchQuery(text)
    by_part = [
        history.related(conversation, turn_query(f"{one.context} {one.text}"), turn.number, seen, MAX_RELATED, beside)
        for one in parts_of(query) or [query]
    ]
    related: dict[int, RelatedTurn] = {}
    for one in in_turn(by_part):
        related.setdefault(one.number, one if one.why else replace(one, why=receipt.why_left_out(one.number)))
    return tuple(related.values())


def notes_about(draft: Draft, deps: Dependencies) -> tuple[Note, ...]:
    """Return the notes that match a question, pinned ones first, within their budget."""
    conversation = draft.window.conversation
    if not (conversation.has_notes and draft.window.rules.notes) or draft.profile.endpoint.quotes:
        return ()
    notes, words = deps.notes.in_force(conversation), content_stems(draft.question)
    similarities = deps.retriever.similarities(draft.question, [note.text for note in notes])
    shares = [len(words & content_stems(note.text)) / max(1, len(words)) for note in notes]
    ranked = sorted(zip(notes, map(max, similarities, shares), strict=True), key=lambda one: -one[1])
    pinned = [note for note in notes if note.pinned]
    about = [note for note, share in ranked if share >= MIN_ABOUT and not note.pinned]
    return tuple(within_budget([*pinned, *about], NOTES_BUDGET_TOKENS))


def _past(
    built: BuiltRequest, evidence: Sequence[Source], history: ViewedHistory, budget_tokens: int | None
) -> tuple[Source, ...]:
    """Return what other conversations say about the question, as sources numbered after all others.

    A model's answer is weaker evidence than a document: it comes last, as far as the budget allows.
    """
    draft = built.draft
    profile, where = draft.profile, draft.window.rules.search_conversations
    if where == "off" or profile.endpoint.quotes or profile.tools or not profile.passages:
        return ()
    sent = [*draft.found.sources, *evidence]
    words, most = turn_query(draft.question), max(MIN_PAST, MAX_SENT - len(sent))
    turns = history.elsewhere(draft.window.conversation, words, most, in_project=where == "project")
    past = past_sources(turns, words, len(sent) + 1)
    return tuple(one for one in within_budget([*sent, *past], budget_tokens) if one.turn is not None)


def cited_passages(
    retriever: Retriever,
    cited: Mapping[int, Sequence[Source]],
    retrieved: Sequence[Source],
    scope: Scope,
    budget_tokens: int | None,
) -> tuple[Source, ...]:
    """Return passages cited by earlier answers, numbered after the retrieved ones.

    ``cited`` has them by turn number, the most important first. They are added within the budget, if they still exist
    in the library and weren't found anyway.
    """
    candidates = [
        replace(source, cited=False, doubts=(), offered=(), cited_in=number, score=retrieved[-1].score)
        for number, sources in cited.items()
        for source in sources
        if source.turn is None and not any(_overlap(source, one) for one in retrieved)
    ]
    apart: list[Source] = []
    for source in retriever.standing(candidates, scope) if candidates else []:
        if not any(_overlap(source, one) for one in apart):
            apart.append(source)
    fitting = [one for one in within_budget([*retrieved, *apart], budget_tokens) if one.cited_in is not None]
    return tuple(replace(one, n=n) for n, one in enumerate(fitting[:MAX_EVIDENCE], len(retrieved) + 1))


def _overlap(one: Source, other: Source) -> bool:
    return one.document_id == other.document_id and one.start < other.end and other.start < one.end
