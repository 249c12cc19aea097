"""The tables of documents, their chunks and their vectors."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text, false

from rag_assistant.storage.tables.base import UtcTime, metadata, partial_index, table_of_ids

documents = table_of_ids(
    "documents",
    Column("name", String, nullable=False),
    # What it is sorted by; see rows.py.
    Column("name_key", String, nullable=False, server_default=""),
    Column("media_type", String, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    # The library and the content, so that the same content is one document in each library; see rows.py.
    Column("content_key", String, nullable=False, unique=True),
    Column("sha256", String, nullable=False, server_default=""),
    Column("library_id", Integer),
    # Where the uploaded file lies, by the installation whose folder it is or the address in S3; and the file's name.
    Column("owner", String, nullable=False),
    Column("file", String, nullable=False),
    # The process that works on it, or did.
    Column("worker", String),
    Column("state", String, nullable=False),
    Column("reason", Text),
    Column("chunks", Integer, nullable=False),
    Column("embedded", Integer, nullable=False),
    Column("page_starts", JSON),
    Column("created_at", UtcTime, nullable=False),
    # The file on this machine that it was read from, where it came from a folder; or the address of a web page.
    Column("origin", Text),
    # The document whose newer version this is: it takes that one's place once it is ready, and is not found before.
    Column("replaces", Integer),
    # How often it could not be embedded since it was read.
    Column("attempts", Integer, nullable=False, server_default="0"),
    # How many of its pages hold no text, and with how many of these text recognition is through.
    Column("scanned_pages", Integer, nullable=False, server_default="0"),
    Column("recognised_pages", Integer, nullable=False, server_default="0"),
    # When it was moved to the trash; until it is restored, nothing finds it.
    Column("deleted_at", UtcTime),
    # With the size, so that the figures of a library are read from the index alone.
    Index("ix_documents_state", "state", "id", "size_bytes"),
    Index("ix_documents_name", "name_key", "id"),
    Index("ix_documents_size", "size_bytes", "id"),
    Index("ix_documents_origin", "origin"),
    Index("ix_documents_library", "library_id", "id"),
    partial_index("ix_documents_replaces", "replaces", where="replaces IS NOT NULL"),
    partial_index("ix_documents_deleted", "deleted_at", "id", where="deleted_at IS NOT NULL"),
)

# Files of documents that are gone, until they are deleted where they lie; owner is as in documents.
deleted_files = Table(
    "deleted_files",
    metadata,
    Column("file", String, primary_key=True),
    Column("owner", String, nullable=False),
)

# Where documents come from by themselves: when somebody began to look through it last, and what came of it.
document_sources = Table(
    "document_sources",
    metadata,
    Column("address", String, primary_key=True),
    Column("claimed_at", UtcTime),
    Column("checked_at", UtcTime),
    Column("files", Integer, nullable=False, server_default="0"),
    Column("refused", Integer, nullable=False, server_default="0"),
    Column("problem", Text),
)

# The ids that newer versions had before they took the place of a document.
former_ids = Table(
    "former_ids",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Index("ix_former_ids_document", "document_id"),
)

document_texts = Table(
    "document_texts",
    metadata,
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("text", Text, nullable=False),
    Column("markdown", Boolean, nullable=False, server_default=false()),
    # What of the file could not be read.
    Column("warning", Text),
)

# Pages without a text, and what was recognised on them.
scanned_pages = Table(
    "scanned_pages",
    metadata,
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("page", Integer, primary_key=True),
    # Lines of words such as ["geese", 10.5, 20.0, 42.5, 31.0]: where they stand, in points. None until it was tried.
    Column("lines", JSON(none_as_null=True)),
    # Why nothing could be recognised.
    Column("problem", Text),
    sqlite_with_rowid=False,
)

document_tags = Table(
    "document_tags",
    metadata,
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String, primary_key=True),
    Index("ix_document_tags_tag", "tag", "document_id"),
)

chunks = table_of_ids(
    "chunks",
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("page", Integer),
    Column("text", Text, nullable=False),
    # The path of headings above it, such as "Prices > Europe".
    Column("section", Text),
    # The white space between it and the chunk before it, none where the two do not touch.
    Column("gap", Text),
    # By which its words are indexed, such as "german"; empty where it is not known.
    Column("language", String, nullable=False, server_default=""),
    Index("ix_chunks_document", "document_id", "position"),
    Index("ix_chunks_language", "language"),
    Index("ix_chunks_start", "document_id", "start"),
)

# Activity log to the words of chunks: each row tells from which chunk to which. An index in memory follows it.
word_changes = table_of_ids(
    "word_changes",
    Column("first_chunk", Integer, nullable=False),
    Column("last_chunk", Integer, nullable=False),
)

embeddings = Table(
    "embeddings",
    metadata,
    Column("chunk_id", Integer, ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("embedder", String, primary_key=True),
    # float32, little-endian, of length 1.
    Column("vector", LargeBinary, nullable=False),
)

# The embedding models whose vectors are kept. The active one's are searched; another's are on their way to be.
embedders = Table(
    "embedders",
    metadata,
    Column("key", String, primary_key=True),
    # The settings that lead to the model, without its key.
    Column("source", JSON, nullable=False),
    Column("dimension", Integer, nullable=False),
    # What it made of a fixed text, as float32: by that a model is known again, whatever its name.
    Column("probe", LargeBinary),
    Column("active", Boolean, nullable=False),
    # Numbers that move with every vector kept or dropped, so that an index in memory sees that it is behind.
    Column("additions", Integer, nullable=False),
    Column("deletions", Integer, nullable=False),
)
