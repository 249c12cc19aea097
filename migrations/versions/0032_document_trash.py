"""Documents in the trash, which can be restored."""

revision = "0032"
down_revision = "0031"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("documents", sa.Column("deleted_at", sa.DateTime(timezone=True)))
    deleted = sa.text("deleted_at IS NOT NULL")
    op.create_index(
        "ix_documents_deleted", "documents", ["deleted_at", "id"], sqlite_where=deleted, postgresql_where=deleted
    )


def downgrade() -> None:
    op.drop_index("ix_documents_deleted", "documents")
    op.drop_column("documents", "deleted_at")
