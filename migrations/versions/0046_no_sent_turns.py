"""Which turns a receipt contains is read in the receipt, when one of them is erased."""

revision = "0046"
down_revision = "0045"

from alembic import op


def upgrade() -> None:
    op.drop_table("sent_turns")
