"""What was sent is found again when a turn is erased: its texts by blocks of turns, and which turns it may hold.

Of a conversation's first hundred turns, and of answers that took several requests, it is said that they may hold any
turn before them: it is looked at when one is erased, as it was until now.
"""

revision = "0024"
down_revision = "0023"

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

TURNS_IN_A_BLOCK = 100
EXCHANGES = 3
ROWS_AT_ONCE = 500
MARKED = sa.text("pinned OR waiting IS NOT NULL")
OF_DOCUMENTS = sa.text("document_id IS NOT NULL")

turns = sa.table(
    "turns",
    *map(sa.column, ("id", "conversation_id", "number")),
    *(sa.column(name, sa.JSON) for name in ("sources", "search")),
)
receipts = sa.table("receipts", sa.column("turn_id"), sa.column("body", sa.JSON))
versions = sa.table(
    "answer_versions", sa.column("turn_id"), *(sa.column(name, sa.JSON) for name in ("figures", "receipt"))
)
messages = sa.table("messages", sa.column("turn_id"), sa.column("position"), sa.column("extra", sa.JSON))
NAMES = ("conversation_id", "block", "key", "text", "document_id", "start", "end")
new_texts, old_texts = (sa.table(name, *map(sa.column, NAMES)) for name in ("sent_texts", "sent_texts_before"))
sent_turns = sa.table(
    "sent_turns", *map(sa.column, ("conversation_id", "magnitude", "first_turn", "number", "last_turn"))
)


def upgrade() -> None:
    op.create_table(
        "sent_turns",
        belongs_to_conversation(),
        *(sa.Column(name, sa.Integer, primary_key=True) for name in ("magnitude", "first_turn", "number", "last_turn")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_turns_marked", "turns", ["conversation_id", "number"], sqlite_where=MARKED, postgresql_where=MARKED)
    op.drop_index("ix_sent_texts_document", "sent_texts")
    op.rename_table("sent_texts", "sent_texts_before")
    create_texts(sa.Column("block", sa.Integer, primary_key=True))
    connection = op.get_bind()
    last = sa.select(turns.c.conversation_id, sa.func.max(turns.c.number)).group_by(turns.c.conversation_id)
    longer = [row[0] for row in connection.execute(last.having(sa.func.max(turns.c.number) >= TURNS_IN_A_BLOCK))]
    rest = [sa.literal_column("0") if name == "block" else old_texts.c[name] for name in NAMES]
    shorter = sa.select(*rest).where(old_texts.c.conversation_id.not_in(longer))
    connection.execute(new_texts.insert().from_select(NAMES, shorter))
    may_hold_all_before(connection)
    for conversation_id in longer:
        read_through(connection, conversation_id)
    op.drop_table("sent_texts_before")


def belongs_to_conversation() -> sa.Column[int]:
    return sa.Column(
        "conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )


def create_texts(*block: sa.Column[int]) -> None:
    op.create_table(
        "sent_texts",
        belongs_to_conversation(),
        *block,
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("text", sa.Text),
        sa.Column("document_id", sa.Integer),
        sa.Column("start", sa.Integer),
        sa.Column("end", sa.Integer),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_sent_texts_document",
        "sent_texts",
        ["document_id"],
        sqlite_where=OF_DOCUMENTS,
        postgresql_where=OF_DOCUMENTS,
    )


def may_hold_all_before(connection: sa.Connection) -> None:
    """Say of the first turns of all conversations that each may hold something of all turns before it."""
    before = turns.c.number - 1
    magnitude = sa.case(*((before < 1 << bits, bits) for bits in range(1, 7)), else_=7)
    asked = turns.c.number.between(2, TURNS_IN_A_BLOCK - 1)
    of_first = sa.select(turns.c.conversation_id, magnitude, sa.literal(1), turns.c.number, before).where(asked)
    connection.execute(sent_turns.insert().from_select(list(sent_turns.c.keys()), of_first))


def read_through(connection: sa.Connection, conversation_id: int) -> None:
    """Read what was sent for all turns of a conversation."""
    own = turns.c.conversation_id == conversation_id

    def text_of(key: str) -> str:
        query = sa.select(old_texts.c.text)
        found = connection.execute(query.where(old_texts.c.conversation_id == conversation_id, old_texts.c.key == key))
        return found.scalar() or "[]"

    newest = connection.execute(sa.select(sa.func.max(turns.c.number)).where(own)).scalar_one()
    for block in range(newest // TURNS_IN_A_BLOCK + 1):
        first = block * TURNS_IN_A_BLOCK
        here = own & turns.c.number.between(first, first + TURNS_IN_A_BLOCK - 1)
        keys, rows = set(), []
        for number, sources, search, body in sent_in(connection, here):
            found = set(references_in(body, text_of))
            keys.update(key for key in found if isinstance(key, str))
            keys.update(keys_in(sources))
            if block:
                turn_numbers = {one for one in found if isinstance(one, int)} - {number}
                rows += [(conversation_id, number, run) for run in runs_in(number, search, body, turn_numbers)]
        pictures = sa.select(messages.c.extra).join_from(turns, messages, messages.c.turn_id == turns.c.id)
        for extra in connection.execute(pictures.where(here, messages.c.position == 0)).scalars():
            keys.update((extra or {}).get("images", ()))
        take_along(connection, conversation_id, block, sorted(keys))
        insert_runs(connection, rows)


def sent_in(connection: sa.Connection, here: Any) -> Iterator[Any]:
    """Yield the number, the sources, the search and the receipt of each answer of some turns."""
    standing = sa.select(turns.c.number, turns.c.sources, turns.c.search, receipts.c.body)
    yield from connection.execute(
        standing.join_from(turns, receipts, receipts.c.turn_id == turns.c.id, isouter=True).where(here)
    ).all()
    others = sa.select(turns.c.number, versions.c.figures, versions.c.receipt)
    others = others.join_from(turns, versions, versions.c.turn_id == turns.c.id).where(here)
    for number, figures, body in connection.execute(others).all():
        yield number, figures.get("sources"), figures.get("search"), body


def take_along(connection: sa.Connection, conversation_id: int, block: int, keys: list[str]) -> None:
    for start in range(0, len(keys), ROWS_AT_ONCE):
        some = old_texts.c.key.in_(keys[start : start + ROWS_AT_ONCE])
        names = [sa.literal(block) if name == "block" else old_texts.c[name] for name in NAMES]
        own = sa.select(*names).where(old_texts.c.conversation_id == conversation_id, some)
        connection.execute(new_texts.insert().from_select(NAMES, own))


def insert_runs(connection: sa.Connection, rows: list[tuple[int, int, tuple[int, int]]]) -> None:
    unique = {
        (conversation_id, (last - first + 1).bit_length(), first, number, last)
        for conversation_id, number, (first, last) in rows
    }
    if unique:
        names = list(sent_turns.c.keys())
        connection.execute(sent_turns.insert(), [dict(zip(names, one, strict=True)) for one in sorted(unique)])


def runs_in(number: int, search: Any, body: Any, others: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield of which turns before turn ``number`` an answer of it may hold something."""
    if body is None:
        if search and (search.get("leans_on") or search.get("by") == "model"):
            yield 1, number - 1
        return
    if "prefix_messages" not in body or body.get("earlier_requests"):
        yield 1, number - 1
        return
    kept = [(run[0], run[1]) if isinstance(run, list) else (run, run) for run in body.get("kept_turns", ())]
    yield from kept
    yield from ((run["first_turn"], run["last_turn"]) for run in body.get("left_out", ()) if run["reason"] == "summarised")
    yield from ((one, one) for one in {*others, *body.get("recalled_turns", ())})
    newest = [one for first, last in kept for one in range(max(first, last - EXCHANGES + 1), last + 1)][-EXCHANGES:]
    yield (newest[0] if len(newest) == EXCHANGES else 1), number - 1


def references_in(value: Any, text_of: Callable[[str], str], name: str = "") -> Iterator[str | int]:
    """Yield the keys of all shared texts, and the numbers of all turns, to which a receipt refers."""
    if isinstance(value, dict):
        for inner, one in value.items():
            if inner == "~json":
                yield one
            elif inner != "kept_turns":
                yield from references_in(one, text_of, inner)
    elif isinstance(value, list):
        for one in value:
            if name not in ("messages", "~") or not isinstance(one, list):
                yield from references_in(one, text_of)
            elif name == "messages" and len(one) == 2:
                yield from range(one[0], one[1] + 1)
            else:
                yield one[0]
                if name == "messages" and isinstance(one[0], str):
                    yield from references_in(json.loads(text_of(one[0])), text_of, name)


def keys_in(sources: Any) -> list[str]:
    """Return the keys of the texts of sources, which are kept field by field, or older ones one by one."""
    found = sources.get("key", []) if isinstance(sources, dict) else [one.get("key") for one in sources or ()]
    return [key for key in found if key]


def downgrade() -> None:
    op.drop_index("ix_sent_texts_document", "sent_texts")
    op.rename_table("sent_texts", "sent_texts_before")
    create_texts()
    op.execute(
        'INSERT INTO sent_texts (conversation_id, "key", text, document_id, start, "end") SELECT conversation_id, '
        '"key", text, document_id, start, "end" FROM sent_texts_before WHERE true ON CONFLICT DO NOTHING'
    )
    op.drop_table("sent_texts_before")
    op.drop_table("sent_turns")
    op.drop_index("ix_turns_marked", "turns")
