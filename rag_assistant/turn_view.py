"""A turn as callers see it: one shape for the JSON answer, the stream's events, and the lists. Pure."""

from __future__ import annotations

from typing import Any

from rag_assistant.errors import AssistantError
from rag_assistant.history import HistoryReceipt, notice_for
from rag_assistant.records import Event, Turn


def history_figures(receipt: HistoryReceipt, passage_tokens: int, limit: int | None) -> dict[str, Any]:
    """Return the ``history`` object of an answer. Token figures are estimates, ``limit`` is what the model takes."""
    tokens = receipt.tokens
    parts = {
        "system": tokens["system"],
        "history": tokens["history"],
        "passages": passage_tokens,
        "question": tokens["question"] - passage_tokens,
    }
    return {
        "max_history_turns": receipt.max_history_turns,
        "strategy": receipt.strategy,
        "turns_total": receipt.turns_total,
        "turns_kept": receipt.turns_kept,
        "turns_dropped": receipt.turns_dropped,
        "messages_dropped": receipt.messages_dropped,
        "first_kept_turn": receipt.first_kept_turn,
        "reason": receipt.reason,
        "tokens": parts | {"total": sum(parts.values()), "limit": limit},
    }


def turn_data(turn: Turn) -> dict[str, Any]:
    """Return a turn as it is answered and listed."""
    history = turn.history
    trimmed = history is not None and history["turns_dropped"] > 0
    data: dict[str, Any] = {
        "conversation_id": turn.conversation_id,
        "turn_id": turn.id,
        "turn": turn.number,
        "status": turn.status,
        "question": turn.question,
        "answer": turn.answer,
        "history_trimmed": trimmed,
        "notice": notice_for(history["turns_kept"]) if history is not None and trimmed else None,
        "history": history,
        "sources": [source.as_dict() for source in turn.sources],
        "usage": turn.usage,
        "model": turn.model,
        "created_at": turn.created_at.isoformat(),
        "finished_at": turn.finished_at.isoformat() if turn.finished_at else None,
    }
    if turn.error_type is not None:
        data["error"] = {"type": turn.error_type, "message": turn.error_message}
    return data


def state_event(turn: Turn, state: str, message: str) -> Event:
    """Return the event that says what is awaited before the answer begins."""
    place = {"conversation_id": turn.conversation_id, "turn_id": turn.id, "turn": turn.number}
    return Event("state", {"state": state, "message": message} | place)


def start_event(turn: Turn) -> Event:
    """Return the event that says what is known before the first text."""
    data = turn_data(turn)
    for name in ("answer", "usage", "finished_at", "error"):
        data.pop(name, None)
    data["trimmed"] = data["history_trimmed"]
    data["dropped"] = turn.history["messages_dropped"] if turn.history else 0
    return Event("start", data | {"status": "running"})


def last_event(turn: Turn) -> Event:
    """Return the event that ends a turn's stream: ``error`` if something went wrong, else ``end``."""
    return Event("error" if turn.error_type else "end", turn_data(turn))


def replay(turn: Turn, after: int) -> list[Event]:
    """Return the events of a turn that has ended, from character ``after`` of its answer on."""
    events = []
    if turn.history is not None:
        events.append(start_event(turn))
    if turn.answer[after:]:
        events.append(Event("token", {"text": turn.answer[after:]}, len(turn.answer)))
    return [*events, last_event(turn)]


def error_data(error: AssistantError) -> dict[str, str]:
    """Return an error in the one shape in which it is shown."""
    return {"type": type(error).__name__, "message": str(error)}
