"""What is left of a secret: in every table of the database, by what it holds, and in every file of the data folder."""

from sqlalchemy import LargeBinary, func, inspect, select, text, type_coerce

from rag_assistant.services import Services
from rag_assistant.storage.tables import CompressedJSON, metadata

SECRET = "xylophonsecret4711"
# What deletes the rows of each table. Beside them: a document's file, the search index in memory, and nothing in logs.
DELETED_WITH = {
    "conversation": "conversations turns messages answer_parts pictures receipts sent_elsewhere answer_versions "
    "ratings summaries history_changes conversation_links",
    "document": "documents document_texts scanned_pages document_tags chunks word_changes embeddings former_ids "
    "deleted_files grid_cells",
    "person": "people sessions linked_identities api_tokens password_links libraries library_shares projects "
    "project_shares notes grids grid_shares",
}
# What stays, and what it is.
KEPT = {
    "audit_log": "who did what, with the names of accounts, and with numbers of everything else",
    "processes": "the servers that run, with their settings",
    "page_settings": "what was last changed on the settings page",
    "model_tokens": "numbers, for a month",
    "asked_questions": "moments, for a minute",
    "model_counts": "what an endpoint counts",
    "embedders": "embedding models",
    "document_sources": "the folders, repositories and buckets of the settings",
}


def row_counts(services: Services) -> dict[str, int]:
    """Return how many rows the tables have whose rows deletion removes."""
    removed = " ".join(DELETED_WITH.values()).split()
    with services.database.read() as connection:
        count = select(func.count())
        return {name: connection.scalar(count.select_from(metadata.tables[name])) or 0 for name in removed}


def tables_with_secret(services: Services) -> set[str]:
    """Return the tables that hold it, also compressed; the index of the words of turns counts as one."""
    names = inspect(services.database.engine).get_table_names()
    with services.database.read() as connection:
        queries = {name: select(text("*")).select_from(text(name)) for name in names if "turn_words_" not in name}
        queries |= {name: select(table) for name, table in metadata.tables.items()}
        # The text of a Row is cut short; that of its fields is not.
        rows = {name: list(map(tuple, connection.execute(query))) for name, query in queries.items()}
    return {name for name, found in rows.items() if SECRET in str(found).lower()}


def compressed_with_secret(services: Services) -> list[bytes]:
    """Return the ends of all compressed values that hold the secret: what they begin with, others may, too."""
    with services.database.read() as connection:
        tables = metadata.tables.values()
        columns = [column for table in tables for column in table.c if isinstance(column.type, CompressedJSON)]
        pairs = [
            pair for column in columns for pair in connection.execute(select(column, type_coerce(column, LargeBinary)))
        ]
    return [kept[-40:] for value, kept in pairs if SECRET in str(value).lower()]


def files_with(services: Services, *what: bytes) -> list[str]:
    """Return the names of the files that hold any of some bytes."""
    files = [path for path in services.data_dir.rglob("*") if path.is_file()]
    return [path.name for path in files if any(one in path.read_bytes() for one in what)]
