"""A file of receipts is signed as a whole when it is written; nothing of it is stored."""

revision = "0048"
down_revision = "0047"

from alembic import op


def upgrade() -> None:
    op.drop_table("receipt_links")
