"""Documents: sorted by name and by size."""

revision = "0006"
down_revision = "0005"

import sqlalchemy as sa
from alembic import op

from rag_assistant.storage.documents.rows import name_key


def upgrade() -> None:
    op.add_column("documents", sa.Column("name_key", sa.String, nullable=False, server_default=""))
    documents = sa.table("documents", sa.column("id"), sa.column("name"), sa.column("name_key"))
    connection = op.get_bind()
    for document_id, name in connection.execute(sa.select(documents.c.id, documents.c.name)).all():
        connection.execute(sa.update(documents).where(documents.c.id == document_id).values(name_key=name_key(name)))
    op.drop_index("ix_documents_state", "documents")
    op.create_index("ix_documents_state", "documents", ["state", "id", "size_bytes"])
    op.create_index("ix_documents_name", "documents", ["name_key", "id"])
    op.create_index("ix_documents_size", "documents", ["size_bytes", "id"])


def downgrade() -> None:
    op.drop_index("ix_documents_size", "documents")
    op.drop_index("ix_documents_name", "documents")
    op.drop_index("ix_documents_state", "documents")
    op.create_index("ix_documents_state", "documents", ["state", "id"])
    op.drop_column("documents", "name_key")
