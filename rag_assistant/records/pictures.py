"""Pictures in questions: how a message carries them, in the OpenAI chat format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_assistant.records.base import Message

# Sent and kept as they came.
DataUrl = str
DATA_URL = r"^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$"


def with_pictures(message: Message, pictures: Sequence[DataUrl]) -> Message:
    """Return a message whose text has pictures behind it; without any it stays as it is."""
    if not pictures:
        return message
    parts: list[dict[str, Any]] = [{"type": "text", "text": message["content"] or ""}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    return message | {"content": parts}


def text_in(message: Message) -> str:
    """Return the text of a message, whether it comes whole or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def pictures_in(message: Message) -> tuple[DataUrl, ...]:
    """Return the pictures of a message."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return tuple(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
