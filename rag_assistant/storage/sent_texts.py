"""Texts that were sent to a model, each once in a conversation, by its hash: passages, instructions, tools.

A passage is kept as a reference to its chunks, and as text from the moment on at which these go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, select, text, update

from rag_assistant.document_records import table_head_of
from rag_assistant.history.references import MIN_SHARED_CHARS, key_of
from rag_assistant.records import Source
from rag_assistant.storage.tables import chunks, documents, sent_texts

# The sources of a turn: field by field, or, from before there were keys, one by one.
Kept = Any

KEYS_AT_ONCE = 500
# What most sources say is not kept with each of them.
UNSAID: dict[str, Any] = dict.fromkeys(("page", "section", "cited_in")) | {
    "start": 0,
    "text": "",
    "score": 0.0,
    "cited": False,
    "doubts": (),
    "offered": (),
}

_OWN = sent_texts.c.conversation_id == bindparam("conversation")
_THESE = _OWN & sent_texts.c.key.in_(bindparam("keys", expanding=True))
_KNOWN = select(sent_texts.c.key).where(_THESE)
_TEXTS = select(sent_texts.c.key, sent_texts.c.text).where(_THESE)
_CHUNKS = (
    select(sent_texts.c.key, chunks.c.start, chunks.c.end, chunks.c.text, chunks.c.gap)
    .join(
        chunks,
        and_(
            chunks.c.document_id == sent_texts.c.document_id,
            chunks.c.start >= sent_texts.c.start,
            chunks.c.start < sent_texts.c.end,
        ),
    )
    .where(_THESE)
    .order_by(sent_texts.c.key, chunks.c.start)
)
_INSERT = text(
    'INSERT INTO sent_texts (conversation_id, "key", text, document_id, start, "end") '
    "VALUES (:conversation, :key, :text, :document, :start, :end) ON CONFLICT DO NOTHING"
)
_AS_TEXT = (
    update(sent_texts)
    .where(_OWN, sent_texts.c.key == bindparam("this"))
    .values(text=bindparam("new_text"), document_id=None, start=None, end=None)
)


def keep_texts(
    connection: Connection, conversation_id: int, texts: Mapping[str, str], sources: Sequence[Source] = ()
) -> None:
    """Keep texts by their keys, those of ``sources`` as references where their chunks still say the same."""
    known = set(connection.execute(_KNOWN, {"conversation": conversation_id, "keys": list(texts)}).scalars())
    new = {key: one for key, one in texts.items() if key not in known}
    if not new:
        return
    passages = {key: one for one in sources if (key := key_of(one.text)) in new}
    if passages:
        _hold(connection, {one.document_id for one in passages.values()})
    rows = [_row(key, one, passages.get(key)) | {"conversation": conversation_id} for key, one in new.items()]
    connection.execute(_INSERT, rows)
    found = _made_of_chunks(connection, conversation_id, passages)
    _write_out(connection, conversation_id, {key: new[key] for key in passages if found.get(key) != new[key]})


def load_texts(connection: Connection, conversation_id: int, keys: Collection[str]) -> dict[str, str]:
    """Return the texts of a conversation with some keys."""
    if not keys:
        return {}
    rows = connection.execute(_TEXTS, {"conversation": conversation_id, "keys": list(keys)}).all()
    texts = {row.key: row.text for row in rows}
    return texts | _made_of_chunks(connection, conversation_id, [key for key, found in texts.items() if found is None])


def keep_passages_of(connection: Connection, document_id: int) -> None:
    """Keep as text what was sent of a document, before its chunks go."""
    _hold(connection, [document_id], exclusively=True)
    rows = connection.execute(
        select(sent_texts.c.conversation_id, sent_texts.c.key)
        .where(sent_texts.c.document_id == document_id)
        .order_by(sent_texts.c.conversation_id)
    ).all()
    for conversation_id, own in groupby(rows, itemgetter(0)):
        for keys in _some_at_a_time([row.key for row in own]):
            _write_out(connection, conversation_id, _made_of_chunks(connection, conversation_id, keys))


def copy_texts(connection: Connection, origin: int, made: int) -> None:
    """Keep for a conversation what is kept for another one."""
    names = [column.name for column in sent_texts.columns if column.name != "conversation_id"]
    own = select(bindparam("made", made), *(sent_texts.c[name] for name in names))
    own = own.where(sent_texts.c.conversation_id == origin)
    connection.execute(sent_texts.insert().from_select(["conversation_id", *names], own))


def drop_texts(connection: Connection, conversation_id: int, but: Collection[str]) -> None:
    """Forget all texts of a conversation ``but`` those with some keys."""
    own = select(sent_texts.c.key).where(sent_texts.c.conversation_id == conversation_id)
    unused = [key for key in connection.execute(own).scalars() if key not in but]
    for keys in _some_at_a_time(unused):
        connection.execute(delete(sent_texts).where(_THESE), {"conversation": conversation_id, "keys": keys})


def as_kept(sources: Sequence[Source]) -> Kept:
    """Return sources as a turn keeps them: field by field, with the keys of their texts."""
    apart = texts_of(sources)
    fields: Kept = {name: [getattr(one, name) for one in sources] for name in Source.__slots__ if name != "text"}
    fields["key"] = [key if (key := key_of(one.text)) in apart else None for one in sources]
    fields["text"] = [None if key else one.text for key, one in zip(fields["key"], sources, strict=True)]
    return {name: values for name, values in fields.items() if any(values)}


def texts_of(sources: Iterable[Source]) -> dict[str, str]:
    """Return the texts of sources that are kept apart, by their keys."""
    return {key_of(one.text): one.text for one in sources if len(one.text) >= MIN_SHARED_CHARS}


def load_sources(
    connection: Connection, conversation_id: int, kept: Sequence[Kept | None], *, cited: bool = False
) -> list[tuple[Source, ...]]:
    """Return the sources that some turns of a conversation keep, turn by turn; with ``cited`` only those."""
    chosen = [[one for one in _one_by_one(sources) if one.get("cited") or not cited] for sources in kept]
    keys = {one["key"] for sources in chosen for one in sources if one.get("key")}
    texts = load_texts(connection, conversation_id, keys)
    return [tuple(_source(one, texts) for one in sources) for sources in chosen]


def keys_in(kept: Kept | None) -> Iterable[str]:
    """Return the keys of the texts of sources."""
    return (one["key"] for one in _one_by_one(kept) if one.get("key"))


def _row(key: str, text: str, passage: Source | None) -> dict[str, Any]:
    if passage is None:
        return {"key": key, "text": text, "document": None, "start": None, "end": None}
    return {"key": key, "text": None, "document": passage.document_id, "start": passage.start, "end": passage.end}


def _some_at_a_time(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))


def _one_by_one(kept: Kept | None) -> list[dict[str, Any]]:
    """Return the fields of each source; older ones are kept so."""
    if isinstance(kept, dict):
        return [dict(zip(kept, values, strict=True)) for values in zip(*kept.values(), strict=True)]
    return kept or []


def _source(fields: dict[str, Any], texts: Mapping[str, str]) -> Source:
    values = UNSAID | {name: value for name, value in fields.items() if name != "key"}
    if fields.get("key"):
        values["text"] = texts[fields["key"]]
    return Source(**values)


def _made_of_chunks(connection: Connection, conversation_id: int, keys: Collection[str]) -> dict[str, str]:
    """Return the texts of passages as their chunks have them now; the head of a table stands in front alone."""
    texts: dict[str, str] = {}
    if keys:
        for row in connection.execute(_CHUNKS, {"conversation": conversation_id, "keys": list(keys)}):
            if row.key in texts:
                texts[row.key] += (row.gap or "") + row.text.removeprefix(table_head_of(row.text, row.start, row.end))
            else:
                texts[row.key] = row.text
    return texts


def _write_out(connection: Connection, conversation_id: int, texts: Mapping[str, str]) -> None:
    rows = [{"conversation": conversation_id, "this": key, "new_text": one} for key, one in texts.items()]
    if rows:
        connection.execute(_AS_TEXT, rows)


def _hold(connection: Connection, document_ids: Iterable[int], *, exclusively: bool = False) -> None:
    """Let nobody else change the chunks of documents until the end; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        own = select(documents.c.id).where(documents.c.id.in_(document_ids)).order_by(documents.c.id)
        connection.execute(own.with_for_update(read=not exclusively)).all()
