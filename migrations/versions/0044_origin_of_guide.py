"""The guide's pages are known by their origin: a person's file may have the same name."""

revision = "0044"
down_revision = "0043"

import sqlalchemy as sa
from alembic import op

NAMES = (
    "1-first-steps.md",
    "2-history-window.md",
    "3-documents.md",
    "4-models.md",
    "5-settings.md",
    "6-when-it-gets-long.md",
    "7-tools.md",
    "8-the-page.md",
)


def upgrade() -> None:
    documents = sa.table("documents", sa.column("id"), sa.column("name"), sa.column("origin"))
    # They were the first documents of a new library.
    pages = documents.c.id <= len(NAMES), documents.c.name.in_(NAMES), documents.c.origin.is_(None)
    op.execute(documents.update().where(*pages).values(origin="guide:" + documents.c.name))
