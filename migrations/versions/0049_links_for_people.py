"""A conversation can be shared with a person by name."""

revision = "0049"
down_revision = "0048"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    with op.batch_alter_table("conversation_links", table_kwargs={"sqlite_autoincrement": True}) as links:
        links.add_column(sa.Column("person_id", sa.Integer))
        links.create_foreign_key("fk_conversation_links_person", "people", ["person_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_conversation_links_person", "conversation_links", ["person_id"])
