"""Libraries: sets of documents that belong to somebody, and are shared with some people or with everybody."""

from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from rag_assistant.records import Access, LibraryRecord
from rag_assistant.records.errors import AccountNotFound, LibraryInUse, LibraryNotFound, NotLibraryOwner
from rag_assistant.storage.accounts.people import name_key
from rag_assistant.storage.database import Store, insert_row, lock, person_of, record_of
from rag_assistant.storage.ownership import libraries_of
from rag_assistant.storage.tables import documents, libraries, library_shares, people


class LibraryStore(Store):
    """Keeps libraries. A person sees those that they may read, and changes their own."""

    def all(self) -> list[LibraryRecord]:
        """Return the libraries that may be read, the own ones first."""
        with self._database.read() as connection:
            person = person_of(connection)
            query = select(libraries, people.c.name.label("owner")).outerjoin(
                people, people.c.id == libraries.c.person_id
            )
            if person is not None:
                query = query.where(libraries.c.id.in_(libraries_of(person)))
            rows = connection.execute(query.order_by(libraries.c.person_id != person, libraries.c.id)).mappings().all()
            return _records(connection, rows, person)

    def get(self, library_id: int) -> LibraryRecord:
        """Return a library. Raises LibraryNotFound."""
        library = next((one for one in self.all() if one.id == library_id), None)
        if library is None:
            raise LibraryNotFound(library_id)
        return library

    def add(self, name: str) -> LibraryRecord:
        """Make a library of one's own."""
        with self._database.write() as connection:
            library_id = insert_row(connection, libraries, {"name": name, "person_id": person_of(connection)})
        return self.get(library_id)

    def change(self, library_id: int, values: dict[str, Any]) -> LibraryRecord:
        """Give a library of one's own another ``name``, or say what ``everyone`` may do: nothing, read or write.

        Raises LibraryNotFound, NotLibraryOwner.
        """
        with self._database.write() as connection:
            _own(connection, library_id)
            if values:
                connection.execute(update(libraries).where(libraries.c.id == library_id).values(values))
        return self.get(library_id)

    def share(self, library_id: int, name: str, access: Access | None) -> LibraryRecord:
        """Let somebody read or write a library of one's own, or take that back.

        Raises LibraryNotFound, NotLibraryOwner, AccountNotFound.
        """
        with self._database.write() as connection:
            _own(connection, library_id)
            person_id = connection.execute(select(people.c.id).where(people.c.name_key == name_key(name))).scalar()
            if person_id is None:
                raise AccountNotFound(name)
            this = library_shares.c.library_id == library_id, library_shares.c.person_id == person_id
            connection.execute(delete(library_shares).where(*this))
            if access is not None:
                shared = {"library_id": library_id, "person_id": person_id, "access": access}
                connection.execute(insert(library_shares).values(shared))
        return self.get(library_id)

    def delete(self, library_id: int) -> None:
        """Delete an empty library of one's own that is not the last. Raises as ``change`` does, and LibraryInUse."""
        with self._database.write() as connection:
            lock(connection, f"libraries of {person_of(connection)}")
            row = _own(connection, library_id)
            filled = select(documents.c.id).where(documents.c.library_id == library_id).limit(1)
            own = select(func.count()).select_from(libraries).where(libraries.c.person_id == row["person_id"])
            if connection.execute(filled).first() is not None or connection.execute(own).scalar_one() < 2:
                raise LibraryInUse(row["name"])
            connection.execute(delete(libraries).where(libraries.c.id == library_id))


def _own(connection: Connection, library_id: int) -> RowMapping:
    """Return the row of a library that belongs to the person of a connection, locked against other writers."""
    person = person_of(connection)
    query = select(libraries).where(libraries.c.id == library_id)
    if person is not None:
        query = query.where(libraries.c.id.in_(libraries_of(person)))
    row = connection.execute(query.with_for_update()).mappings().first()
    if row is None:
        raise LibraryNotFound(library_id)
    if row["person_id"] != person:
        raise NotLibraryOwner(row["name"])
    return row


def _records(connection: Connection, rows: Any, person: int | None) -> list[LibraryRecord]:
    ids = [row["id"] for row in rows]
    current = documents.c.library_id.in_(ids), documents.c.deleted_at.is_(None)
    counts = select(documents.c.library_id, func.count()).where(*current)
    counted = {row[0]: row[1] for row in connection.execute(counts.group_by(documents.c.library_id))}
    named = select(library_shares.c.library_id, library_shares.c.access, people.c.name, people.c.id.label("person_id"))
    joined = named.join(people, people.c.id == library_shares.c.person_id).where(library_shares.c.library_id.in_(ids))
    shares = connection.execute(joined.order_by(people.c.name_key)).all()
    records = []
    for row in rows:
        own, mine = [one for one in shares if one.library_id == row["id"]], row["person_id"] == person
        lets_write = row["everyone"] == "write" or any(one.person_id == person and one.access == "write" for one in own)
        more = {
            "documents": counted.get(row["id"], 0),
            # With whom else it is shared is the owner's to know.
            "shares": [(one.name, one.access) for one in own] if mine else [],
            "mine": mine,
            "writable": mine or lets_write,
        }
        records.append(record_of({**row, **more}, LibraryRecord))
    return records
