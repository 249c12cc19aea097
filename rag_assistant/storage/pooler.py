"""A pooler between us and PostgreSQL: one that mixes up prepared statements is refused before anything is asked.

In transaction mode each transaction may reach another server process, which has no statement of a name, or another
client's.
"""

from __future__ import annotations

import uuid

from rag_assistant.records.errors import SettingsError
from rag_assistant.storage.database import Database

FORGETFUL = (
    "database_url leads to a pooler in transaction mode that mixes up prepared statements. Set its mode to session, or "
    "let it know them (PgBouncer 1.21 or newer with max_prepared_statements)."
)


def refuse_forgetful_pooler(database: Database) -> None:
    """Raise SettingsError if a statement that was prepared in one transaction is another or none in the next one.

    A database that cannot be reached at all is left to whoever needs it.
    """
    if database.is_sqlite:
        return
    import psycopg
    from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName

    token = uuid.uuid4().hex
    statement = psycopg.sql.SQL("SELECT {}").format(token)
    address = database.connection_string
    try:
        with psycopg.connect(address) as one, psycopg.connect(address) as other:
            one.execute(statement, prepare=True)
            one.commit()
            other.execute("SELECT 1")  # In transaction mode it has taken what the first one had.
            if one.execute(statement, prepare=True).fetchone() != (token,):
                raise SettingsError(FORGETFUL)
    except (DuplicatePreparedStatement, InvalidSqlStatementName) as error:
        raise SettingsError(FORGETFUL) from error
    except psycopg.OperationalError:
        return
