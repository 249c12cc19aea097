"""Turns: erased for good, with their copies in branches. Conversations: listed once they have something to show."""

revision = "0005"
down_revision = "0004"

import sqlalchemy as sa
from alembic import op

COPIED = sa.text("origin_id IS NOT NULL")


def upgrade() -> None:
    op.add_column("turns", sa.Column("erased_at", sa.DateTime(timezone=True)))
    op.add_column("turns", sa.Column("origin_id", sa.Integer))
    op.create_index("ix_turns_origin", "turns", ["origin_id"], sqlite_where=COPIED, postgresql_where=COPIED)
    name_origins()
    op.add_column("conversations", sa.Column("listed", sa.Boolean, nullable=False, server_default=sa.true()))
    op.execute("UPDATE conversations SET listed = FALSE WHERE turns = 0")
    op.create_index("ix_conversations_listed", "conversations", ["listed", "deleted_at", "updated_at", "id"])


def name_origins() -> None:
    """Tell the turns of each branch of which turns they are copies; a branch is younger than what it goes off."""
    connection = op.get_bind()
    conversations = sa.table("conversations", sa.column("id"), sa.column("branched_from", sa.JSON(none_as_null=True)))
    branches = sa.select(conversations).where(conversations.c.branched_from.is_not(None)).order_by(conversations.c.id)
    origin_of = sa.text(
        "UPDATE turns SET origin_id = (SELECT coalesce(o.origin_id, o.id) FROM turns o "
        "WHERE o.conversation_id = :origin AND o.number = turns.number) "
        "WHERE conversation_id = :branch AND number < :before"
    )
    for branch, came_from in connection.execute(branches).all():
        connection.execute(
            origin_of, {"branch": branch, "origin": came_from["conversation_id"], "before": came_from["turn"]}
        )


def downgrade() -> None:
    op.drop_index("ix_conversations_listed", "conversations")
    op.drop_column("conversations", "listed")
    op.drop_index("ix_turns_origin", "turns")
    for name in ("origin_id", "erased_at"):
        op.drop_column("turns", name)
