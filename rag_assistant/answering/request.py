"""One request of an answer: exactly what the model sees, fitted into its limit. Pure: same draft, same bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from rag_assistant.conversations.model_profile import ModelProfile, min_limit
from rag_assistant.conversations.prompts import question_message
from rag_assistant.conversations.window import Window, fit_window
from rag_assistant.history import FittedHistory, count_message, estimate_tokens
from rag_assistant.history.figures import history_figures
from rag_assistant.records import Coverage, DataUrl, Message, ModelRequest, Note, RelatedTurn, Source
from rag_assistant.records.errors import QuestionDoesNotFit
from rag_assistant.retrieval.follow_up import SearchQuery

if TYPE_CHECKING:
    from rag_assistant.retrieval.quotes import Quote

# What comes back costs some tokens, an alarm a person's attention: it has to be surer (bench/history.md).
MIN_ALARM_CERTAINTY = 0.3
MAX_MISSING = 5
NO_QUERY = SearchQuery("")
WITHOUT_SUMMARY = "The summary of older turns did not fit and was left out. Shorten it or undo it."
FEWER_PASSAGES = "Not all passages that were found fit into the request; the least relevant were left out."
KEYWORDS_ALONE = "The embedding model is not working, so your documents were searched by keyword only."
NOT_RERANKED = "The reranking model is not working, so the passages are in the search's own order."
WITHOUT_PASSAGES = "The passages that were found did not fit into the request, so the model saw none of them."


class SearchResult(Struct, frozen=True):
    """What the search of a question gave.

    ``search`` says how the documents were searched, ``None`` if they were not, and ``query`` what with. ``nearest`` are
    the sections that came nearest where nothing was near enough, or where it is unclear what is asked about.
    ``rewrite`` is the request by which a model was asked for a query, with its answer. ``by_keywords_alone``: the
    embedding model does not work; ``not_reranked``: the reranking model does not. ``unclear``: neither the question nor
    the conversation tells what it is about. ``language`` is that of a question in which no document is. ``documents``
    are the names of the newest of ``document_count``, where the question asks for these. Where it needs all of
    something, ``computed`` is what a table or a list says to it, or ``sections`` are all that its documents have:
    document, start and end of each, in this order.
    """

    sources: tuple[Source, ...] = ()
    search: dict[str, Any] | None = None
    query: SearchQuery = NO_QUERY
    nearest: tuple[str, ...] = ()
    rewrite: dict[str, Any] | None = None
    by_keywords_alone: bool = False
    not_reranked: bool = False
    unclear: bool = False
    language: str = ""
    documents: tuple[str, ...] = ()
    document_count: int = 0
    computed: Quote | None = None
    sections: tuple[tuple[int, int, int], ...] = ()

    @property
    def coverage(self) -> Coverage | None:
        """How much of what the question needs the sources are; ``None`` where it does not need all of anything."""
        if self.computed is not None and self.computed.n <= len(self.sources):
            kind = self.computed.sentences[0].kind
            return Coverage(self.computed.computed, self.computed.computed, "items" if kind == "list" else "rows")
        if not self.sections:
            return None
        read: set[int] = set()
        for one in self.sources:  # A long document has thousands of sections, in their order.
            first, last = (bisect_left(self.sections, (one.document_id, place)) for place in (one.start, one.end))
            read.update(n for n in range(first, last) if self.sections[n][2] <= one.end)
        return Coverage(len(read), len(self.sections), "sections")

    @property
    def record(self) -> dict[str, Any] | None:
        """How the documents were searched, as it is kept beside the answer."""
        if self.search is None or (coverage := self.coverage) is None:
            return self.search
        return self.search | {"coverage": asdict(coverage)}

    @property
    def nothing(self) -> bool:
        """Whether the documents were searched in vain."""
        return self.search is not None and self.search["found"] == 0

    @property
    def near(self) -> bool:
        """Whether what was found may not answer the question."""
        return self.search is not None and self.search.get("support") == "near"


class Draft(Struct, frozen=True):
    """All that a request is made of. ``iterations`` are the messages of the answer's tool calls so far.

    ``related`` are turns that are left out although the question seems to be about them, the most certain first, and
    ``recalled`` those of them that are quoted beside it; ``evidence`` are passages that earlier answers cited, ``past``
    turns of other conversations, ``notes`` what the person asked to be remembered.
    ``profile`` says what the model takes; for this answer ``ignores_budget`` lifts the budget of the settings, and
    ``token_cap`` bounds the request after the model refused one as too long.
    """

    question: str
    window: Window
    profile: ModelProfile
    found: SearchResult = SearchResult()
    related: tuple[RelatedTurn, ...] = ()
    recalled: tuple[RelatedTurn, ...] = ()
    evidence: tuple[Source, ...] = ()
    past: tuple[Source, ...] = ()
    notes: tuple[Note, ...] = ()
    iterations: tuple[Message, ...] = ()
    ignores_budget: bool = False
    token_cap: int | None = None
    pictures: tuple[DataUrl, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages beside the question: what was found for it, what earlier answers cited, other conversations."""
        return self.found.sources + self.evidence + self.past

    @property
    def limited_profile(self) -> ModelProfile:
        """The profile with the limit that holds for this request."""
        profile = self.profile
        limit = profile.max_request_tokens if self.ignores_budget else profile.request_tokens
        return replace(profile, request_tokens=min_limit(limit, self.token_cap))


class BuiltRequest(Struct, frozen=True):
    """A request that fits. ``draft`` is what is really in it: where room was short, with less beside the question."""

    draft: Draft
    fitted: FittedHistory

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the request as the caller is told them."""
        draft, profile = self.draft, self.draft.profile
        plain = count_message(question_message(draft.question, (), pictures=draft.pictures), estimate_tokens)
        passage_tokens = max(0, self.fitted.receipt.tokens["question"] - ceil(plain * profile.token_ratio))
        recalled = sorted(turn.number for turn in draft.recalled)
        figures = history_figures(self.fitted, passage_tokens, profile.endpoint.context_tokens, recalled, self.missing)
        return figures | {"past_turns": self.past_turns, "notes": [note.id for note in draft.notes]}

    @property
    def past_turns(self) -> list[dict[str, Any]]:
        """The turns of other conversations that are sent."""
        return [{"conversation_id": one.conversation_id, "turn": one.turn} for one in self.draft.past]

    @property
    def missing(self) -> tuple[RelatedTurn, ...]:
        """The turns that the question seems to be about, and that are not sent: the most certain ones."""
        sent = {*self.fitted.receipt.kept_turns, *(turn.number for turn in self.draft.recalled)}
        sure = (turn for turn in self.draft.related if turn.certainty >= MIN_ALARM_CERTAINTY)
        return tuple(turn for turn in sure if turn.number not in sent)[:MAX_MISSING]

    @property
    def notes(self) -> list[str]:
        """Sentences about what there was no room for."""
        search_result, summary = self.draft.found, self.draft.window.conversation.summary
        notes = [self.draft.profile.note] if self.draft.profile.note else []
        if summary is not None and not self.fitted.receipt.summary_sent:
            notes.append(WITHOUT_SUMMARY)
        if search_result.search is not None and len(search_result.sources) < search_result.search["found"]:
            notes.append(FEWER_PASSAGES if search_result.sources else WITHOUT_PASSAGES)
        if search_result.by_keywords_alone:
            notes.append(KEYWORDS_ALONE)
        if search_result.not_reranked:
            notes.append(NOT_RERANKED)
        return notes

    def as_request(self, call_tools: bool) -> ModelRequest:
        """Return what is sent; with ``call_tools`` false the model has to answer."""
        profile = self.draft.profile
        return ModelRequest(
            messages=tuple(self.fitted.messages),
            max_tokens=profile.answer_tokens,
            temperature=profile.temperature,
            tools=profile.tools,
            call_tools=call_tools,
            fields=profile.fields,
        )


def build_request(draft: Draft) -> BuiltRequest:
    """Return the request of a draft.

    Where the question does not fit with its passages, the worst of them go. Notes, recalled turns, cited passages and
    other conversations take only the room that is left: for them nothing else leaves. Raises QuestionDoesNotFit.
    """
    built = _with_passages(replace(draft, recalled=(), evidence=(), past=(), notes=()))
    turns, passages, past, notes = draft.recalled, draft.evidence, draft.past, draft.notes
    built = _with_most(built, [replace(built.draft, notes=notes[:count]) for count in range(len(notes), 0, -1)])
    built = _with_most(built, [replace(built.draft, recalled=turns[:count]) for count in range(len(turns), 0, -1)])
    built = _with_most(built, [replace(built.draft, evidence=passages[:n]) for n in range(len(passages), 0, -1)])
    return _with_most(built, [replace(built.draft, past=past[:n]) for n in range(len(past), 0, -1)])


def _with_most(built: BuiltRequest, drafts: Sequence[Draft]) -> BuiltRequest:
    """Return the request of the first draft for which nothing else of ``built`` leaves, or ``built`` itself."""
    for draft in drafts:
        try:
            more = _fitted(draft)
        except QuestionDoesNotFit:
            continue
        # They are to differ in nothing but their question.
        if replace(more.fitted.receipt, tokens={}) == replace(built.fitted.receipt, tokens={}):
            return more
    return built


def _with_passages(draft: Draft) -> BuiltRequest:
    while True:
        try:
            return _fitted(draft)
        except QuestionDoesNotFit:
            if not draft.found.sources or draft.iterations:
                raise
            draft = replace(draft, found=replace(draft.found, sources=draft.found.sources[:-1]))


def _fitted(draft: Draft) -> BuiltRequest:
    return BuiltRequest(draft, fit_window(draft.window, draft.limited_profile, question_of(draft), draft.iterations))


def question_of(draft: Draft) -> Message:
    """Return the question with what stands beside it, in the form that the model can make use of."""
    search_result, profile = draft.found, draft.profile
    if profile.tools:
        return question_message(draft.question, (), draft.recalled, draft.notes, pictures=draft.pictures)
    return question_message(
        draft.question,
        draft.sources,
        draft.recalled,
        draft.notes,
        searched_in_vain=search_result.nothing,
        near=search_result.near,
        coverage=search_result.coverage,
        computed=search_result.computed,
        unclear=search_result.unclear,
        pictures=draft.pictures,
    )
