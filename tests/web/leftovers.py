"""What is left of a secret: in every table of the database, by what it holds, and in every file of the data folder."""

from sqlalchemy import LargeBinary, inspect, select, text, type_coerce

from rag_assistant.services import Services
from rag_assistant.storage.tables import CompressedJSON, metadata

SECRET = "xylophonsecret4711"


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
