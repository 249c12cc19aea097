"""A receipt is what was sent, compressed, and so are the sources of an answer: neither refers to what is kept elsewhere.

What was kept as references until now is put together here, once: a receipt of a long conversation takes more room.
Pictures have a table of their own, and stand in receipts by their keys.
"""

revision = "0027"
down_revision = "0026"

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

TURNS_IN_A_BLOCK = 100
OF_DOCUMENTS = sa.text("document_id IS NOT NULL")
# What most receipts did not say.
UNSAID: dict[str, Any] = {
    "quotes": False,
    "local": False,
    "earlier_requests": [],
    "rewrite": None,
    "left_out": [],
    "explanation": None,
    "results_shortened": 0,
    "results_cut": 0,
    "iterations_kept": 0,
    "iterations_dropped": 0,
    "recalled_turns": [],
}
# The same of sources.
UNSAID_OF_SOURCE: dict[str, Any] = dict.fromkeys(("page", "section", "cited_in")) | {
    "start": 0,
    "text": "",
    "score": 0.0,
    "cited": False,
    "doubts": [],
    "offered": [],
}


def columns(*names: str, of: Any = None) -> list[Any]:
    return [sa.column(name, of) for name in names]


turns = sa.table(
    "turns",
    *columns("id", "conversation_id", "number", "version"),
    *columns("sources", "search", of=sa.JSON),
    *columns("sources_kept", of=sa.LargeBinary),
)
messages = sa.table("messages", *columns("turn_id", "position", "role", "content"), *columns("extra", of=sa.JSON))
def table_of_receipts(name: str, kind: Any) -> Any:
    return sa.table(name, sa.column("turn_id"), sa.column("body", kind))


def table_of_versions(name: str, kind: Any) -> Any:
    return sa.table(
        name,
        *columns("turn_id", "version"),
        *columns("messages", of=sa.JSON),
        *columns("figures", "receipt", of=kind),
        *columns("finished_at", of=sa.DateTime(timezone=True)),
    )


OLD, NEW = sa.JSON(none_as_null=True), sa.LargeBinary
receipts, old_receipts = table_of_receipts("receipts", NEW), table_of_receipts("receipts_before", OLD)
versions, old_versions = table_of_versions("answer_versions", NEW), table_of_versions("answer_versions_before", OLD)
pictures = sa.table("pictures", *columns("turn_id", "key", "url"))
texts = sa.table("sent_texts", *columns("conversation_id", "block", "key", "text", "document_id", "start", "end"))
chunks = sa.table("chunks", *columns("document_id", "start", "end", "text", "gap"))


def upgrade() -> None:
    op.create_table(
        "pictures",
        belongs_to("turns"),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
    )
    op.create_index("ix_pictures_key", "pictures", ["key"])
    put_aside(sa.LargeBinary, sa.LargeBinary)
    op.add_column("turns", sa.Column("sources_kept", sa.LargeBinary))
    connection = op.get_bind()
    ids = connection.execute(sa.select(turns.c.conversation_id).distinct().order_by(turns.c.conversation_id)).scalars()
    for conversation_id in ids.all():
        Conversation(connection, conversation_id).take_along()
    drop_what_was()
    op.drop_table("sent_texts")


def belongs_to(table: str) -> sa.Column[int]:
    name = {"turns": "turn_id", "conversations": "conversation_id"}[table]
    return sa.Column(name, sa.Integer, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), primary_key=True)


def put_aside(of_receipt: Any, of_figures: Any) -> None:
    """Rename the tables of receipts and of versions, and create them with other types."""
    op.rename_table("receipts", "receipts_before")
    op.rename_table("answer_versions", "answer_versions_before")
    op.create_table("receipts", belongs_to("turns"), sa.Column("body", of_receipt, nullable=False))
    op.create_table(
        "answer_versions",
        belongs_to("turns"),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("messages", sa.JSON, nullable=False),
        sa.Column("figures", of_figures, nullable=False),
        sa.Column("receipt", of_receipt),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sqlite_with_rowid=False,
    )


def drop_what_was() -> None:
    op.drop_table("receipts_before")
    op.drop_table("answer_versions_before")
    op.drop_column("turns", "sources")
    op.execute("ALTER TABLE turns RENAME COLUMN sources_kept TO sources")


class Conversation:
    """What is kept of one conversation, and what it refers to, each read once."""

    def __init__(self, connection: sa.Connection, conversation_id: int) -> None:
        self.connection = connection
        self.conversation_id = conversation_id
        self.blocks: dict[int, dict[str, str]] = {}
        self.said: dict[tuple[int, int], list[Any]] = {}
        self.keys: dict[str, str] = {}

    def take_along(self) -> None:
        query = sa.select(turns.c.id, turns.c.number, turns.c.version, turns.c.sources, turns.c.search)
        query = query.where(turns.c.conversation_id == self.conversation_id).order_by(turns.c.number)
        for turn_id, number, version, sources, search in self.connection.execute(query).all():
            self.keep_pictures(turn_id, number)
            kept = None if sources is None else compressed(self.sources_of(number, sources))
            self.connection.execute(turns.update().where(turns.c.id == turn_id).values(sources_kept=kept))
            body = self.connection.execute(sa.select(old_receipts.c.body).where(old_receipts.c.turn_id == turn_id))
            if (found := body.scalar()) is not None:
                new = compressed(self.unpacked(found, search, number, version))
                self.connection.execute(receipts.insert().values(turn_id=turn_id, body=new))
            for row in self.connection.execute(sa.select(old_versions).where(old_versions.c.turn_id == turn_id)).all():
                figures = row.figures | {"sources": self.sources_of(number, row.figures.get("sources"))}
                new = row.receipt and self.unpacked(row.receipt, figures.get("search"), number, row.version)
                values = row._asdict() | {"figures": compressed(figures), "receipt": new and compressed(new)}
                self.connection.execute(versions.insert().values(values))

    def keep_pictures(self, turn_id: int, number: int) -> None:
        query = sa.select(messages.c.extra).where(messages.c.turn_id == turn_id, messages.c.position == 0)
        keys = (self.connection.execute(query).scalar() or {}).get("images", ())
        rows = [{"turn_id": turn_id, "key": key, "url": self.text(number, key)} for key in dict.fromkeys(keys)]
        if rows:
            self.connection.execute(pictures.insert(), rows)
            self.keys |= {row["url"]: row["key"] for row in rows}

    def sources_of(self, number: int, kept: Any) -> list[dict[str, Any]]:
        """Return sources that are kept field by field, or older ones one by one, with their texts."""
        if isinstance(kept, dict):
            kept = [dict(zip(kept, values, strict=True)) for values in zip(*kept.values(), strict=True)]
        found = []
        for one in kept or ():
            key = one.pop("key", None)
            found.append(UNSAID_OF_SOURCE | one | ({"text": self.text(number, key)} if key else {}))
        return found

    def text(self, number: int, key: str) -> str:
        """Return a text that the turns of the block of turn ``number`` share."""
        block = number // TURNS_IN_A_BLOCK
        if block not in self.blocks:
            own = (texts.c.conversation_id == self.conversation_id) & (texts.c.block == block)
            query = sa.select(texts.c.key, texts.c.text).where(own, texts.c.text.is_not(None))
            self.blocks[block] = {key: text for key, text in self.connection.execute(query)}
            parts = sa.select(texts.c.key, chunks.c.start, chunks.c.end, chunks.c.text, chunks.c.gap).join_from(
                texts,
                chunks,
                (chunks.c.document_id == texts.c.document_id)
                & (chunks.c.start >= texts.c.start)
                & (chunks.c.start < texts.c.end),
            )
            passages: dict[str, str] = {}
            for name, start, end, text, gap in self.connection.execute(
                parts.where(own).order_by(texts.c.key, chunks.c.start)
            ):
                # The head of a table stands in front alone.
                without_lead = text.removeprefix(text[: max(0, len(text) - (end - start))])
                passages[name] = passages[name] + (gap or "") + without_lead if name in passages else text
            self.blocks[block] |= passages
        return self.blocks[block][key]

    def said_in(self, number: int, version: int) -> list[Any]:
        """Return what was said in a turn, with the answer of some version."""
        if (number, version) not in self.said:
            own = (turns.c.conversation_id == self.conversation_id) & (turns.c.number == number)
            query = sa.select(turns.c.version, messages.c.role, messages.c.content, messages.c.extra)
            query = query.join_from(turns, messages, messages.c.turn_id == turns.c.id).where(own)
            rows = self.connection.execute(query.order_by(messages.c.position)).all()
            said = [self.message(number, *row[1:]) for row in rows]
            if rows and rows[0].version != version:
                other = sa.select(old_versions.c.messages).join_from(turns, old_versions, turns.c.id == old_versions.c.turn_id)
                of_version = self.connection.execute(other.where(own, old_versions.c.version == version)).scalar()
                said = [said[0], *(of_version or ())]
            self.said[number, version] = said
        return self.said[number, version]

    def message(self, number: int, role: str, content: str | None, extra: Any) -> dict[str, Any]:
        more = dict(extra or {})
        urls = [self.text(number, key) for key in more.pop("images", ())]
        said: Any = content
        if urls:
            said = [{"type": "text", "text": content or ""}]
            said += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return {"role": role, "content": said} | more

    def unpacked(self, body: dict[str, Any], search: Any, number: int, version: int) -> dict[str, Any]:
        """Return a receipt of a turn without references, in which pictures stand by their keys."""
        others = body.get("versions", {})

        def said_in(turn: int) -> Sequence[Any]:
            said = self.said_in(turn, version if turn == number else others.get(str(turn), 1))
            return [{**said[0], "content": text_in(said[0])}, *said[1:]] if turn == number else said

        found = without_references(body, said_in, lambda key: self.text(number, key))
        if body.get("search") is True:
            found["search"] = search
        for request in (found.get("request"), *found.get("earlier_requests", ())):
            for message in (request or {}).get("messages", ()):
                for part in message["content"] if isinstance(message.get("content"), list) else ():
                    if part.get("type") == "image_url":
                        part["image_url"] = {"url": self.keys.get(part["image_url"]["url"], "")}
        return found


def without_references(
    body: dict[str, Any], said_in: Callable[[int], Sequence[Any]], text_of: Callable[[str], str]
) -> dict[str, Any]:
    def entries(found: Iterable[Any]) -> Iterator[Any]:
        for entry in found:
            match entry:
                case [str(key)]:
                    yield from entries(json.loads(text_of(key)))
                case [first, last]:
                    for turn in range(first, last + 1):
                        yield from said_in(turn)
                case [turn, first, last]:
                    yield from said_in(turn)[first : last + 1]
                case _:
                    yield value("", entry)

    def piece(found: Any) -> str:
        match found:
            case [str(key), *length]:
                text = text_of(key)
            case [turn, position, *length]:
                text = text_in(said_in(turn)[position])
            case _:
                return str(found)
        return text[: length[0]] if length else text

    def value(name: str, found: Any) -> Any:
        if name == "messages" and isinstance(found, list):
            return json.loads(json.dumps(list(entries(found))))  # A copy, since what is said stands in many.
        if name == "kept_turns":
            runs = (run if isinstance(run, list) else [run, run] for run in found)
            return [turn for first, last in runs for turn in range(first, last + 1)]
        if isinstance(found, dict):
            if found.keys() == {"~"}:
                return "".join(map(piece, found["~"]))
            if found.keys() == {"~json"}:
                return json.loads(text_of(found["~json"]))
            return {inner: value(inner, one) for inner, one in found.items()}
        return [value("", one) for one in found] if isinstance(found, list) else found

    unsaid = UNSAID if "prefix_messages" in body else {}  # Older ones said all that they had to say.
    return unsaid | {name: value(name, found) for name, found in body.items() if name != "versions"}


def text_in(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def compressed(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # Half a character.
        text = json.dumps(value, separators=(",", ":")).encode()
    return zlib.compress(text)


def downgrade() -> None:
    op.create_table(
        "sent_texts",
        belongs_to("conversations"),
        sa.Column("block", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("text", sa.Text),
        sa.Column("document_id", sa.Integer),
        sa.Column("start", sa.Integer),
        sa.Column("end", sa.Integer),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_sent_texts_document", "sent_texts", ["document_id"], sqlite_where=OF_DOCUMENTS, postgresql_where=OF_DOCUMENTS
    )
    op.execute(
        'INSERT INTO sent_texts (conversation_id, block, "key", text) SELECT conversation_id, '
        f"number / {TURNS_IN_A_BLOCK}, key, url FROM pictures JOIN turns ON turns.id = turn_id WHERE true "
        "ON CONFLICT DO NOTHING"
    )
    put_aside(sa.JSON, sa.JSON)
    op.add_column("turns", sa.Column("sources_kept", sa.JSON))
    connection = op.get_bind()
    urls = {key: url for key, url in connection.execute(sa.select(pictures.c.key, pictures.c.url))}

    def whole(body: bytes | None) -> Any:
        text = "null" if body is None else zlib.decompress(body).decode()
        for key, url in urls.items():
            text = text.replace(f'{{"url":"{key}"}}', f'{{"url":"{url}"}}')
        return json.loads(text)

    old, new = table_of_receipts("receipts_before", NEW), table_of_receipts("receipts", OLD)
    before, after = table_of_versions("answer_versions_before", NEW), table_of_versions("answer_versions", OLD)
    kept = sa.table("turns", *columns("id"), *columns("sources", of=NEW), *columns("sources_kept", of=OLD))
    for turn_id, body in connection.execute(sa.select(old)).all():
        connection.execute(new.insert().values(turn_id=turn_id, body=whole(body)))
    for row in connection.execute(sa.select(before)).all():
        values = row._asdict() | {"figures": whole(row.figures), "receipt": whole(row.receipt)}
        connection.execute(after.insert().values(values))
    for turn_id, sources in connection.execute(sa.select(kept.c.id, kept.c.sources)).all():
        if sources is not None:
            connection.execute(kept.update().where(kept.c.id == turn_id).values(sources_kept=whole(sources)))
    drop_what_was()
    op.drop_table("pictures")

