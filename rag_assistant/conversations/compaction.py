"""Summarise the older turns of a conversation, so that the summary goes in their place: by the model, or by extract.

The turns stay where they are; undoing a compaction brings the model's view of them back.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from rag_assistant.conversations.extract import EXTRACT, extract, shortened_record
from rag_assistant.conversations.model_profile import ModelProfile
from rag_assistant.conversations.prompts import summary_request, turn_text
from rag_assistant.conversations.summary_lines import SummaryLine, read_lines, with_turns
from rag_assistant.conversations.viewed_history import ViewedHistory
from rag_assistant.history import FittedHistory, checked_summary, estimate_tokens, turns_kept_by_compaction
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
# A summary may take this share of what a request may have, and this much at most; beyond that it is shortened.
MAX_SUMMARY_SHARE = 0.25
MAX_SUMMARY_TOKENS = 4000

COMPACTED = "Older turns were summarised. You can read, edit and undo the summary."
EXTRACTED = "Whole sentences of the older turns take their place. You can read, edit and undo this summary."
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
    ) -> tuple[Conversation, str]:
        """Put a summary in the place of all turns before number ``keep_from``.

        Return the conversation, and a sentence about its summary. Without a model, or where it fails, the summary is an
        extract: whole sentences of the turns.

        A summary that is there already is extended: its text stays, the turns since are added to it; only where it
        gets too long the whole of it is shortened. Pinned turns and those that wait for a person stay as they are.
        ``running`` is the number of the turn that needs the room.

        Raises NothingToSummarise, HistoryChanged or AnswerStopped; then nothing has changed.
        """
        turns = self.turns_to_summarise(conversation, keep_from)
        if not turns:
            raise NothingToSummarise("There are no older turns to summarise.")
        written_by, note = EXTRACT, EXTRACTED
        covered = [turn.number for turn in turns]
        if profile.endpoint.quotes:
            record = _extended(conversation, turns, profile)
        else:
            try:
                record = self._written(conversation, turns, profile, call, on_progress)
                written_by, note = profile.endpoint.model or "a model", COMPACTED
            except (ModelError, SummaryRejected) as error:
                record = _extended(conversation, turns, profile)
                note = f"{NOT_SUMMARISED} {cause_alone(str(error))} {EXTRACTED}"
        log.info("Conversation %s: turns up to %s were summarised (%s).", conversation.id, covered[-1], written_by)
        return self.history.keep_summary(conversation, record, covered, written_by, running), note

    def _written(
        self,
        conversation: Conversation,
        turns: Sequence[PastTurn],
        profile: ModelProfile,
        call: ModelCall,
        on_progress: Callable[[str], None],
    ) -> str:
        """Return the summary that a model writes. Raises SummaryRejected, AnswerStopped, a ModelError."""
        texts = [turn_text(turn.number, turn.messages) for turn in turns]
        summary = conversation.summary
        parts = _parts(texts, _room(profile, summary.text if summary else ""), profile.token_ratio)
        try:
            return self._record_of(conversation, turns, parts, profile, call, on_progress)
        finally:
            self.conversations.show_operation(conversation.id, None)

    def turns_to_summarise(self, conversation: Conversation, keep_from: int) -> list[PastTurn]:
        """Return the turns that a compaction would put a summary in the place of."""
        turns = self.history.between(conversation, conversation.view_start, keep_from - 1)
        return [turn for turn in turns if not (turn.pinned or turn.waiting_call)]

    def _record_of(
        self,
        conversation: Conversation,
        turns: Sequence[PastTurn],
        parts: Sequence[Sequence[str]],
        profile: ModelProfile,
        call: ModelCall,
        on_progress: Callable[[str], None],
    ) -> str:
        """Return the summary so far with that of each part behind it, shortened where it gets too long."""
        record = conversation.summary.text if conversation.summary else ""
        about = {
            "what": "compact",
            "first_turn": turns[0].number,
            "last_turn": turns[-1].number,
            "parts": len(parts),
        }
        lines = [SummaryLine((turn.number,), "\n".join(map(text_in, turn.messages))) for turn in turns]

        def tell(operation: dict[str, Any]) -> None:
            self.conversations.show_operation(conversation.id, operation)
            on_progress(operation_in_words(operation))

        for number, part in enumerate(parts, 1):
            tell(about | {"part": number})
            written = with_turns(self._summary_of(part, record or None, profile, call), lines)
            record = "\n".join(filter(None, (record, written)))
        if estimate_tokens(record) * profile.token_ratio > _max_summary_tokens(profile):
            tell(about | {"what": "shorten", "part": len(parts)})
            record = with_turns(self._summary_of([record], None, profile, call), read_lines(record))
        return record

    def _summary_of(self, part: Sequence[str], prior: str | None, profile: ModelProfile, call: ModelCall) -> str:
        """Return what the model writes about one part. Raises SummaryRejected if that cannot stand for it."""
        source_tokens = sum(estimate_tokens(text) for text in part)
        limits = MAX_SUMMARY_PART_TOKENS, profile.answer_tokens or MAX_SUMMARY_PART_TOKENS, _max_summary_tokens(profile)
        request = ModelRequest(tuple(summary_request(part, prior)), int(min(limits)), profile.temperature)
        text, reply = collect(self.models.stream(profile.endpoint, request, call))
        if reply.tool_calls:
            raise ModelFailed("The model called a tool instead of writing a summary.")
        return checked_summary(text, source_tokens, estimate_tokens)


def _extended(conversation: Conversation, turns: Sequence[PastTurn], profile: ModelProfile) -> str:
    """Return the summary so far with an extract of some turns behind it, shortened where it gets too long."""
    max_tokens = _max_summary_tokens(profile) / profile.token_ratio
    summary = conversation.summary.text if conversation.summary else ""
    record = "\n".join(filter(None, (summary, extract(turns, max_tokens))))
    return record if estimate_tokens(record) <= max_tokens else shortened_record(record, max_tokens)


def operation_in_words(operation: Mapping[str, Any]) -> str:
    """Return what is being done with a conversation, as a sentence."""
    if operation["what"] == "shorten":
        return "Shortening the summary."
    of = f", part {operation['part']} of {operation['parts']}" if operation["parts"] > 1 else ""
    return f"Summarising {span_in_words(operation['first_turn'], operation['last_turn'])}{of}."


def first_kept_after_compaction(fitted: FittedHistory, next_turn: int) -> int:
    """Return the number of the first turn that a compaction leaves as it is: it keeps half of what fits."""
    border = max((run.last_turn for run in fitted.receipt.left_out if run.trimmed), default=0)
    newest = [number for number in fitted.receipt.kept_turns if number > border]
    keep = turns_kept_by_compaction(len(newest))
    return newest[-keep] if keep else next_turn


def _room(profile: ModelProfile, prior: str) -> int:
    """Return how many tokens of turns go into one call."""
    if profile.max_request_tokens is None:
        return ROOM_WITHOUT_LIMIT
    return max(
        MIN_ROOM_TOKENS,
        int(0.8 * (profile.max_request_tokens - estimate_tokens(prior) * profile.token_ratio)) - MIN_ROOM_TOKENS,
    )


def _max_summary_tokens(profile: ModelProfile) -> float:
    """Return how many tokens a whole summary may have: beside it there must be room for turns."""
    limits = [limit for limit in (profile.max_request_tokens, profile.request_tokens) if limit is not None]
    return min([MAX_SUMMARY_TOKENS, *(limit * MAX_SUMMARY_SHARE for limit in limits)])


def _parts(texts: Sequence[str], room: int, ratio: float) -> list[list[str]]:
    """Return the texts in parts that fit into one call each; one that is too long alone is cut into several.

    Raises SummaryRejected if that takes too many calls.
    """
    parts: list[list[str]] = [[]]
    used = 0.0
    for piece in (piece for text in texts for piece in _pieces(text, room, ratio)):
        tokens = estimate_tokens(piece) * ratio
        if parts[-1] and used + tokens > room:
            parts.append([])
            used = 0.0
        parts[-1].append(piece)
        used += tokens
    if len(parts) > MAX_PARTS:
        raise SummaryRejected(f"That would take {len(parts)} requests; the limit is {MAX_PARTS}.")
    return parts


def _pieces(text: str, room: int, ratio: float) -> list[str]:
    """Return a text in pieces of at most ``room`` tokens."""
    if estimate_tokens(text) * ratio <= room:
        return [text]
    middle = len(text) // 2
    return [*_pieces(text[:middle], room, ratio), *_pieces(text[middle:], room, ratio)]
