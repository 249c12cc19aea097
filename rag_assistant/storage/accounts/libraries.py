"""Libraries, sets of documents with an owner; and sharing, as of projects, with some people or with everybody."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, Select, Table, delete, func, insert, select

from rag_assistant.records import Access, LibraryRecord, Share, Shared
from rag_assistant.records.errors import AssistantError, LibraryInUse, LibraryNotFound, NotLibraryOwner, TooManyOwned
from rag_assistant.storage.accounts.people import row_of_person
from rag_assistant.storage.database import Store, insert_row, lock, person_of, record_of, set_values
from rag_assistant.storage.ownership import OF_A_PERSON, in_readable_library, libraries_of, owner_of_new
from rag_assistant.storage.tables import documents, libraries, library_shares, people

Kind = TypeVar("Kind", bound=Shared)
# Libraries, projects or tables of one person: pages of others list those that are shared.
MAX_OWNED = 500


class SharedStore(Store, Generic[Kind]):
    """Stores what is shared in ``table``. People see what they may read and share their own.

    ``item_id`` is the column of the shares table that names it; ``of`` gives the query for what a person may read or
    write. ``counted`` is the field that holds the number of its contents.
    """

    table: ClassVar[Table]
    item_id: ClassVar[Column[int]]
    of: ClassVar[Callable[..., Select[tuple[int]]]]
    kind: type[Kind]
    not_found: ClassVar[type[AssistantError]]
    not_owner: ClassVar[type[AssistantError]]
    counted: ClassVar[str]
    # What is so of an item outside the trash.
    present: ClassVar[tuple[ColumnElement[bool], ...]] = ()
    fields_of: ClassVar[Callable[..., dict[str, Any]]] = dict

    def all(self) -> list[Kind]:
        """Return everything the person may read, their own first."""
        return self._readable(*self.present)

    def _readable(self, *conditions: ColumnElement[bool]) -> list[Kind]:
        with self._database.read() as connection:
            person, table = person_of(connection), self.table
            query = select(table, people.c.name.label("owner")).outerjoin(people, people.c.id == table.c.person_id)
            query = query.where(*conditions)
            if person is not None:
                query = query.where(table.c.id.in_(self.of(person)))
            rows = connection.execute(query.order_by(table.c.person_id != person, table.c.id)).mappings().all()
            return self._records_of(connection, rows)

    def get(self, item_id: int) -> Kind:
        """Return one item. Raises its not-found error."""
        if items := self._readable(self.table.c.id == item_id, *self.present):
            return items[0]
        raise self.not_found(item_id)

    def _add(self, values: Mapping[str, Any]) -> Kind:
        with self._database.write() as connection:
            own, table = {**values, "person_id": owner_of_new(connection)}, self.table
            owned = select(func.count()).select_from(table).where(table.c.person_id == own["person_id"])
            if connection.execute(owned).scalar_one() >= MAX_OWNED:
                raise TooManyOwned(MAX_OWNED)
            self._refuse_taken_name(connection, own)
            item_id = insert_row(connection, table, own)
        return self.get(item_id)

    def _refuse_taken_name(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Raise if the name is taken; libraries may share a name."""

    def share(self, item_id: int, name: str, access: Access | None) -> Kind:
        """Give somebody access to an item, or revoke it. Raises its not-found and owner errors, AccountNotFound."""
        with self._database.write() as connection:
            self._own(connection, item_id)
            person_id = row_of_person(connection, name)["id"]
            shares = self.item_id.table
            connection.execute(delete(shares).where(self.item_id == item_id, shares.c.person_id == person_id))
            if access is not None:
                shared = {self.item_id.name: item_id, "person_id": person_id, "access": access}
                connection.execute(insert(shares).values(shared))
        return self.get(item_id)

    def _own(self, connection: Connection, item_id: int, *, writers: bool = False) -> RowMapping:
        """Return the row of an item the person owns, or with ``writers`` may write, locked against other writers."""
        person, table = person_of(connection), self.table
        query = select(table).where(table.c.id == item_id)
        if person is not None:
            query = query.where(table.c.id.in_(self.of(person)))
        row = connection.execute(query.with_for_update()).mappings().first()
        if row is None:
            raise self.not_found(item_id)
        if person is not None and row["person_id"] != person:
            written = query.where(table.c.id.in_(self.of(person, "write")))
            if not writers or connection.execute(written).first() is None:
                raise self.not_owner(row["name"])
        return row

    def _in_each(self, connection: Connection) -> Select[Any]:
        """Return the query that counts the contents of each item."""
        raise NotImplementedError

    def _records_of(self, connection: Connection, rows: Sequence[RowMapping]) -> list[Kind]:
        ids, person, shares = [row["id"] for row in rows], person_of(connection), self.item_id.table
        counted = self._in_each(connection)
        counts = {row[0]: row[1] for row in connection.execute(counted.where(counted.selected_columns[0].in_(ids)))}
        named = select(self.item_id.label("item_id"), shares.c.access, people.c.name, people.c.id.label("person_id"))
        joined = named.join(people, people.c.id == shares.c.person_id).where(self.item_id.in_(ids))
        shared = connection.execute(joined.order_by(people.c.name_key)).all()
        records = []
        for row in rows:
            own, mine = [one for one in shared if one.item_id == row["id"]], person in (None, row["person_id"])
            lets_write = any(one.person_id == person and one.access == "write" for one in own)
            more = {
                self.item_id.name: row["id"],
                self.counted: counts.get(row["id"], 0),
                # Only the owner sees whom else it is shared with.
                "shares": [Share(one.name, one.access) for one in own] if mine else [],
                "mine": mine,
                "writable": mine or lets_write or row["everyone"] == "write",
            }
            records.append(record_of(self.fields_of(row) | more, self.kind))
        return records


class LibraryStore(SharedStore[LibraryRecord]):
    """Stores libraries. People see those they may read and change their own."""

    table, item_id, of = libraries, library_shares.c.library_id, staticmethod(libraries_of)
    kind, not_found, not_owner, counted = LibraryRecord, LibraryNotFound, NotLibraryOwner, "documents"

    def add(self, name: str) -> LibraryRecord:
        """Create a library owned by the person."""
        return self._add({"name": name})

    def change(self, library_id: int, values: dict[str, Any]) -> LibraryRecord:
        """Rename a library, or set what ``everyone`` may do with it. Raises LibraryNotFound, NotLibraryOwner."""
        with self._database.write() as connection:
            self._own(connection, library_id)
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
        own = in_readable_library(connection), OF_A_PERSON
        return select(documents.c.library_id, func.count()).where(*own).group_by(documents.c.library_id)
