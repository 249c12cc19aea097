"""Which receipts hold turns of other conversations."""

revision = "0036"
down_revision = "0035"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.create_table(
        "sent_elsewhere",
        sa.Column("turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("receipt_turn_id", sa.Integer, sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sent_elsewhere_receipt", "sent_elsewhere", ["receipt_turn_id"])


def downgrade() -> None:
    op.drop_table("sent_elsewhere")
