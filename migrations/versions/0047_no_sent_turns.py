"""Which turns a receipt contains is read in the receipt, when one of them is erased."""

revision = "0047"
down_revision = "0046"

from alembic import op


def upgrade() -> None:
    op.drop_table("sent_turns")
