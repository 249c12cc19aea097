"""What is recalled beside a question: left-out turns that it seems to be about,
passages that answers cited, and turns of other conversations. They take the room that is left; what is not sent of the
first is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rag_assistant.answering.request import BuiltRequest, build_request
from rag_assistant.conversations.prompts import past_sources
from rag_assistant.history import UNANSWERED
from rag_assistant.retrieval.follow_up import SearchQuery, parts_of
from rag_assistant.retrieval.postprocess import in_turn, within_budget
from rag_assistant.retrieval.tokenize import content_stems, query_words

if TYPE_CHECKING:
    from rag_assistant.answering.answer import Dependencies
    from rag_assistant.answering.request import Draft
    from rag_assistant.conversations.viewed_history import ViewedHistory
    from rag_assistant.records import Note, RelatedTurn, Scope, Source, Turn
    from rag_assistant.retrieval.search import Retriever
    from rag_assistant.settings.schema import Settings

# So many cited passages come along: two hold what a question leans on as often as more (bench/retrieval/README.md).
MAX_EVIDENCE = 2
# What a person left out never comes back by itself.
RECALLABLE = frozenset({"turn_limit", "token_limit", "filtered", "summarised"})
# So many turns are looked at, more than are recalled: what is not is told.
MAX_RELATED = 25
# A question that leans on what was said leans on one of the last turns.
TURNS_WITH_EVIDENCE = 5
# So many passages are sent in all, with other conversations, of which these are at least so many (bench/history.md).
MAX_SENT, MIN_PAST = 10, 4
# From here on, by their vectors or by the share of the question's words, a note is about a question.
MIN_ABOUT = 0.4
NOTES_BUDGET_TOKENS = 400
# One that stands alone by a narrow margin may still want what was cited (bench/retrieval/README.md).
MIN_LEANING = 0.3


def with_recall(built: BuiltRequest, turn: Turn, deps: Dependencies, settings: Settings) -> BuiltRequest:
    """Return the request of a turn with what is recalled. Related turns that are not sent are its ``missing``."""
    limit = 0 if built.draft.profile.endpoint.quotes else settings.history_recall  # Quotes are of documents alone.
    related = _related(built, turn, deps.history)
    recalled = tuple(one for one in related if one.why in RECALLABLE)[:limit]
    cited = _cited(built, recalled, deps.history)
    sources, budget = built.draft.found.sources, settings.passages_token_budget
    evidence = cited_passages(deps.retriever, cited, sources, turn.scope, budget)
    past = _past(built, evidence, deps.history, budget)
    if not (related or evidence or past):
        return built
    return build_request(replace(built.draft, related=related, recalled=recalled, evidence=evidence, past=past))


def _related(built: BuiltRequest, turn: Turn, history: ViewedHistory) -> tuple[RelatedTurn, ...]:
    """Return the left-out turns that the question seems to be about."""
    draft, receipt, conversation = built.draft, built.fitted.receipt, built.draft.window.conversation
    quotes = draft.profile.endpoint.quotes
    # Of the conversation quotes have nothing before them, whatever the window keeps.
    seen = () if quotes else receipt.kept_turns
    if not quotes and all(run.reason in UNANSWERED for run in receipt.left_out):
        return ()
    query = SearchQuery(draft.question)
    by_part = [
        history.related(conversation, query_words(f"{one.context} {one.text}"), turn.number, seen, MAX_RELATED)
        for one in parts_of(query) or [query]
    ]
    related: dict[int, RelatedTurn] = {}
    for one in in_turn(by_part):
        related.setdefault(one.number, one if one.why else replace(one, why=receipt.why_left_out(one.number)))
    return tuple(related.values())


def _cited(
    built: BuiltRequest, recalled: tuple[RelatedTurn, ...], history: ViewedHistory
) -> dict[int, tuple[Source, ...]]:
    """Return what was cited in the turns that a question leans on, newest first, and in the recalled ones."""
    draft = built.draft
    if draft.profile.tools or not draft.found.sources:
        return {}
    cited = {turn.number: turn.sources for turn in recalled}
    if draft.found.query.leaning >= MIN_LEANING:
        newest = built.fitted.receipt.kept_turns[-TURNS_WITH_EVIDENCE:]
        cited |= history.cited(draft.window.conversation, newest)
    return dict(sorted(cited.items(), reverse=True))


def notes_about(draft: Draft, deps: Dependencies) -> tuple[Note, ...]:
    """Return the notes that a question is about, pinned ones first, within their budget."""
    conversation = draft.window.conversation
    if not (conversation.has_notes and draft.window.rules.notes) or draft.profile.endpoint.quotes:
        return ()
    notes, words = deps.history.notes(conversation), content_stems(draft.question)
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

    What a model answered is weaker evidence than a document: it comes last, as far as the budget has room.
    """
    draft = built.draft
    profile, where = draft.profile, draft.window.rules.search_conversations
    if where == "off" or profile.endpoint.quotes or profile.tools or not profile.passages:
        return ()
    sent = [*draft.found.sources, *evidence]
    words, most = query_words(draft.question), max(MIN_PAST, MAX_SENT - len(sent))
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
    """Return passages that earlier answers cited, numbered behind those that were found.

    ``cited`` has them by the turn's number, those that matter most first. They come as far as the budget has room,
    if they still stand in the library and were not found anyway.
    """
    candidates = [
        replace(source, cited=False, doubts=(), offered=(), cited_in=number, score=retrieved[-1].score)
        for number, sources in cited.items()
        for source in sources
        if source.turn is None and not any(_overlap(source, one) for one in retrieved)
    ]
    standing = retriever.standing(candidates, scope) if candidates else []
    fitting = [one for one in within_budget([*retrieved, *_apart(standing)], budget_tokens) if one.cited_in is not None]
    return tuple(replace(one, n=n) for n, one in enumerate(fitting[:MAX_EVIDENCE], len(retrieved) + 1))


def _apart(sources: Iterable[Source]) -> list[Source]:
    """Return some sources without those that overlap with one before them."""
    apart: list[Source] = []
    for source in sources:
        if not any(_overlap(source, one) for one in apart):
            apart.append(source)
    return apart


def _overlap(one: Source, other: Source) -> bool:
    return one.document_id == other.document_id and one.start < other.end and other.start < one.end
