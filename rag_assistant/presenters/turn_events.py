"""A turn as the events of its stream. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_assistant.presenters.turns import steps_of, turn_data
from rag_assistant.records import Event, Turn


def step_events(turn: Turn, steps: Sequence[dict[str, Any]]) -> list[Event]:
    """Return the events that show tool calls with their results."""
    ids = {"conversation_id": turn.conversation_id, "turn_id": turn.id, "turn": turn.number}
    return [Event("step", step | ids) for step in steps]


def state_event(turn: Turn, state: str, message: str) -> Event:
    """Return the event that says what is awaited before the answer begins."""
    ids = {"conversation_id": turn.conversation_id, "turn_id": turn.id, "turn": turn.number}
    return Event("state", {"state": state, "message": message} | ids)


def start_event(turn: Turn) -> Event:
    """Return the event that says what is known before the first text."""
    data = turn_data(turn)
    for name in ("answer", "usage", "finished_at", "error", "steps", "support", "doubts"):
        data.pop(name, None)
    data["trimmed"] = data["history_trimmed"]
    data["dropped"] = turn.history["messages_dropped"] if turn.history else 0
    return Event("start", data | {"status": "running"})


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
    events += step_events(turn, steps_of(turn.iterations))
    if turn.answer[after:]:
        events.append(Event("token", {"text": turn.answer[after:]}, len(turn.answer)))
    return [*events, last_event(turn)]
