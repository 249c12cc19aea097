"""Messages are counted by role when somebody asks, not with every answer."""

revision = "0039"
down_revision = "0038"

from alembic import op


def upgrade() -> None:
    for role in ("user", "assistant", "tool"):
        op.drop_column("conversations", f"{role}_messages")
