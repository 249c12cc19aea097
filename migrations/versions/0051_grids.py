"""Tables over documents."""

revision = "0051"
down_revision = "0050"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    time = sa.DateTime(timezone=True)
    op.create_table(
        "grids",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("everyone", sa.String),
        sa.Column("project_id", sa.Integer),
        sa.Column("scope", sa.JSON),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("watch", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("max_tokens", sa.Integer),
        sa.Column("cells_at_once", sa.Integer, nullable=False, server_default="4"),
        sa.Column("used_tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("used_seconds", sa.Float, nullable=False, server_default="0"),
        sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
        sa.Column("reason", sa.Text),
        sa.Column("created_at", time, nullable=False),
        sa.Column("deleted_at", time),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_grids_person", "grids", ["person_id"])
    op.create_table(
        "grid_shares",
        sa.Column("grid_id", sa.Integer, sa.ForeignKey("grids.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("access", sa.String, nullable=False),
    )
    op.create_index("ix_grid_shares_person", "grid_shares", ["person_id"])
    op.create_table(
        "grid_cells",
        sa.Column("grid_id", sa.Integer, sa.ForeignKey("grids.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("column_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("worker", sa.String),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("asked_at", time),
        sa.Column("result", sa.JSON),
        sa.Column("error", sa.Text),
        sa.Column("receipt", sa.LargeBinary),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_grid_cells_state", "grid_cells", ["state", "grid_id", "document_id", "column_id"])
    op.create_index("ix_grid_cells_asked", "grid_cells", ["grid_id", "asked_at"])
    op.create_index("ix_grid_cells_document", "grid_cells", ["document_id"])
