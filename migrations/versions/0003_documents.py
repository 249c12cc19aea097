"""Documents: where they come from, their tags, versions that replace others; several embedders side by side."""

revision = "0003"
down_revision = "0002"

import sqlalchemy as sa
from alembic import op

BUILT_IN = "all-MiniLM-L6-v2-int8"


def upgrade() -> None:
    op.add_column("turns", sa.Column("search", sa.JSON(none_as_null=True)))
    op.add_column("documents", sa.Column("origin", sa.Text))
    op.add_column("documents", sa.Column("replaces", sa.Integer))
    op.add_column("documents", sa.Column("attempts", sa.Integer, nullable=False, server_default="0"))
    op.create_index("ix_documents_origin", "documents", ["origin"])
    where = sa.text("replaces IS NOT NULL")
    op.create_index("ix_documents_replaces", "documents", ["replaces"], sqlite_where=where, postgresql_where=where)
    op.add_column("document_texts", sa.Column("markdown", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("document_texts", sa.Column("warning", sa.Text))
    op.execute(
        "UPDATE document_texts SET markdown = TRUE "
        "WHERE document_id IN (SELECT id FROM documents WHERE media_type = 'text/markdown')"
    )
    op.add_column("chunks", sa.Column("section", sa.Text))
    op.create_table(
        "document_tags",
        sa.Column("document_id", sa.Integer, sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("tag", sa.String, primary_key=True),
    )
    op.create_index("ix_document_tags_tag", "document_tags", ["tag", "document_id"])
    embedders = op.create_table(
        "embedders",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("source", sa.JSON, nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("probe", sa.LargeBinary),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("additions", sa.Integer, nullable=False),
        sa.Column("deletions", sa.Integer, nullable=False),
    )
    additions, deletions = op.get_bind().execute(sa.text("SELECT additions, deletions FROM library_state")).one()
    if additions:
        op.bulk_insert(
            embedders,
            [
                {
                    "key": BUILT_IN,
                    "source": {"embedder": "builtin"},
                    "dimension": 384,
                    "probe": None,
                    "active": True,
                    "additions": additions,
                    "deletions": deletions,
                }
            ],
        )
    op.drop_table("library_state")


def downgrade() -> None:
    op.create_table(
        "library_state",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("additions", sa.Integer, nullable=False),
        sa.Column("deletions", sa.Integer, nullable=False),
    )
    op.execute("INSERT INTO library_state (id, additions, deletions) VALUES (1, 0, 0)")
    op.drop_table("embedders")
    op.drop_table("document_tags")
    op.drop_column("chunks", "section")
    op.drop_column("document_texts", "warning")
    op.drop_column("document_texts", "markdown")
    op.drop_index("ix_documents_origin", "documents")
    op.drop_column("turns", "search")
    op.drop_index("ix_documents_replaces", "documents")
    op.drop_column("documents", "attempts")
    op.drop_column("documents", "replaces")
    op.drop_column("documents", "origin")
