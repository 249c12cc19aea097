"""Documents whose words are to be indexed wait in a table: that is done in the background, not before the start."""

revision = "0022"
down_revision = "0021"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "documents_to_index",
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    )
    key = "rowid" if op.get_bind().dialect.name == "sqlite" else "chunk_id"
    op.execute(
        "INSERT INTO documents_to_index (document_id) SELECT DISTINCT document_id FROM chunks "
        f"WHERE id NOT IN (SELECT {key} FROM chunk_words)"
    )


def downgrade() -> None:
    op.drop_table("documents_to_index")
