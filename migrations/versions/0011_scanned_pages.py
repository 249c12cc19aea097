"""Which pages of a document hold no text, and what text recognition found on them."""

revision = "0011"
down_revision = "0010"

import sqlalchemy as sa
from alembic import op

COUNTERS = ("scanned_pages", "recognised_pages")


def upgrade() -> None:
    for name in COUNTERS:
        op.add_column("documents", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    document = sa.ForeignKey("documents.id", ondelete="CASCADE")
    op.create_table(
        "scanned_pages",
        sa.Column("document_id", sa.Integer, document, primary_key=True),
        sa.Column("page", sa.Integer, primary_key=True),
        sa.Column("lines", sa.JSON(none_as_null=True)),
        sa.Column("problem", sa.Text),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("scanned_pages")
    for name in COUNTERS:
        op.drop_column("documents", name)
