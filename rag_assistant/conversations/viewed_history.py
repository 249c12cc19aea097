"""The earlier turns that a model may see: the interface for answers, whether they are stored or sent along.

``SentHistory`` are those sent along. It decides like the store, and stores nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.history import analyse_history, repair_messages, split_turns
from rag_assistant.records import (
    UNTITLED,
    Conversation,
    DataUrl,
    Message,
    PastTurn,
    Source,
    Summary,
    Turn,
    pictures_in,
    text_in,
)
from rag_assistant.storage.conversations.history import HistoryStore


class SentSummary(Struct, frozen=True):
    """A summary that was sent along, and how many turns and messages it replaces."""

    text: str
    turns: int
    messages: int


class SentHistory:
    """The turns sent along with a question, oldest first; nothing of them is stored or searched.

    ``question`` is what the user said after the last answer, ``iterations`` what follows: tool calls with their
    results, and later user messages. ``open_calls`` are the ids of calls without a result, ``lost`` the places of what
    no model gets: results without a call, and a greeting before the first question.
    """

    def __init__(self, messages: Sequence[Message], summary: SentSummary | None = None) -> None:
        mended = repair_messages(messages)
        # A greeting before the first question: some providers reject a leading answer.
        mended = mended[next((n for n, message in enumerate(mended) if message["role"] == "user"), 0) :]
        still_there = set(map(id, mended))
        self.lost = [n for n, message in enumerate(messages) if id(message) not in still_there]
        split, self.open_calls = split_turns(mended), analyse_history(mended).open_calls
        # A leading system message belongs to no turn; the caller removes it.
        first = summary.turns + 1 if summary else 1
        self._turns = [PastTurn(number, turn) for number, turn in enumerate(split.past, first)]
        questions = list(takewhile(lambda message: message["role"] == "user", split.current))
        self.iterations = split.current[len(questions) :]
        self.question = "\n\n".join(filter(None, map(text_in, questions)))
        self.images = tuple(url for message in questions for url in pictures_in(message))
        self._covered = (summary.turns, summary.messages) if summary else (0, 0)
        moment = datetime.now(UTC)
        stored_summary = Summary(0, 1, summary.turns, summary.text, "a model", moment) if summary else None
        empty = Conversation(0, UNTITLED, moment, moment, first - 1 + len(self._turns), 0, 0)
        self.conversation = self._seen_from(empty, first, stored_summary)

    def past(self, conversation: Conversation, before: int, newest: int | None) -> list[PastTurn]:
        """Return the ``newest`` turns in view before number ``before``, oldest first; ``None`` for all."""
        turns = self.between(conversation, conversation.view_start, before - 1)
        return turns if newest is None else turns[max(0, len(turns) - newest) :]

    def between(self, conversation: Conversation, first: int, last: int) -> list[PastTurn]:
        """Return the turns in view from number ``first`` to ``last``, oldest first."""
        return [turn for turn in self._turns if max(first, conversation.view_start) <= turn.number <= last]

    def pictures(self, _turn: Turn) -> tuple[DataUrl, ...]:
        """Return the pictures sent with the question."""
        return self.images

    def related(self, *_: Any, **__: Any) -> list[Any]:
        """Find nothing: there is no index of what isn't stored, and no owner who has other conversations."""
        return []

    elsewhere = related

    def cited(self, *_: Any) -> dict[int, tuple[Source, ...]]:
        """Return no sources: messages have none."""
        return {}

    def decide(self, *_: Any) -> None:
        """Do nothing."""

    def move_context_start(
        self, _conversation_id: int, _kind: Literal["clear", "reset"], at_turn: int | None = None
    ) -> Conversation:
        """Let the view begin at turn ``at_turn``, without a summary."""
        start = at_turn or self.conversation.turns + 1
        run = self._run("cleared", start - 1) | {"made_room": at_turn is not None}
        seen = self._seen_from(self.conversation, start, None)
        self.conversation = replace(seen, context_start=start, standing_runs=(run,))
        return self.conversation

    def keep_summary(
        self, conversation: Conversation, text: str, covered: Sequence[int], written_by: str, _running: int | None
    ) -> Conversation:
        """Replace the turns ``covered``, and those of the present summary, with a summary."""
        summary = Summary(0, 1, covered[-1], text, written_by, datetime.now(UTC))
        self.conversation = self._seen_from(conversation, covered[-1] + 1, summary)
        return self.conversation

    def _seen_from(self, conversation: Conversation, start: int, summary: Summary | None) -> Conversation:
        seen = [turn for turn in self._turns if turn.number >= start]
        return replace(
            conversation,
            view_start=start,
            visible_turns=len(seen),
            visible_messages=sum(len(turn.messages) for turn in seen),
            summary=summary,
            standing_runs=(self._run("summarised", start - 1),) if summary else (),
        )

    def _run(self, reason: str, last: int) -> dict[str, Any]:
        """Return the turns up to number ``last`` as a run of left-out turns."""
        turns, messages = self._covered
        own = [turn for turn in self._turns if turn.number <= last]
        return {
            "reason": reason,
            "turns": turns + len(own),
            "messages": messages + sum(len(turn.messages) for turn in own),
            "first_turn": 1,
            "last_turn": last,
        }


# What an answer reads of earlier turns, and how it moves the model's view of them.
ViewedHistory: TypeAlias = "HistoryStore | SentHistory"
