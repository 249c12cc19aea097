"""A turn being answered in this process: its committed text, its followers, how to stop it. Turns as stream events."""

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from rag_assistant.llm.calls import ModelCall
from rag_assistant.records import Conversation, Event, Question, Step, Turn, turn_of
from rag_assistant.records.errors import AssistantError, Overloaded
from rag_assistant.records.views import StartEvent, data_of, turn_data, view_of

HEARTBEAT_INTERVAL_SECONDS = 15.0
LAST_EVENTS = ("end", "error")


def step_events(turn: Turn, steps: Sequence[Step]) -> list[Event]:
    """Return the events that show tool calls with their results."""
    return [Event("step", data_of(step) | _ids(turn)) for step in steps]


def _ids(turn: Turn) -> dict[str, int]:
    return {"conversation_id": turn.conversation_id, "turn_id": turn.id, "turn": turn.number}


def start_event(turn: Turn) -> Event:
    """Return the event with what is known before the first text."""
    return Event("start", data_of(view_of(StartEvent, turn)) | {"status": "running"})


def last_event(turn: Turn) -> Event:
    """Return the event that ends a turn's stream: ``error`` after a failure, otherwise ``end``."""
    return Event("error" if turn.error_type else "end", turn_data(turn), end_position(turn))


def end_position(turn: Turn) -> int:
    """Return the id of the event that ends a turn's stream: the length of the text plus one."""
    return len(turn.answer) + 1


def stored_events(turn: Turn, after: int) -> list[Event]:
    """Return the events of a finished turn, from character ``after`` of its answer on."""
    start = [start_event(turn)] if turn.history is not None else []
    text = turn.answer[after:]
    token = [Event("token", {"text": text}, len(turn.answer))] if text else []
    return [*start, *step_events(turn, turn.steps), *token, last_event(turn)]


def stateless_turn(turn_id: int, question: Question, conversation: Conversation) -> Turn:
    """Return the turn of a question in a conversation that isn't stored."""
    return replace(turn_of(question, conversation, turn_id, datetime.now(UTC)), number=conversation.turns + 1)


class LiveTurn:
    """Delivers committed text to all followers, in the same order.

    ``turn`` is the turn as known so far, ``call`` ends its model requests, from any thread. ``failure`` is why text
    couldn't be committed: no more of it is. ``followers`` is the current number of followers. ``receipt`` is that of
    its newest request.
    """

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.call = ModelCall()
        self.receipt: dict[str, Any] | None = None
        # Its number in the person's limits.
        self.place: int | None = None
        self._changed = threading.Condition()
        self._state: Event | None = None
        self._start: Event | None = None
        self._steps: list[Event] = []
        self._parts: list[str] = []
        self._log: list[Event] = []
        self.length = 0
        self.failure: AssistantError | None = None
        self.lead = ""  # How quotes begin, unless as usual.
        self.gap = ""  # What separates text from what is before it.
        self._opened = time.monotonic()
        self.first_text_seconds: float | None = None
        self.ended = threading.Event()
        self.followers = 0

    @property
    def log_name(self) -> str:
        """The turn's name in the log."""
        return f"Turn {self.turn.id}" if self.turn.id > 0 else f"Unstored turn {-self.turn.id}"

    def note(self, sentence: str) -> None:
        """Add a note on how the answer came about, once."""
        if sentence not in self.turn.notes:
            self.turn = replace(self.turn, notes=(*self.turn.notes, sentence))

    def tell(self, what: str, sentence: str, **figures: int) -> None:
        """Show what the answer is waiting for, and how far that is."""
        state = Event("state", {"state": what, "message": sentence} | figures | _ids(self.turn))
        with self._changed:
            self._state = state
            self._show(state)

    def begin(self, start: Event) -> None:
        """Show what is known before the first text; followers who have seen that get the changes as an ``update``."""
        with self._changed:
            previous, self._state, self._start = self._start, None, start
            if start != previous:
                self._show(start if previous is None else Event("update", start.data))

    def add_step(self, step: Event) -> None:
        """Show a committed tool call with its result."""
        with self._changed:
            self._steps.append(step)
            self._show(step)

    def add(self, text: str) -> None:
        """Show committed text; ``length`` is the number of characters shown."""
        with self._changed:
            if self.first_text_seconds is None:
                self.first_text_seconds = time.monotonic() - self._opened
            self._parts.append(text)
            self.length += len(text)
            self._show(Event("token", {"text": text}, self.length))

    def finish(self, last: Event) -> None:
        """Show the last event."""
        with self._changed:
            self._show(last)
        self.ended.set()

    def text(self) -> str:
        """Return the whole text so far."""
        return "".join(self._parts)

    def follow(self, after: int = 0, heartbeat_seconds: float = HEARTBEAT_INTERVAL_SECONDS) -> Iterator[Event | None]:
        """Yield the answer's events from character ``after`` on, merged between two reads; ``None`` is a heartbeat."""
        with self._changed:
            token, seen = Event("token", {"text": self.text()}, self.length), len(self._log)
            last = [event for event in self._log[-1:] if event.name in LAST_EVENTS]
            so_far = (self._state, self._start, *self._steps, token, *last)
            news = [event for event in so_far if event is not None]
            self.followers += 1
        try:
            while True:
                yield from _from(after, news)
                if news and news[-1].name in LAST_EVENTS:
                    return
                with self._changed:
                    while len(self._log) == seen and self._changed.wait(heartbeat_seconds):
                        pass
                    news, seen = _joined(self._log[seen:]), len(self._log)
                if not news:
                    yield None
        finally:
            with self._changed:
                self.followers -= 1

    def _show(self, event: Event) -> None:
        """Pass an event to all followers; the lock is held."""
        self._log.append(event)
        self._changed.notify_all()


def _joined(events: Iterable[Event]) -> list[Event]:
    """Return events with consecutive texts joined."""
    joined: list[Event] = []
    for event in events:
        if event.name == "token" and joined and joined[-1].name == "token":
            text = joined.pop().data["text"] + event.data["text"]
            joined.append(Event("token", {"text": text}, event.position))
        else:
            joined.append(event)
    return joined


def _from(after: int, events: Iterable[Event]) -> Iterator[Event]:
    """Yield events without the first ``after`` characters of the answer."""
    for event in events:
        if event.name != "token" or event.position is None:
            yield event
            continue
        text = event.data["text"]
        unseen = text[max(0, after - (event.position - len(text))) :]
        if unseen:
            yield event if len(unseen) == len(text) else Event("token", {"text": unseen}, event.position)


class LiveTurns:
    """The turns that run in this process, at most ``limit`` at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # A turn is committed just before it is entered here; holding this, one sees both or neither.
        self.beginning = threading.Lock()
        # For turns that aren't stored: below every database id.
        self.stateless_ids = itertools.count(-1, -1)
        self._lock = threading.Lock()
        self._turns: dict[int, LiveTurn] = {}
        # Their end couldn't be stored, so the database says that they are running.
        self._lost: dict[int, LiveTurn] = {}
        self._reserved = 0

    def reserve(self) -> None:
        """Reserve a place for a turn about to be accepted. Raises Overloaded if there is none."""
        with self._lock:
            if len(self._turns) + self._reserved >= self.limit:
                raise Overloaded(self.limit)
            self._reserved += 1

    def release(self) -> None:
        """Release an unused place."""
        with self._lock:
            self._reserved -= 1

    def enter(self, turn_id: int, live: LiveTurn) -> None:
        """Use a reserved place."""
        with self._lock:
            self._reserved -= 1
            self._turns[turn_id] = live

    def leave(self, turn_id: int, live: LiveTurn, *, stored: bool) -> None:
        """Release the place of a finished turn; a retry may have reused its number meanwhile."""
        with self._lock:
            if not stored:
                self._lost[turn_id] = live
            if self._turns.get(turn_id) is live:
                del self._turns[turn_id]

    def get(self, turn_id: int) -> LiveTurn | None:
        """Return a running turn, or one that ended but couldn't be stored."""
        return self._turns.get(turn_id) or self._lost.get(turn_id)

    def all(self) -> list[LiveTurn]:
        """Return every running turn."""
        with self._lock:
            return list(self._turns.values())
