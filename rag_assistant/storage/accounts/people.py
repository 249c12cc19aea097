"""Accounts: made, disabled and deleted, and what was done to them.

There is always an administrator, and the first one gets what is there.
"""

import unicodedata
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import AuditEntry, ExternalIdentity, Person, Role
from rag_assistant.records.errors import AccountNotFound, AccountsExist, LastAdmin, NameTaken, StillOwns
from rag_assistant.storage.database import Store, lock, record_of
from rag_assistant.storage.tables import (
    audit_log,
    conversations,
    documents,
    libraries,
    linked_identities,
    now,
    people,
    sessions,
)

# Who makes the first administrator, or takes one away, does so alone.
LAST_ADMIN = "last administrator"
_ANY = select(people.c.id).limit(1)


def name_key(name: str) -> str:
    """Return what tells one name from another: upper and lower case are the same."""
    return unicodedata.normalize("NFKC", name).casefold()


class PeopleStore(Store):
    """Keeps accounts."""

    def any(self) -> bool:
        with self._database.read() as connection:
            return bool(connection.execute(_ANY).all())

    def all(self) -> list[Person]:
        """Return every account, by name."""
        with self._database.read() as connection:
            return [person_of_row(row) for row in connection.execute(select(people).order_by("name_key")).mappings()]

    def named(self, name: str) -> Person:
        """Return an account. Raises AccountNotFound."""
        with self._database.read() as connection:
            return person_of_row(_named(connection, name))

    def get(self, person_id: int) -> Person:
        """Return an account. Raises AccountNotFound."""
        with self._database.read() as connection:
            return person_of_row(_row(connection, person_id))

    def is_welcome(self, person_id: int) -> bool:
        """Tell whether there is this account, and it is not disabled."""
        query = select(people.c.id).where(people.c.id == person_id, people.c.disabled_at.is_(None))
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def password_of(self, name: str) -> tuple[Person, str | None] | None:
        """Return an account that is not disabled, with the hash of its password; ``None`` if there is none."""
        with self._database.read() as connection:
            query = select(people).where(people.c.name_key == name_key(name), people.c.disabled_at.is_(None))
            row = connection.execute(query).mappings().first()
            return None if row is None else (person_of_row(row), row["password_hash"])

    def add(
        self,
        name: str,
        role: Role,
        password_hash: str | None,
        *,
        only_first: bool = False,
        known_by: ExternalIdentity | None = None,
    ) -> Person:
        """Make an account with a library of its own; the first one gets all that was there before it.

        Raises NameTaken, also if somebody is ``known_by`` the same already, and AccountsExist if it was to be the
        ``only_first``.
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
                if first:
                    _take_over(connection, person_id)
                else:
                    connection.execute(insert(libraries).values(name=f"Documents of {name}", person_id=person_id))
                return person_of_row(_row(connection, person_id))
        except IntegrityError:
            raise NameTaken(name) from None

    def set_password(self, person_id: int, password_hash: str, keep_session: int | None = None) -> None:
        """Keep another password, and end every session but one. Raises AccountNotFound."""
        with self._database.write() as connection:
            _row(connection, person_id)
            connection.execute(update(people).where(people.c.id == person_id).values(password_hash=password_hash))
            others = sessions.c.person_id == person_id, sessions.c.id != (keep_session or 0)
            connection.execute(delete(sessions).where(*others))

    def set_role(self, person_id: int, role: Role) -> Person:
        """Give a person another role. Raises AccountNotFound, LastAdmin."""
        return self._change(person_id, {"role": role})

    def set_disabled(self, person_id: int, disabled: bool) -> Person:
        """Let a person in no more, or again; what is theirs stays. Raises AccountNotFound, LastAdmin."""
        return self._change(person_id, {"disabled_at": now() if disabled else None})

    def _change(self, person_id: int, values: dict[str, Any]) -> Person:
        with self._database.write() as connection:
            lock(connection, LAST_ADMIN)
            _row(connection, person_id)
            connection.execute(update(people).where(people.c.id == person_id).values(values))
            _refuse_without_admin(connection)
            if values.get("disabled_at"):
                connection.execute(delete(sessions).where(sessions.c.person_id == person_id))
            return person_of_row(_row(connection, person_id))

    def owned(self, person_id: int) -> tuple[list[int], list[int]]:
        """Return the ids of the conversations of a person, deleted ones included, and of the documents they own."""
        own = select(libraries.c.id).where(libraries.c.person_id == person_id)
        with self._database.read() as connection:
            chats = connection.execute(select(conversations.c.id).where(conversations.c.person_id == person_id))
            own_documents = connection.execute(select(documents.c.id).where(documents.c.library_id.in_(own)))
            return list(chats.scalars()), list(own_documents.scalars())

    def hand_over(self, person_id: int, to: int) -> None:
        """Let everything of one person be another's. Raises AccountNotFound."""
        with self._database.write() as connection:
            _row(connection, to)
            for table in (conversations, libraries):
                connection.execute(update(table).where(table.c.person_id == person_id).values(person_id=to))

    def delete(self, person_id: int) -> None:
        """Delete the account of somebody who has nothing left. Raises AccountNotFound, LastAdmin, StillOwns."""
        with self._database.write() as connection:
            lock(connection, LAST_ADMIN)
            row = _row(connection, person_id)
            own = libraries.c.person_id == person_id
            filled = select(documents.c.id).where(documents.c.library_id.in_(select(libraries.c.id).where(own)))
            chats = select(conversations.c.id).where(conversations.c.person_id == person_id)
            if any(connection.execute(query.limit(1)).first() for query in (chats, filled)):
                raise StillOwns(row["name"])
            connection.execute(delete(libraries).where(own))
            connection.execute(delete(people).where(people.c.id == person_id))
            _refuse_without_admin(connection)


def person_of_row(row: RowMapping) -> Person:
    return Person(
        id=row["id"],
        name=row["name"],
        role=row["role"],
        created_at=row["created_at"],
        has_password=row["password_hash"] is not None,
        disabled_at=row["disabled_at"],
    )


def link_identity(connection: Connection, person_id: int, external: ExternalIdentity) -> RowMapping:
    """Let a person be known by an account elsewhere. Raises IntegrityError if somebody is."""
    values = {"issuer": external.issuer, "subject": external.subject, "label": external.label}
    moment = now()
    link = insert(linked_identities).values(values | {"person_id": person_id, "created_at": moment, "used_at": moment})
    return connection.execute(link.returning(*linked_identities.c)).mappings().one()


def _row(connection: Connection, person_id: int) -> RowMapping:
    row = connection.execute(select(people).where(people.c.id == person_id)).mappings().first()
    if row is None:
        raise AccountNotFound(str(person_id))
    return row


def _named(connection: Connection, name: str) -> RowMapping:
    row = connection.execute(select(people).where(people.c.name_key == name_key(name))).mappings().first()
    if row is None:
        raise AccountNotFound(name)
    return row


def _take_over(connection: Connection, person_id: int) -> None:
    """Let everything that belongs to nobody belong to the first person."""
    for table in (conversations, libraries):
        connection.execute(update(table).where(table.c.person_id.is_(None)).values(person_id=person_id))


def _refuse_without_admin(connection: Connection) -> None:
    admins = people.c.role == "admin", people.c.disabled_at.is_(None)
    if not connection.execute(select(func.count()).select_from(people).where(*admins)).scalar():
        raise LastAdmin


class AuditLog(Store):
    """Notes what was done, for good."""

    def note(self, actor: str, action: str, subject: str, address: str | None = None) -> None:
        """Note that somebody did something to something."""
        values = {"at": now(), "actor": actor, "action": action, "subject": subject, "address": address}
        with self._database.write() as connection:
            connection.execute(insert(audit_log).values(values))

    def newest(self, limit: int) -> list[AuditEntry]:
        """Return the last entries, the newest first."""
        query = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings()
            return [record_of(row, AuditEntry) for row in rows]
