"""Replace older turns of a conversation with a summary, written by the model or extracted.

The turns stay stored; undoing a compaction restores the model's view of them.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.conversations.bill import AS_TICKED, Bill, Wishes, bill_of, divided, joined
from rag_assistant.conversations.model_profile import ModelProfile, max_request_tokens
from rag_assistant.conversations.prompts import summary_request, turn_text
from rag_assistant.conversations.summary_lines import (
    EXTRACT,
    SummaryLine,
    check_content,
    extract,
    read_lines,
    shortened_record,
    with_turns,
)
from rag_assistant.conversations.viewed_history import ViewedHistory
from rag_assistant.history import FittedHistory, checked_summary, estimate_tokens
from rag_assistant.history.budget import in_parts
from rag_assistant.history.words import span_in_words
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import collect
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import Conversation, ModelRequest, PastTurn, text_in
from rag_assistant.records.errors import ModelError, ModelFailed, NothingToSummarise, SummaryRejected, cause_alone
from rag_assistant.storage.conversations.conversations import ConversationManager

log = logging.getLogger(__name__)

MIN_ROOM_TOKENS = 300
ROOM_WITHOUT_LIMIT = 24_000
MAX_PARTS = 40
MAX_SUMMARY_PART_TOKENS = 800
# A summary may take this share of a request, and this much at most; beyond that it is shortened.
MAX_SUMMARY_SHARE = 0.25
MAX_SUMMARY_TOKENS = 4000

COMPACTED = "Older turns were summarised. You can read, edit and undo the summary."
EXTRACTED = "Whole sentences of the older turns take their place. You can read, edit and undo this summary."
NOT_ALL_KEPT = "Not all of your instructions fit into the summary."
NOT_SUMMARISED = "The model could not summarise the older turns."


class Compaction(Struct, frozen=True):
    """Summarises."""

    conversations: ConversationManager
    history: ViewedHistory
    models: LanguageModels

    def compact(
        self,
        conversation: Conversation,
        keep_from: int,
        profile: ModelProfile,
        call: ModelCall,
        on_progress: Callable[[str], None],
        running: int | None = None,
        wishes: Wishes = AS_TICKED,
    ) -> tuple[Conversation, str]:
        """Replace all turns before number ``keep_from`` with a summary.

        Return the conversation, and a sentence about its summary. Without a model, or if it fails, the summary is an
        extract: whole sentences of the turns. Lines kept word for word follow either. An existing summary is extended:
        its text stays, later turns are added; it is shortened only if it gets too long, except for kept lines. Pinned
        turns and those awaiting confirmation stay. ``running`` is the number of the turn that needs the room. Raises
        NothingToSummarise, InvalidRequest, HistoryChanged or AnswerStopped; then nothing has changed.
        """
        turns = self.turns_to_summarise(conversation, keep_from)
        text, verbatim = divided(_text(conversation))
        bill = self.bill(conversation, turns, profile)
        verbatim += bill.lines_to_keep(wishes.keep)
        work = _Work(conversation, turns, text, verbatim, profile, wishes.hint)
        written_by, note = EXTRACT, EXTRACTED
        if profile.endpoint.quotes:
            record = work.extended()
        else:
            try:
                writer = self._writer(profile, call)
                record = self._written(work, writer, call, on_progress)
                written_by, note = writer.endpoint.model or "a model", COMPACTED
            except (ModelError, SummaryRejected) as error:
                record = work.extended()
                note = f"{NOT_SUMMARISED} {cause_alone(str(error))} {EXTRACTED}"
        if any(one.is_instruction and one.line not in verbatim for one in bill.items):
            note = " ".join((note, NOT_ALL_KEPT))
        log.info("Conversation %s: turns up to %s were summarised (%s).", conversation.id, bill.turns[-1], written_by)
        summary = joined(record, verbatim)
        return self.history.keep_summary(conversation, summary, bill.turns, written_by, running), note

    def turns_to_summarise(self, conversation: Conversation, keep_from: int) -> list[PastTurn]:
        """Return the turns that a compaction would replace."""
        turns = self.history.between(conversation, conversation.view_start, keep_from - 1)
        return [turn for turn in turns if not (turn.pinned or turn.waiting_call)]

    def bill(self, conversation: Conversation, turns: Sequence[PastTurn], profile: ModelProfile) -> Bill:
        """Return what a summary of some turns may lose. Raises NothingToSummarise if there are none."""
        if not turns:
            raise NothingToSummarise("There are no older turns to summarise.")
        record, max_tokens = _text(conversation), _max_summary_tokens(profile) / profile.token_ratio
        bill = bill_of(turns, record, max_tokens)
        if not profile.endpoint.quotes:
            return bill
        # An extract's content is known in advance.
        always = [one.line for one in bill.items if one.keep == "always"]
        return bill_of(turns, record, max_tokens, extract(turns, max_tokens, always))

    def _writer(self, profile: ModelProfile, call: ModelCall) -> ModelProfile:
        """Return the profile of the model that writes summaries. Raises a ModelError."""
        endpoint = self.models.summary_endpoint(profile.endpoint, call)
        limit = max_request_tokens(endpoint, profile.answer_tokens)
        ratio = self.models.calibration.ratio(endpoint)
        return replace(profile, endpoint=endpoint, max_request_tokens=limit, token_ratio=ratio)

    def _written(self, work: "_Work", writer: ModelProfile, call: ModelCall, on_progress: Callable[[str], None]) -> str:
        """Return the record so far with the model's summary of each part added, shortened if it gets too long.

        Raises SummaryRejected, AnswerStopped, a ModelError.
        """
        texts = [turn_text(turn.number, turn.messages) for turn in work.turns]
        limit, room = writer.max_request_tokens, ROOM_WITHOUT_LIMIT
        if limit is not None:
            prior = estimate_tokens(joined(work.text, work.verbatim)) * writer.token_ratio
            room = max(MIN_ROOM_TOKENS, int(0.8 * (limit - prior)) - MIN_ROOM_TOKENS)
        parts = _parts(texts, room, writer.token_ratio)
        first, last = work.turns[0].number, work.turns[-1].number
        about = {"what": "compact", "first_turn": first, "last_turn": last, "parts": len(parts)}
        lines = [SummaryLine((turn.number,), "\n".join(map(text_in, turn.messages))) for turn in work.turns]
        record = work.text

        def write(operation: dict[str, Any], part: Sequence[str], prior: str) -> str:
            self.conversations.show_operation(work.conversation.id, operation)
            on_progress(operation_in_words(operation))
            max_tokens = int(min(MAX_SUMMARY_PART_TOKENS, writer.answer_tokens or inf, _max_summary_tokens(writer)))
            request = ModelRequest(tuple(summary_request(part, prior, work.hint)), max_tokens, writer.temperature)
            for may_retry in (True, False):
                text, reply = collect(self.models.stream(writer.endpoint, request, call, teaches=False))
                if reply.tool_calls:
                    raise ModelFailed("The model called a tool instead of writing a summary.")
                try:
                    summary = checked_summary(text, sum(map(estimate_tokens, part)), estimate_tokens)
                    check_content(summary, "\n".join((*part, prior)), is_cut=reply.finish_reason == "length")
                    break
                except SummaryRejected:
                    if not may_retry:
                        raise
            return summary

        try:
            for number, part in enumerate(parts, 1):
                written = write(about | {"part": number}, part, joined(record, work.verbatim))
                record = "\n".join(filter(None, (record, with_turns(written, lines))))
            if estimate_tokens(record) > work.max_tokens:
                written = write(about | {"what": "shorten", "part": len(parts)}, [record], joined("", work.verbatim))
                record = with_turns(written, read_lines(record))
            return record
        finally:
            self.conversations.show_operation(work.conversation.id, None)


class _Work(Struct, frozen=True):
    """The parts of a summary: the text so far, the turns to add, and the lines kept after both."""

    conversation: Conversation
    turns: Sequence[PastTurn]
    text: str
    verbatim: Sequence[str]
    profile: ModelProfile
    hint: str

    @property
    def max_tokens(self) -> float:
        """The maximum estimated tokens of the summary, without kept lines."""
        return _max_summary_tokens(self.profile) / self.profile.token_ratio - sum(map(estimate_tokens, self.verbatim))

    def extended(self) -> str:
        """Return the text so far with an extract of the turns added, shortened if it gets too long."""
        record = "\n".join(filter(None, (self.text, extract(self.turns, self.max_tokens, self.verbatim))))
        return record if estimate_tokens(record) <= self.max_tokens else shortened_record(record, self.max_tokens)


def _text(conversation: Conversation) -> str:
    return conversation.summary.text if conversation.summary else ""


def operation_in_words(operation: Mapping[str, Any]) -> str:
    """Return a conversation's running operation as a sentence."""
    if operation["what"] == "shorten":
        return "Shortening the summary."
    of = f", part {operation['part']} of {operation['parts']}" if operation["parts"] > 1 else ""
    return f"Summarising {span_in_words(operation['first_turn'], operation['last_turn'])}{of}."


def first_kept_after_compaction(fitted: FittedHistory, next_turn: int) -> int:
    """Return the number of the first turn that a compaction leaves unchanged: half of what fits, rounded up, stays."""
    border = max((run.last_turn for run in fitted.receipt.left_out if run.trimmed), default=0)
    newest = [number for number in fitted.receipt.kept_turns if number > border]
    keep = (len(newest) + 1) // 2  # So there is room for some turns before the next summary.
    return newest[-keep] if keep else next_turn


def _max_summary_tokens(profile: ModelProfile) -> float:
    """Return the maximum tokens of a whole summary, which leaves room for turns."""
    limits = [limit for limit in (profile.max_request_tokens, profile.request_tokens) if limit is not None]
    return min([MAX_SUMMARY_TOKENS, *(limit * MAX_SUMMARY_SHARE for limit in limits)])


def _parts(texts: Sequence[str], room: int, ratio: float) -> list[list[str]]:
    """Return the texts in parts for one call each, split if too long. Raises SummaryRejected for too many."""
    pieces = [piece for text in texts for piece in _pieces(text, room, ratio)]
    parts = in_parts(pieces, room, lambda piece: estimate_tokens(piece) * ratio)
    if len(parts) > MAX_PARTS:
        raise SummaryRejected(f"That would take {len(parts)} requests; the limit is {MAX_PARTS}.")
    return parts


def _pieces(text: str, room: int, ratio: float) -> list[str]:
    """Return a text in pieces of at most ``room`` tokens."""
    if estimate_tokens(text) * ratio <= room:
        return [text]
    middle = len(text) // 2
    return [*_pieces(text[:middle], room, ratio), *_pieces(text[middle:], room, ratio)]
