"""Pictures of questions: kept once for a block of turns, by their hash, beside the texts that were sent to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from rag_assistant.history.references import key_of
from rag_assistant.records import DataUrl, Message, with_pictures
from rag_assistant.storage.sent_texts import OF_BLOCK, Block, keep_texts
from rag_assistant.storage.tables import messages, turns

# Where a message's row has the keys of its pictures.
IMAGES = "images"
_EXTRAS = (
    select(messages.c.extra)
    .join(turns, turns.c.id == messages.c.turn_id)
    .where(OF_BLOCK, messages.c.position == 0, messages.c.extra.is_not(None))
)


def keep_pictures(connection: Connection, block: Block, pictures: Sequence[DataUrl]) -> list[str]:
    """Keep pictures and return their keys."""
    kept = {key_of(url): url for url in pictures}
    if kept:
        keep_texts(connection, block, kept)
    return [key_of(url) for url in pictures]


def message_of(
    role: str, content: str | None, extra: Mapping[str, Any] | None, picture: Callable[[str], DataUrl]
) -> Message:
    """Return the message of a row, with its pictures."""
    more = dict(extra or {})
    keys = more.pop(IMAGES, ())
    return with_pictures({"role": role, "content": content} | more, [picture(key) for key in keys])


def keys_of_pictures(connection: Connection, block: Block) -> set[str]:
    """Return the keys of all pictures of the turns of a block."""
    rows = connection.execute(_EXTRAS, block.as_params()).all()
    return {key for (extra,) in rows for key in (extra or {}).get(IMAGES, ())}
