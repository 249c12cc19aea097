"""Documents have a date: of older ones, the day they were added, until they are read again."""

revision = "0046"
down_revision = "0045"

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    op.add_column("documents", sa.Column("dates", sa.JSON, nullable=False, server_default="{}"))
    op.add_column("documents", sa.Column("date", sa.String, nullable=False, server_default=""))
    op.add_column("documents", sa.Column("date_from", sa.String, nullable=False, server_default="added"))
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    added = "substr(created_at, 1, 10)" if is_sqlite else "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
    dates = f"'{{\"added\": \"' || {added} || '\"}}'"
    op.execute(f"UPDATE documents SET date = {added}, dates = {dates if is_sqlite else f'({dates})::json'}")  # noqa: S608
    op.create_index("ix_documents_date", "documents", ["date", "id"])
