"""The tables over documents, which people fill with answers."""

import sqlalchemy as sa

from rag_assistant.storage.tables.base import CompressedJSON, UtcTime, keyed_table, shares_table, table_of_ids

grids = table_of_ids(
    "grids",
    sa.Column("name", sa.String, nullable=False),
    # These as in projects and conversations.
    sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
    sa.Column("everyone", sa.String),
    sa.Column("project_id", sa.Integer),
    sa.Column("scope", sa.JSON(none_as_null=True)),
    # Such as [{"id": 1, "name": "Notice", "question": "What is the notice period?", "type": "text"}].
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("watch", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("started", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("max_tokens", sa.Integer),
    sa.Column("cells_at_once", sa.Integer, nullable=False, server_default="4"),
    sa.Column("used_tokens", sa.Integer, nullable=False, server_default="0"),
    sa.Column("used_seconds", sa.Float, nullable=False, server_default="0"),
    # How many cells failed in a row, and why it stopped by itself.
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("reason", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("deleted_at", UtcTime),
    sa.Index("ix_grids_person", "person_id"),
)

grid_shares = shares_table("grid_shares", "grid_id", "grids")

grid_cells = keyed_table(
    "grid_cells",
    sa.Column("grid_id", sa.Integer, sa.ForeignKey("grids.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("column_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("state", sa.String, nullable=False),
    # The process that asks it, how often it was begun since somebody wanted it, and when.
    sa.Column("worker", sa.String),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("asked_at", UtcTime),
    # See records/grids.py.
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("error", sa.Text),
    # The answer as it came, and the messages that a model was sent for it.
    sa.Column("receipt", CompressedJSON),
    sa.Index("ix_grid_cells_state", "state", "grid_id", "document_id", "column_id"),
    sa.Index("ix_grid_cells_asked", "grid_id", "asked_at"),
    sa.Index("ix_grid_cells_document", "document_id"),
    sqlite_with_rowid=False,
)
