"""The chain of a conversation's receipts."""

revision = "0034"
down_revision = "0033"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "receipt_links",
        sa.Column("conversation_id", sa.Integer, sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("previous", sa.String, nullable=False),
        sa.Column("parts", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.String, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ux_receipt_links_turn", "receipt_links", ["turn_id", "version"], unique=True)


def downgrade() -> None:
    op.drop_table("receipt_links")
