"""The model's view of a conversation: where it begins, summaries, changes that can be undone, what a turn cost."""

revision = "0002"
down_revision = "0001"

import sqlalchemy as sa
from alembic import op

TIME = sa.DateTime(timezone=True)
NEW_CONVERSATION_COLUMNS = (
    ("context_start", sa.Integer, "1"),
    ("view_start", sa.Integer, "1"),
    ("decided_until", sa.Integer, "0"),
    ("held_turns", sa.Integer, "0"),
    ("standing_runs", sa.JSON, "[]"),
)
NEW_TURN_COLUMNS = (
    ("pinned", sa.Boolean, sa.false()),
    ("excluded", sa.Boolean, sa.false()),
    ("purged", sa.Boolean, sa.false()),
    ("held", sa.Boolean, sa.false()),
    ("message_count", sa.Integer, "0"),
    ("notes", sa.JSON, "[]"),
)


def upgrade() -> None:
    for name, kind, default in NEW_CONVERSATION_COLUMNS:
        op.add_column("conversations", sa.Column(name, kind, nullable=False, server_default=default))
    op.add_column("conversations", sa.Column("summary_id", sa.Integer))
    for name, kind, default in NEW_TURN_COLUMNS:
        op.add_column("turns", sa.Column(name, kind, nullable=False, server_default=default))
    op.add_column("turns", sa.Column("waiting", sa.JSON(none_as_null=True)))
    op.execute("UPDATE turns SET message_count = (SELECT COUNT(*) FROM messages WHERE messages.turn_id = turns.id)")
    for name, condition in (
        ("ix_turns_held", "held"),
        ("ix_turns_hidden", "NOT visible"),
    ):
        where = sa.text(condition)
        op.create_index(name, "turns", ["conversation_id", "number"], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "summaries",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("first_turn", sa.Integer, nullable=False),
        sa.Column("last_turn", sa.Integer, nullable=False),
        sa.Column("covered", sa.JSON, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("written_by", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_summaries_conversation", "summaries", ["conversation_id", "id"])
    op.create_table(
        "history_changes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("before", sa.JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_history_changes_conversation", "history_changes", ["conversation_id", "id"])

    # The words of each turn, for the search in conversations and for the recall of turns that are left out.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE turn_words USING fts5(words, tokenize = 'porter unicode61 remove_diacritics 2')")
        version = op.get_bind().connection.dbapi_connection.execute("SELECT sqlite_version()").fetchone()[0]
        if tuple(map(int, version.split("."))) >= (3, 42):
            # What is deleted is taken out of the index at once, not only marked.
            for table in ("turn_words", "chunk_words"):
                op.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', 1)")
    else:
        op.execute(
            "CREATE TABLE turn_words (turn_id INTEGER PRIMARY KEY REFERENCES turns(id) ON DELETE CASCADE, "
            "words TSVECTOR NOT NULL)"
        )
        op.execute("CREATE INDEX ix_turn_words ON turn_words USING gin(words)")
    index_earlier_turns()


def index_earlier_turns() -> None:
    """Index the words of the turns that are there already."""
    from rag_assistant.retrieval.tokenize import search_words

    connection = op.get_bind()
    said = sa.text(
        "SELECT turn_id, content FROM messages WHERE role IN ('user', 'assistant') AND turn_id IN "
        "(SELECT id FROM turns WHERE visible) ORDER BY turn_id, position"
    )
    words: dict[int, list[str]] = {}
    for turn_id, content in connection.execute(said):
        words.setdefault(turn_id, []).extend(search_words(content or ""))
    sqlite = connection.dialect.name == "sqlite"
    insert = sa.text(
        "INSERT INTO turn_words (rowid, words) VALUES (:id, :words)"
        if sqlite
        else "INSERT INTO turn_words (turn_id, words) VALUES (:id, to_tsvector('english', :words))"
    )
    for turn_id, found in words.items():
        connection.execute(insert, {"id": turn_id, "words": " ".join(found)})


def downgrade() -> None:
    for table in ("turn_words", "history_changes", "summaries"):
        op.drop_table(table)
    op.drop_index("ix_turns_held", "turns")
    op.drop_index("ix_turns_hidden", "turns")
    # One column at a time: to copy a table and drop the old one would take along what refers to it.
    for name in ("waiting", *(column[0] for column in NEW_TURN_COLUMNS)):
        op.drop_column("turns", name)
    for name in ("summary_id", *(column[0] for column in NEW_CONVERSATION_COLUMNS)):
        op.drop_column("conversations", name)
