"""Libraries: sets of documents with an owner, shared with some people or with everybody."""

from typing import Any

from sqlalchemy import Connection, Select, delete, func, select

from rag_assistant.records import LibraryRecord
from rag_assistant.records.errors import LibraryInUse, LibraryNotFound, NotLibraryOwner
from rag_assistant.storage.accounts.sharing import SharedStore
from rag_assistant.storage.database import lock, person_of, set_values
from rag_assistant.storage.ownership import in_readable_library, libraries_of
from rag_assistant.storage.tables import documents, libraries, library_shares


class LibraryStore(SharedStore[LibraryRecord]):
    """Stores libraries. People see those they may read and change their own."""

    table, item_id, of = libraries, library_shares.c.library_id, staticmethod(libraries_of)
    kind, not_found, not_owner, counted = LibraryRecord, LibraryNotFound, NotLibraryOwner, "documents"

    def add(self, name: str) -> LibraryRecord:
        """Create a library owned by the person."""
        return self._add({"name": name})

    def change(self, library_id: int, values: dict[str, Any]) -> LibraryRecord:
        """Rename a library, or set what ``everyone`` may do: nothing, read or write. Raises LibraryNotFound,
        NotLibraryOwner.
        """
        with self._database.write() as connection:
            self._own(connection, library_id)
            if values:
                set_values(connection, libraries, library_id, values)
        return self.get(library_id)

    def delete(self, library_id: int) -> None:
        """Delete an empty library, unless it is the person's last. Raises as ``change`` does, and LibraryInUse."""
        with self._database.write() as connection:
            lock(connection, f"libraries of {person_of(connection)}")
            row = self._own(connection, library_id)
            filled = select(documents.c.id).where(documents.c.library_id == library_id).limit(1)
            own = select(func.count()).select_from(libraries).where(libraries.c.person_id == row["person_id"])
            if connection.execute(filled).first() is not None or connection.execute(own).scalar_one() < 2:
                raise LibraryInUse(row["name"])
            connection.execute(delete(libraries).where(libraries.c.id == library_id))

    def _in_each(self, connection: Connection) -> Select[Any]:
        current = in_readable_library(connection)
        return select(documents.c.library_id, func.count()).where(current).group_by(documents.c.library_id)
