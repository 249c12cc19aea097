"""What was counted or looked for in whole tables: kept with the conversation, with the chunk, or in an index."""

revision = "0008"
down_revision = "0007"

import sqlalchemy as sa
from alembic import op

from rag_assistant.storage.documents.chunks import gaps_between

BRANCHED = sa.text("origin_id IS NOT NULL")
BRANCHED_BEFORE = sa.text("branched_from IS NOT NULL")
PINNED_IN_SQLITE, PINNED = sa.text("pinned = 1"), sa.text("pinned")
COUNTERS = ("changes", "user_messages", "assistant_messages", "tool_messages")


def upgrade() -> None:
    op.execute("ALTER TABLE conversations RENAME COLUMN doing TO operation")
    for name in COUNTERS:
        op.add_column("conversations", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.add_column("conversations", sa.Column("origin_id", sa.Integer))
    count_messages()
    name_origins()
    op.drop_index("ix_conversations_branches", "conversations")
    op.create_index(
        "ix_conversations_branches",
        "conversations",
        ["origin_id", "id"],
        sqlite_where=BRANCHED,
        postgresql_where=BRANCHED,
    )
    op.create_index(
        "ix_conversations_pinned",
        "conversations",
        ["deleted_at", "updated_at", "id"],
        sqlite_where=PINNED_IN_SQLITE,
        postgresql_where=PINNED,
    )
    op.drop_index("ix_conversations_latest", "conversations")
    op.create_index("ix_conversations_latest", "conversations", ["deleted_at", "updated_at", "id", "title"])
    op.add_column("chunks", sa.Column("gap", sa.Text))
    keep_gaps()


def count_messages() -> None:
    """Count the messages of each role that were said in the turns of a conversation that are over."""
    of_role = (
        "(SELECT count(*) FROM turns JOIN messages ON messages.turn_id = turns.id WHERE turns.status <> 'running' "
        "AND turns.conversation_id = conversations.id AND messages.role = '{role}')"
    )
    counted = ", ".join(f"{role}_messages = {of_role.format(role=role)}" for role in ("user", "assistant", "tool"))
    op.execute(f"UPDATE conversations SET {counted}")  # noqa: S608 - our names


def name_origins() -> None:
    """Keep of which conversation each branch is one where an index finds it."""
    connection = op.get_bind()
    conversations = sa.table(
        "conversations",
        sa.column("id"),
        sa.column("origin_id"),
        sa.column("branched_from", sa.JSON(none_as_null=True)),
    )
    branches = sa.select(conversations.c.id, conversations.c.branched_from)
    for branch, came_from in connection.execute(branches.where(conversations.c.branched_from.is_not(None))).all():
        this = sa.update(conversations).where(conversations.c.id == branch)
        connection.execute(this.values(origin_id=came_from["conversation_id"]))


def keep_gaps() -> None:
    """Keep with each chunk what stands between it and the one before, read from the text of its document."""
    connection = op.get_bind()
    texts = sa.table("document_texts", sa.column("document_id"), sa.column("text"))
    chunks = sa.table("chunks", *map(sa.column, ("id", "document_id", "start", "end", "page", "gap")))
    gap_of = sa.update(chunks).where(chunks.c.id == sa.bindparam("chunk")).values(gap=sa.bindparam("new_gap"))
    for document_id in connection.execute(sa.select(texts.c.document_id)).scalars().all():
        text = connection.execute(sa.select(texts.c.text).where(texts.c.document_id == document_id)).scalar_one()
        own = sa.select(chunks).where(chunks.c.document_id == document_id).order_by(chunks.c.start)
        rows = connection.execute(own).all()
        found = zip(rows, gaps_between(text, rows), strict=True)
        changed = [{"chunk": row.id, "new_gap": gap} for row, gap in found if gap is not None]
        if changed:
            connection.execute(gap_of, changed)


def downgrade() -> None:
    op.execute("ALTER TABLE conversations RENAME COLUMN operation TO doing")
    op.drop_column("chunks", "gap")
    op.drop_index("ix_conversations_latest", "conversations")
    op.create_index("ix_conversations_latest", "conversations", ["deleted_at", "updated_at", "id"])
    op.drop_index("ix_conversations_pinned", "conversations")
    op.drop_index("ix_conversations_branches", "conversations")
    op.create_index(
        "ix_conversations_branches",
        "conversations",
        ["id"],
        sqlite_where=BRANCHED_BEFORE,
        postgresql_where=BRANCHED_BEFORE,
    )
    for name in ("origin_id", *COUNTERS):
        op.drop_column("conversations", name)
