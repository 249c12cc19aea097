"""A conversation knows where its context began before later clears, and has no summaries that were undone."""

revision = "0040"
down_revision = "0039"

import json

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("conversations", sa.Column("earlier_starts", sa.JSON, nullable=False, server_default="[]"))
    connection = op.get_bind()
    starts: dict[int, list[int]] = {}
    summaries = set(connection.execute(sa.text("SELECT summary_id FROM conversations")).scalars())
    changes = connection.execute(sa.text("SELECT conversation_id, before FROM history_changes ORDER BY id"))
    for conversation_id, before in changes:
        state = json.loads(before) if isinstance(before, str) else before
        starts.setdefault(conversation_id, []).append(state["context_start"])
        summaries.add(state["summary_id"])
    for conversation_id, earlier in starts.items():
        values = {"id": conversation_id, "starts": json.dumps(sorted(set(earlier)))}
        connection.execute(sa.text("UPDATE conversations SET earlier_starts = :starts WHERE id = :id"), values)
    for summary_id in set(connection.execute(sa.text("SELECT id FROM summaries")).scalars()) - summaries:
        connection.execute(sa.text("DELETE FROM summaries WHERE id = :id"), {"id": summary_id})
