"""One request of an answer: exactly what the model sees, fitted into its limit. Pure: same draft, same bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from rag_assistant.conversations.model_profile import SMALL_PASSAGE_CHARS, ModelProfile, min_limit
from rag_assistant.conversations.prompts import excerpt, question_message
from rag_assistant.conversations.window import Window, fit_window
from rag_assistant.history import FittedHistory, count_message
from rag_assistant.history.figures import history_figures
from rag_assistant.records import Coverage, DataUrl, Message, ModelRequest, Note, RelatedTurn, Source, Turn
from rag_assistant.records.errors import QuestionDoesNotFit
from rag_assistant.retrieval.disagreements import disagreements
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.tokenize import content_words, query_words

if TYPE_CHECKING:
    from rag_assistant.records import Disagreement
    from rag_assistant.retrieval.quotes import Quote

# What is recalled costs some tokens, an alarm a person's attention: it has to be more certain (bench/history.md).
MIN_ALARM_CERTAINTY = 0.3
MAX_MISSING = 5
NO_QUERY = SearchQuery("")
WITHOUT_SUMMARY = "The summary of older turns did not fit and was left out. Shorten it or undo it."
FEWER_PASSAGES = "Not all passages that were found fit into the request; the least relevant were left out."
IS_TRIED = "This request is longer than the guessed limit, to see whether it is read whole."
WITHOUT_PASSAGES = "The passages that were found did not fit into the request, so the model saw none of them."


class SearchResult(Struct, frozen=True):
    """The result of a question's search.

    ``search`` says how the documents were searched, ``None`` if they weren't, and ``query`` with what. ``guide``
    are the numbers of sources that are the guide's pages, no document of a person. ``nearest`` are the best
    sections if none was near enough, or if the question is unclear. ``rewrite`` is the request that asked a model
    for a query, with its answer. ``search_notes`` are sentences about what the search lacked. ``unclear``: neither
    the question nor the conversation tells what it is about. ``language`` is the question's, if no document is in
    it. ``time`` is the one that it is about (versions.py), asked ``today``. ``searched_documents`` is their number
    if nothing was found in some of them. ``documents`` are the names of the newest of ``document_count``, if the
    question asks for these. If it needs all of something, ``computed`` is the result from a table or a list, or
    ``sections`` are all of its documents': document, start and end of each, in order. Then ``reading`` are the
    model's requests for it, with their answers; ``notes`` what it wrote about the sources by number, sent instead
    of their text; ``read_in_vain`` how many other sections it read.
    """

    sources: tuple[Source, ...] = ()
    search: dict[str, Any] | None = None
    query: SearchQuery = NO_QUERY
    guide: frozenset[int] = frozenset()
    nearest: tuple[str, ...] = ()
    rewrite: dict[str, Any] | None = None
    search_notes: tuple[str, ...] = ()
    unclear: bool = False
    language: str = ""
    time: str | None = None
    today: str = ""
    searched_documents: int | None = None
    documents: tuple[str, ...] = ()
    document_count: int = 0
    computed: Quote | None = None
    sections: tuple[tuple[int, int, int], ...] = ()
    reading: tuple[dict[str, Any], ...] = ()
    notes: Mapping[int, str] = {}
    read_in_vain: int = 0

    @property
    def coverage(self) -> Coverage | None:
        """How much of what the question needs is in the sources; ``None`` if it doesn't need all of anything."""
        if self.computed is not None and self.computed.n <= len(self.sources):
            kind = self.computed.sentences[0].kind
            return Coverage(self.computed.computed, self.computed.computed, "items" if kind == "list" else "rows")
        if not self.sections:
            return None
        read: set[int] = set()
        for one in self.sources:  # A long document has thousands of sections, in order.
            first, last = (bisect_left(self.sections, (one.document_id, place)) for place in (one.start, one.end))
            read.update(n for n in range(first, last) if self.sections[n][2] <= one.end)
        return Coverage(len(read) + self.read_in_vain, len(self.sections), "sections")

    @property
    def record(self) -> dict[str, Any] | None:
        """How the documents were searched, as stored with the answer."""
        parts = {"coverage": self.coverage, "disagreements": self.disagreements}
        return self.search and self.search | {name: to_builtins(part) for name, part in parts.items() if part}

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """What the sources state differently about the question."""
        # A follow-up such as "and of backups?" is about these alone, "and in 2023?" about the same as before.
        is_whole = not all(map(str.isdigit, content_words(self.query.text)))
        question = self.query.text if is_whole else f"{self.query.context} {self.query.text}"
        return disagreements(question, self.sources, self.time, self.today)

    @property
    def nothing(self) -> bool:
        """Whether the search found nothing."""
        return self.search is not None and self.search["found"] == 0

    @property
    def near(self) -> bool:
        """Whether what was found may not answer the question."""
        return self.search is not None and self.search.get("support") in ("near", "nothing_found")


class Draft(Struct, frozen=True):
    """Everything a request is built from.

    ``iterations`` are the messages of the answer's tool calls so far. ``related`` are left-out turns that match the
    question, best first, and ``recalled`` those quoted with it; ``evidence`` are passages cited by earlier
    answers, ``past`` turns of other conversations, ``notes`` the matching notes. ``profile`` describes the model; for
    this answer ``ignores_budget`` lifts the configured budget, and ``token_cap`` limits the request after the model
    refused one as too long. ``page_images`` are pictures of the pages of some passages, by their numbers.
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
    page_images: tuple[tuple[int, DataUrl], ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages sent with the question: retrieved ones, those cited before, other conversations."""
        seen = {n for n, _ in self.page_images}
        passages = tuple(replace(one, page_image=True) if one.n in seen else one for one in self.found.sources)
        return passages + self.evidence + self.past


class BuiltRequest(Struct, frozen=True):
    """A request that fits. ``draft`` is what it really contains, which may be less than planned."""

    draft: Draft
    fitted: FittedHistory

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the request for the caller."""
        draft, profile = self.draft, self.draft.profile
        plain = count_message(question_message(draft.question, (), pictures=draft.pictures), profile.count_tokens)
        passage_tokens = max(0, self.fitted.receipt.tokens["question"] - plain)
        recalled = sorted(turn.number for turn in draft.recalled)
        figures = history_figures(self.fitted, passage_tokens, profile.endpoint.context_tokens, recalled, self.missing)
        return figures | {"past_turns": self.past_turns, "notes": [note.id for note in draft.notes]}

    @property
    def past_turns(self) -> list[dict[str, Any]]:
        """The turns of other conversations that are sent."""
        return [{"conversation_id": one.conversation_id, "turn": one.turn} for one in self.draft.past]

    @property
    def missing(self) -> tuple[RelatedTurn, ...]:
        """The turns that match the question but aren't sent: the most certain ones."""
        sent = {*self.fitted.receipt.kept_turns, *(turn.number for turn in self.draft.recalled)}
        unsent = (one for one in self.draft.related if one.certainty >= MIN_ALARM_CERTAINTY and one.number not in sent)
        return tuple(sorted(unsent, key=lambda turn: -turn.certainty)[:MAX_MISSING])

    @property
    def notes(self) -> list[str]:
        """Sentences about what didn't fit."""
        search_result, summary = self.draft.found, self.draft.window.conversation.summary
        notes = [self.draft.profile.note] if self.draft.profile.note else []
        if summary is not None and not self.fitted.receipt.summary_sent:
            notes.append(WITHOUT_SUMMARY)
        if search_result.search is not None and len(search_result.sources) < search_result.search["found"]:
            notes.append(FEWER_PASSAGES if search_result.sources else WITHOUT_PASSAGES)
        guess = self.draft.profile.endpoint.guess
        is_longer = guess is not None and guess.is_tried and sum(self.fitted.receipt.tokens.values()) > guess.limit
        if guess is not None and (notes or is_longer or self.fitted.receipt.reason == "token_limit"):
            notes += [IS_TRIED, guess.sentence] if is_longer else [guess.sentence]
        return [*notes, *search_result.search_notes]

    def as_request(self, call_tools: bool) -> ModelRequest:
        """Return the request; with ``call_tools`` false the model has to answer."""
        profile = self.draft.profile
        return ModelRequest(
            messages=tuple(self.fitted.messages),
            max_tokens=profile.answer_tokens,
            temperature=profile.temperature,
            tools=profile.tools,
            call_tools=call_tools,
            fields=profile.fields,
        )


def shown_with(turn: Turn, draft: Draft) -> Turn:
    """Return a turn with the passages of a draft as its sources; with tools, it has its own."""
    return turn if draft.profile.tools else replace(turn, sources=draft.sources, search=draft.found.record)


def build_request(draft: Draft) -> BuiltRequest:
    """Return the request of a draft.

    If the question doesn't fit with its passages, the worst of them are dropped. Pictures of pages, notes, recalled
    turns, cited passages and other conversations only use the remaining room and displace nothing.
    Raises QuestionDoesNotFit.
    """
    built, least = None, replace(draft, recalled=(), evidence=(), past=(), notes=(), page_images=())
    while built is None:
        try:
            built = _fitted(least)
        except QuestionDoesNotFit:
            if not least.found.sources or least.iterations:
                raise
            least = replace(least, found=replace(least.found, sources=least.found.sources[:-1]))
    sent = len(built.draft.found.sources)
    draft = replace(draft, page_images=tuple(one for one in draft.page_images if one[0] <= sent))
    for name in ("page_images", "notes", "recalled", "evidence", "past"):
        built = _with_most(built, name, getattr(draft, name))
    return built


def _with_most(built: BuiltRequest, name: str, wanted: tuple[Any, ...]) -> BuiltRequest:
    """Return the request with as many as displace nothing."""
    for count in range(len(wanted), 0, -1):
        with suppress(QuestionDoesNotFit):
            more = _fitted(replace(built.draft, **{name: wanted[:count]}))
            if replace(more.fitted.receipt, tokens={}) == replace(built.fitted.receipt, tokens={}):
                return more
    return built


def _fitted(draft: Draft) -> BuiltRequest:
    profile = draft.profile
    limit = profile.max_request_tokens if draft.ignores_budget else profile.request_tokens
    profile = replace(profile, request_tokens=min_limit(limit, draft.token_cap))
    return BuiltRequest(draft, fit_window(draft.window, profile, question_of(draft), draft.iterations))


def question_of(draft: Draft) -> Message:
    """Return the question with what accompanies it, in the form that the model supports."""
    search_result, profile = draft.found, draft.profile
    if profile.tools:
        return question_message(draft.question, (), draft.recalled, draft.notes, pictures=draft.pictures)
    sources = draft.sources
    if profile.small_model and not search_result.sections:  # Of those it is said that the model reads them whole.
        words = query_words(draft.question)
        sources = tuple(replace(one, text=excerpt(one.text, words, SMALL_PASSAGE_CHARS)) for one in sources)
    return question_message(
        draft.question,
        sources,
        draft.recalled,
        draft.notes,
        searched_in_vain=search_result.nothing,
        near=search_result.near,
        coverage=search_result.coverage,
        notes_read=search_result.notes,
        computed=search_result.computed,
        unclear=search_result.unclear,
        disagreements=search_result.disagreements,
        pictures=draft.pictures,
        page_images=draft.page_images,
    )
