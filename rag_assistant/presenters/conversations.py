"""A conversation as JSON. Pure."""

from __future__ import annotations

from typing import Any

from rag_assistant.records import Conversation, Unset


def conversation_data(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as it is listed; what it decides for itself stands there if it does."""
    data = {
        "conversation_id": conversation.id,
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "turns": conversation.turns,
        "pinned": conversation.pinned,
        "scope": conversation.scope.as_dict(),
    }
    if not isinstance(conversation.max_history_turns, Unset):
        data["max_history_turns"] = conversation.max_history_turns
    if conversation.deleted_at is not None:
        data["deleted_at"] = conversation.deleted_at.isoformat()
    for name in ("history_strategy", "on_overflow", "branched_from"):
        if getattr(conversation, name) is not None:
            data[name] = getattr(conversation, name)
    return data
