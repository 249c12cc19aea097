"""The tables of documents, their chunks and their vectors."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Text, false

from rag_assistant.storage.tables.base import UtcTime, keyed_table, partial_index, table_of_ids

documents = table_of_ids(
    "documents",
    Column("name", String, nullable=False),
    # Its sort key; see rows.py.
    Column("name_key", String, nullable=False, server_default=""),
    Column("media_type", String, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    # Library and content, so that the same content is one document per library; see rows.py.
    Column("content_key", String, nullable=False, unique=True),
    Column("sha256", String, nullable=False, server_default=""),
    Column("library_id", Integer),
    # Where the uploaded file is: the installation or the address in S3; and the file's name.
    Column("owner", String, nullable=False),
    Column("file", String, nullable=False),
    # The process that works on it, or did.
    Column("worker", String),
    Column("state", String, nullable=False),
    Column("reason", Text),
    Column("chunks", Integer, nullable=False),
    Column("embedded", Integer, nullable=False),
    Column("page_starts", JSON),
    # The pages with a figure beside their text, none if it was read before they were noted.
    Column("figures", JSON(none_as_null=True)),
    Column("created_at", UtcTime, nullable=False),
    # All dates found for it, by where they are from; then the most trusted one, which may be a year or a month only.
    Column("dates", JSON, nullable=False, server_default="{}"),
    Column("date", String, nullable=False, server_default=""),
    Column("date_from", String, nullable=False, server_default="added"),
    # The file on this machine, or the web address, it was read from.
    Column("origin", Text),
    # The document this is a newer version of: it replaces that once it is ready, and isn't found before.
    Column("replaces", Integer),
    # Failed attempts to embed it since it was read.
    Column("attempts", Integer, nullable=False, server_default="0"),
    # How many of its pages hold no text, and for how many of these text recognition is done.
    Column("scanned_pages", Integer, nullable=False, server_default="0"),
    Column("recognised_pages", Integer, nullable=False, server_default="0"),
    # When it was moved to the trash; nothing finds it until it is restored.
    Column("deleted_at", UtcTime),
    # With the size, so that a library's figures come from the index alone.
    Index("ix_documents_state", "state", "id", "size_bytes"),
    Index("ix_documents_name", "name_key", "id"),
    Index("ix_documents_size", "size_bytes", "id"),
    Index("ix_documents_date", "date", "id"),
    Index("ix_documents_origin", "origin"),
    Index("ix_documents_library", "library_id", "id"),
    partial_index("ix_documents_replaces", "replaces", where="replaces IS NOT NULL"),
    partial_index("ix_documents_deleted", "deleted_at", "id", where="deleted_at IS NOT NULL"),
)

# Files of deleted documents, until they are deleted; owner is as in documents.
deleted_files = keyed_table(
    "deleted_files", Column("file", String, primary_key=True), Column("owner", String, nullable=False)
)

# Sources that are scanned automatically: when the last scan began, and its result.
document_sources = keyed_table(
    "document_sources",
    Column("address", String, primary_key=True),
    Column("claimed_at", UtcTime),
    Column("checked_at", UtcTime),
    Column("files", Integer, nullable=False, server_default="0"),
    Column("refused", Integer, nullable=False, server_default="0"),
    Column("problem", Text),
)

# The ids that newer versions had before they replaced a document.
former_ids = keyed_table(
    "former_ids",
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Index("ix_former_ids_document", "document_id"),
)

document_texts = keyed_table(
    "document_texts",
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("text", Text, nullable=False),
    Column("markdown", Boolean, nullable=False, server_default=false()),
    # What of the file couldn't be read.
    Column("warning", Text),
)

# Pages without text, and what was recognised on them.
scanned_pages = keyed_table(
    "scanned_pages",
    Column("document_id", Integer, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("page", Integer, primary_key=True),
    # Lines of words such as ["geese", 10.5, 20.0, 42.5, 31.0], with positions in points. None until it was tried.
    Column("lines", JSON(none_as_null=True)),
    # Why nothing could be recognised.
    Column("problem", Text),
    sqlite_with_rowid=False,
)

document_tags = keyed_table(
    "document_tags",
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
    # The white space between it and the chunk before it, none where they aren't adjacent.
    Column("gap", Text),
    # The language its words are indexed in, such as "german"; empty if unknown.
    Column("language", String, nullable=False, server_default=""),
    Index("ix_chunks_document", "document_id", "position"),
    Index("ix_chunks_language", "language"),
    Index("ix_chunks_start", "document_id", "start"),
)

# The log of changes to the words of chunks: each row has the first and last chunk. An in-memory index follows it.
word_changes = table_of_ids(
    "word_changes", Column("first_chunk", Integer, nullable=False), Column("last_chunk", Integer, nullable=False)
)

embeddings = keyed_table(
    "embeddings",
    Column("chunk_id", Integer, ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("embedder", String, primary_key=True),
    # float32, little-endian, of length 1.
    Column("vector", LargeBinary, nullable=False),
)

# The embedding models with stored vectors. The active one's are searched; another's are being prepared.
embedders = keyed_table(
    "embedders",
    Column("key", String, primary_key=True),
    # The settings that configure the model, without its key.
    Column("source", JSON, nullable=False),
    Column("dimension", Integer, nullable=False),
    # Its vector for a fixed text, as float32, which identifies the model whatever its name.
    Column("probe", LargeBinary),
    Column("active", Boolean, nullable=False),
    # Counters of stored and deleted vectors, so that an in-memory index sees that it is out of date.
    Column("additions", Integer, nullable=False),
    Column("deletions", Integer, nullable=False),
)
