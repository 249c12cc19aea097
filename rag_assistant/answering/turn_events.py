"""A turn as the events of its stream. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assistant.records import Event, Step, Turn
from rag_assistant.records.views import StartEvent, data_of, turn_data, view_of


def step_events(turn: Turn, steps: Sequence[Step]) -> list[Event]:
    """Return the events that show tool calls with their results."""
    ids = {"conversation_id": turn.conversation_id, "turn_id": turn.id, "turn": turn.number}
    return [Event("step", data_of(step) | ids) for step in steps]


def state_event(turn: Turn, state: str, message: str) -> Event:
    """Return the event that says what is awaited before the answer begins."""
    ids = {"conversation_id": turn.conversation_id, "turn_id": turn.id, "turn": turn.number}
    return Event("state", {"state": state, "message": message} | ids)


def start_event(turn: Turn) -> Event:
    """Return the event that says what is known before the first text."""
    return Event("start", data_of(view_of(StartEvent, turn)) | {"status": "running"})


def last_event(turn: Turn) -> Event:
    """Return the event that ends a turn's stream: ``error`` if something went wrong, else ``end``."""
    return Event("error" if turn.error_type else "end", turn_data(turn), end_position(turn))


def end_position(turn: Turn) -> int:
    """Return the id of the event that ends a turn's stream: one behind the text, so that the two are told apart."""
    return len(turn.answer) + 1


def replay(turn: Turn, after: int) -> list[Event]:
    """Return the events of a turn that has ended, from character ``after`` of its answer on."""
    events: list[Event] = []
    if turn.history is not None:
        events.append(start_event(turn))
    events += step_events(turn, turn.steps)
    if turn.answer[after:]:
        events.append(Event("token", {"text": turn.answer[after:]}, len(turn.answer)))
    return [*events, last_event(turn)]
