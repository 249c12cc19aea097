"""Accounts and the audit log. There is always an administrator; the first one gets all existing data."""

import unicodedata
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import AuditEntry, ExternalIdentity, Person, Role
from rag_assistant.records.errors import AccountNotFound, AccountsExist, LastAdmin, NameTaken, StillOwns
from rag_assistant.storage.database import Store, lock, record_of
from rag_assistant.storage.tables import (
    audit_log,
    conversations,
    documents,
    grids,
    libraries,
    linked_identities,
    notes,
    now,
    people,
    projects,
    sessions,
)

# Creating the first administrator and removing one are serialized.
LAST_ADMIN = "last administrator"
_ANY = select(people.c.id).limit(1)
# What people own, besides documents.
OWNED = (conversations, grids, libraries, projects, notes)


def name_key(name: str) -> str:
    """Return the key by which names are compared: case is ignored."""
    return unicodedata.normalize("NFKC", name).casefold()


class PeopleStore(Store):
    """Stores accounts."""

    def any(self) -> bool:
        return bool(self._values(_ANY))

    def all(self) -> list[Person]:
        """Return all accounts, sorted by name."""
        return [person_of_row(row) for row in self._rows(select(people).order_by("name_key"))]

    def get(self, id_or_name: int | str) -> Person:
        """Return an account. Raises AccountNotFound."""
        with self._database.read() as connection:
            return person_of_row(row_of_person(connection, id_or_name))

    def is_welcome(self, person_id: int) -> bool:
        """Return whether the account exists and isn't disabled."""
        return bool(self._values(select(people.c.id).where(people.c.id == person_id, people.c.disabled_at.is_(None))))

    def password_of(self, name: str) -> tuple[Person, str | None] | None:
        """Return an enabled account with its password hash; ``None`` if there is none."""
        query = select(people).where(people.c.name_key == name_key(name), people.c.disabled_at.is_(None))
        return next(((person_of_row(row), row["password_hash"]) for row in self._rows(query)), None)

    def add(
        self,
        name: str,
        role: Role,
        password_hash: str | None,
        *,
        only_first: bool = False,
        known_by: ExternalIdentity | None = None,
    ) -> Person:
        """Create an account with its own library; the first one gets all existing data.

        Raises NameTaken, also if ``known_by`` is already linked, and AccountsExist if it was to be the ``only_first``.
        """
        try:
            with self._database.write() as connection:
                lock(connection, LAST_ADMIN)
                first = connection.execute(select(people.c.id).limit(1)).first() is None
                if only_first and not first:
                    raise AccountsExist
                values = {"name": name, "name_key": name_key(name), "role": "admin" if first else role}
                inserted = insert(people).values(values | {"password_hash": password_hash, "created_at": now()})
                person_id = connection.execute(inserted.returning(people.c.id)).scalar_one()
                if known_by is not None:
                    link_identity(connection, person_id, known_by)
                if first:  # Unowned data becomes theirs.
                    for table in OWNED:
                        unowned = update(table).where(table.c.person_id.is_(None))
                        connection.execute(unowned.values(person_id=person_id))
                else:
                    connection.execute(insert(libraries).values(name=f"Documents of {name}", person_id=person_id))
                return person_of_row(row_of_person(connection, person_id))
        except IntegrityError:
            raise NameTaken(name) from None

    def set_password(self, person_id: int, password_hash: str, keep_session: int | None = None) -> None:
        """Set the password hash and end all sessions except one. Raises AccountNotFound."""
        with self._database.write() as connection:
            row_of_person(connection, person_id)
            connection.execute(update(people).where(people.c.id == person_id).values(password_hash=password_hash))
            others = sessions.c.person_id == person_id, sessions.c.id != (keep_session or 0)
            connection.execute(delete(sessions).where(*others))

    def change(self, person_id: int, values: dict[str, Any]) -> Person:
        """Set a person's role, email address, or when they were disabled. Raises AccountNotFound, LastAdmin."""
        with self._database.write() as connection:
            lock(connection, LAST_ADMIN)
            row_of_person(connection, person_id)
            connection.execute(update(people).where(people.c.id == person_id).values(values))
            _refuse_without_admin(connection)
            if values.get("disabled_at"):
                connection.execute(delete(sessions).where(sessions.c.person_id == person_id))
            return person_of_row(row_of_person(connection, person_id))

    def owned(self, person_id: int) -> tuple[list[int], list[int]]:
        """Return the ids of a person's conversations, including deleted ones, and documents."""
        chats, own_documents = _owned(person_id)
        return self._values(chats), self._values(own_documents)

    def hand_over(self, person_id: int, to: int) -> None:
        """Transfer everything a person owns to another. Raises AccountNotFound."""
        with self._database.write() as connection:
            row_of_person(connection, to)
            query = select(projects.c.id, projects.c.overrides).where(projects.c.person_id == person_id)
            for number, rules in connection.execute(query).all():
                # It would act on conversations of its new owner.
                rules.pop("retention_days", None)
                connection.execute(update(projects).where(projects.c.id == number).values(overrides=rules))
            for table in OWNED:
                connection.execute(update(table).where(table.c.person_id == person_id).values(person_id=to))

    def delete(self, person_id: int) -> None:
        """Delete an account that owns nothing. Raises AccountNotFound, LastAdmin, StillOwns."""
        with self._database.write() as connection:
            lock(connection, LAST_ADMIN)
            row = row_of_person(connection, person_id)
            if any(connection.execute(query.limit(1)).first() for query in _owned(person_id)):
                raise StillOwns(row["name"])
            for table in OWNED[1:]:
                connection.execute(delete(table).where(table.c.person_id == person_id))
            connection.execute(delete(people).where(people.c.id == person_id))
            _refuse_without_admin(connection)


def person_of_row(row: RowMapping) -> Person:
    return record_of({**row, "has_password": row["password_hash"] is not None}, Person)


def link_identity(connection: Connection, person_id: int, external: ExternalIdentity) -> RowMapping:
    """Link an identity to a person. Raises IntegrityError if it is already linked."""
    values = {"issuer": external.issuer, "subject": external.subject, "label": external.label}
    moment = now()
    link = insert(linked_identities).values(values | {"person_id": person_id, "created_at": moment, "used_at": moment})
    return connection.execute(link.returning(*linked_identities.c)).mappings().one()


def row_of_person(connection: Connection, id_or_name: int | str) -> RowMapping:
    """Return the row of an account. Raises AccountNotFound."""
    this = people.c.id == id_or_name if isinstance(id_or_name, int) else people.c.name_key == name_key(id_or_name)
    row = connection.execute(select(people).where(this)).mappings().first()
    if row is None:
        raise AccountNotFound(str(id_or_name))
    return row


def _owned(person_id: int) -> tuple[Select[tuple[int]], Select[tuple[int]]]:
    own = documents.c.library_id.in_(select(libraries.c.id).where(libraries.c.person_id == person_id))
    chats = select(conversations.c.id).where(conversations.c.person_id == person_id)
    return chats, select(documents.c.id).where(own)


def _refuse_without_admin(connection: Connection) -> None:
    admins = people.c.role == "admin", people.c.disabled_at.is_(None)
    if not connection.execute(select(func.count()).select_from(people).where(*admins)).scalar():
        raise LastAdmin


class AuditLog(Store):
    """Records what people did, permanently."""

    def note(self, actor: str, action: str, subject: str, address: str | None = None) -> None:
        values = {"at": now(), "actor": actor, "action": action, "subject": subject, "address": address}
        self._commit(insert(audit_log).values(values))

    def newest(self, limit: int) -> list[AuditEntry]:
        """Return the latest entries, newest first."""
        return self._records(select(audit_log).order_by(audit_log.c.id.desc()).limit(limit), AuditEntry)
