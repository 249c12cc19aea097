"""Texts that were sent to a model, by their hash: passages, instructions, tools.

Each is kept once for a block of turns, so that what is not used any more is found by reading those alone. A passage is
kept as a reference to its chunks, and as text from the moment on at which these go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec.structs import astuple
from sqlalchemy import Connection, bindparam, delete, select, update

from rag_assistant.history.references import MIN_SHARED_CHARS, key_of
from rag_assistant.records import Source, lead_of
from rag_assistant.storage.tables import documents, sent_texts, turns

# The sources of a turn: field by field, or, from before there were keys, one by one.
Kept = Any

KEYS_AT_ONCE = 500
# More of them take less room, since instructions and tools are kept for each block; fewer are read sooner.
TURNS_IN_A_BLOCK = 100
# What most sources say is not kept with each of them.
UNSAID: dict[str, Any] = dict.fromkeys(("page", "section", "cited_in")) | {
    "start": 0,
    "text": "",
    "score": 0.0,
    "cited": False,
    "doubts": (),
    "offered": (),
}

# These run for every answer, so they are handed to the driver as they are.
_INSERT = (
    'INSERT INTO sent_texts (conversation_id, block, "key", text, document_id, start, "end") VALUES {rows} '
    'ON CONFLICT DO NOTHING RETURNING "key"'
)
_TEXTS = 'SELECT "key", text FROM sent_texts WHERE conversation_id = {mark} AND block = {mark} AND "key" IN ({marks})'
_CHUNKS = (
    'SELECT sent."key", chunks.start, chunks."end", chunks.text, chunks.gap FROM sent_texts AS sent JOIN chunks '
    'ON chunks.document_id = sent.document_id AND chunks.start >= sent.start AND chunks.start < sent."end" '
    'WHERE sent.conversation_id = {mark} AND sent.block = {mark} AND sent."key" IN ({marks}) '
    'ORDER BY sent."key", chunks.start'
)
_OWN = (sent_texts.c.conversation_id == bindparam("conversation")) & (sent_texts.c.block == bindparam("own_block"))
_KEYS = select(sent_texts.c.key).where(_OWN)
_AS_TEXT = (
    update(sent_texts)
    .where(_OWN, sent_texts.c.key == bindparam("this"))
    .values(text=bindparam("new_text"), document_id=None, start=None, end=None)
)


class Block(NamedTuple):
    """Turns of a conversation that share the texts that were sent for them."""

    conversation_id: int
    number: int

    def as_params(self) -> dict[str, int]:
        """Return what ``OF_BLOCK`` asks for: the numbers that its turns may have."""
        first = self.number * TURNS_IN_A_BLOCK
        return {"conversation": self.conversation_id, "first": first, "last": first + TURNS_IN_A_BLOCK - 1}


# Whether a turn belongs to a block.
OF_BLOCK = (turns.c.conversation_id == bindparam("conversation")) & turns.c.number.between(
    bindparam("first"), bindparam("last")
)


def block_of(conversation_id: int, number: int) -> Block:
    """Return the block of turn ``number``."""
    return Block(conversation_id, number // TURNS_IN_A_BLOCK)


def keep_texts(connection: Connection, block: Block, texts: Mapping[str, str], sources: Sequence[Source] = ()) -> None:
    """Keep texts by their keys, those of ``sources`` as references where their chunks still say the same."""
    passages = {key: one for one in sources if (key := key_of(one.text)) in texts}
    if passages:
        _hold(connection, {one.document_id for one in passages.values()})
    new: set[str] = set()
    for keys in _some_at_a_time(list(texts)):
        rows = [_row(block, key, texts[key], passages.get(key)) for key in keys]
        row_of_marks = f"({_marks(connection, len(rows[0]))})"
        statement = _INSERT.format(rows=", ".join([row_of_marks] * len(rows)))
        new |= {key for (key,) in connection.exec_driver_sql(statement, tuple(chain.from_iterable(rows)))}
    mine = [key for key in passages if key in new]
    found = _made_of_chunks(connection, block, mine)
    _write_out(connection, block, {key: texts[key] for key in mine if found.get(key) != texts[key]})


def load_texts(connection: Connection, block: Block, keys: Collection[str]) -> dict[str, str]:
    """Return the texts of a block with some keys."""
    texts: dict[str, str] = {}
    for some in _some_at_a_time(list(keys)):
        texts.update(_query(connection, _TEXTS, block, some))
    return texts | _made_of_chunks(connection, block, [key for key, found in texts.items() if found is None])


def load_texts_of_turns(
    connection: Connection, conversation_id: int, keys: Iterable[tuple[int, str]]
) -> dict[str, str]:
    """Return the texts with some keys, each given behind the number of a turn that refers to it."""
    of_blocks: dict[Block, set[str]] = {}
    for number, key in keys:
        of_blocks.setdefault(block_of(conversation_id, number), set()).add(key)
    # A text is the same in every block.
    return {key: text for block, own in of_blocks.items() for key, text in load_texts(connection, block, own).items()}


def keep_passages_of(connection: Connection, document_id: int) -> None:
    """Keep as text what was sent of a document, before its chunks go."""
    _hold(connection, [document_id], exclusively=True)
    rows = connection.execute(
        select(sent_texts.c.conversation_id, sent_texts.c.block, sent_texts.c.key)
        .where(sent_texts.c.document_id == document_id)
        .order_by(sent_texts.c.conversation_id, sent_texts.c.block)
    ).all()
    for place, own in groupby(rows, itemgetter(0, 1)):
        for keys in _some_at_a_time([row.key for row in own]):
            _write_out(connection, Block(*place), _made_of_chunks(connection, Block(*place), keys))


def copy_texts(connection: Connection, origin: int, last: Block) -> None:
    """Keep for a conversation what is kept for the blocks of another one, up to its ``last``."""
    names = [column.name for column in sent_texts.columns if column.name != "conversation_id"]
    own = select(bindparam("made", last.conversation_id), *(sent_texts.c[name] for name in names))
    own = own.where(sent_texts.c.conversation_id == origin, sent_texts.c.block <= last.number)
    connection.execute(sent_texts.insert().from_select(["conversation_id", *names], own))


def drop_texts(connection: Connection, block: Block, but: Collection[str]) -> None:
    """Forget all texts of a block ``but`` those with some keys."""
    own = {"conversation": block.conversation_id, "own_block": block.number}
    unused = [key for (key,) in connection.execute(_KEYS, own) if key not in but]
    for keys in _some_at_a_time(unused):
        connection.execute(delete(sent_texts).where(_OWN, sent_texts.c.key.in_(keys)), own)


def as_kept(sources: Sequence[Source]) -> Kept:
    """Return sources as a turn keeps them: field by field, with the keys of their texts."""
    if not sources:
        return {}
    apart = texts_of(sources)
    fields: Kept = dict(zip(Source.__struct_fields__, zip(*map(astuple, sources), strict=True), strict=True))
    fields["key"] = [key if (key := key_of(one.text)) in apart else None for one in sources]
    fields["text"] = [None if key else one.text for key, one in zip(fields["key"], sources, strict=True)]
    return {name: values for name, values in fields.items() if any(values)}


def texts_of(sources: Iterable[Source]) -> dict[str, str]:
    """Return the texts of sources that are kept apart, by their keys."""
    return {key_of(one.text): one.text for one in sources if len(one.text) >= MIN_SHARED_CHARS}


def load_sources(
    connection: Connection, conversation_id: int, kept: Sequence[tuple[int, Kept | None]], *, cited: bool = False
) -> list[tuple[Source, ...]]:
    """Return the sources that some turns of a conversation keep, given by number; with ``cited`` only those."""
    chosen = [
        (number, [one for one in _one_by_one(sources) if one.get("cited") or not cited]) for number, sources in kept
    ]
    keys = ((number, one["key"]) for number, sources in chosen for one in sources if one.get("key"))
    texts = load_texts_of_turns(connection, conversation_id, keys)
    return [tuple(_source(one, texts) for one in sources) for _, sources in chosen]


def keys_in(kept: Kept | None) -> Iterable[str]:
    """Return the keys of the texts of sources."""
    return (one["key"] for one in _one_by_one(kept) if one.get("key"))


def _row(block: Block, key: str, text: str, passage: Source | None) -> tuple[Any, ...]:
    if passage is None:
        return *block, key, text, None, None, None
    return *block, key, None, passage.document_id, passage.start, passage.end


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


def _made_of_chunks(connection: Connection, block: Block, keys: Collection[str]) -> dict[str, str]:
    """Return the texts of passages as their chunks have them now; the head of a table stands in front alone."""
    texts: dict[str, str] = {}
    for some in _some_at_a_time(list(keys)):
        for key, start, end, text, gap in _query(connection, _CHUNKS, block, some):
            if key in texts:
                texts[key] += (gap or "") + text.removeprefix(lead_of(text, start, end))
            else:
                texts[key] = text
    return texts


def _query(connection: Connection, statement: str, block: Block, keys: Sequence[str]) -> Iterable[Any]:
    mark, marks = _marks(connection, 1), _marks(connection, len(keys))
    return connection.exec_driver_sql(statement.format(mark=mark, marks=marks), (*block, *keys)).all()


def _marks(connection: Connection, count: int) -> str:
    return ", ".join(["?" if connection.dialect.name == "sqlite" else "%s"] * count)


def _write_out(connection: Connection, block: Block, texts: Mapping[str, str]) -> None:
    own = {"conversation": block.conversation_id, "own_block": block.number}
    rows = [own | {"this": key, "new_text": one} for key, one in texts.items()]
    if rows:
        connection.execute(_AS_TEXT, rows)


def _hold(connection: Connection, document_ids: Iterable[int], *, exclusively: bool = False) -> None:
    """Let nobody else change the chunks of documents until the end; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        own = select(documents.c.id).where(documents.c.id.in_(document_ids)).order_by(documents.c.id)
        connection.execute(own.with_for_update(read=not exclusively)).all()
