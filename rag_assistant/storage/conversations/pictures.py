"""Pictures of questions: kept with their turn, by their hash, by which a receipt refers to them."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from rag_assistant.records import DataUrl, Message, with_pictures
from rag_assistant.storage.tables import pictures

# Where a message's row has the keys of its pictures.
IMAGES = "images"
# The same picture may stand in many turns.
_URL = select(pictures.c.url).where(pictures.c.key == bindparam("key")).limit(1)


def picture_key(url: DataUrl) -> str:
    """Return the key of a picture: 132 bits of its SHA-256."""
    return urlsafe_b64encode(sha256(url.encode()).digest())[:22].decode()


def keep_pictures(connection: Connection, turn_id: int, urls: Sequence[DataUrl]) -> None:
    """Keep the pictures of a turn's question."""
    rows = [{"turn_id": turn_id, "key": key, "url": url} for key, url in {picture_key(u): u for u in urls}.items()]
    if rows:
        connection.execute(insert(pictures), rows)


def load_pictures(connection: Connection, keys: Iterable[str]) -> dict[str, DataUrl]:
    """Return the pictures with some keys."""
    return {key: connection.execute(_URL, {"key": key}).scalar_one() for key in set(keys)}


def message_of(role: str, content: str | None, extra: Mapping[str, Any] | None, urls: Mapping[str, DataUrl]) -> Message:
    """Return the message of a row, with its pictures, given by their keys."""
    more = dict(extra or {})
    keys = more.pop(IMAGES, ())
    return with_pictures({"role": role, "content": content} | more, [urls[key] for key in keys])
