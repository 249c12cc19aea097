"""What models cost is counted by the hour, of each person and of all together; turns are found by their time, and
people have an e-mail address."""

revision = "0045"
down_revision = "0044"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("model_tokens", sa.Column("cost", sa.Float, nullable=False, server_default="0"))
    op.drop_index("ix_model_tokens_at", "model_tokens")
    op.create_index("ix_model_tokens_person", "model_tokens", ["person_id", "at"])
    # What is nobody's becomes what all have used together.
    op.execute(
        "INSERT INTO model_tokens (person_id, at, tokens) "
        "SELECT NULL, at, tokens FROM model_tokens WHERE person_id IS NOT NULL"
    )
    op.create_index("ix_turns_created_at", "turns", ["created_at"])
    op.add_column("people", sa.Column("email", sa.String))
