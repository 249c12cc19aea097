"""Sessions, API tokens, one-time links and conversation links, only as hashes; linked accounts of providers."""

import hashlib
from contextlib import suppress
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import (
    ApiToken,
    ConversationLink,
    ExternalIdentity,
    LinkedIdentity,
    Person,
    Session,
    SharedConversation,
    errors,
)
from rag_assistant.storage.accounts.people import link_identity, person_of_row, row_of_person
from rag_assistant.storage.conversations.conversations import load_conversation
from rag_assistant.storage.database import Record, Store, insert_row, lock, record_of
from rag_assistant.storage.tables import (
    api_tokens,
    conversation_links,
    conversations,
    linked_identities,
    now,
    password_links,
    people,
    sessions,
)

# Writing on every request would cost more than the request itself.
USED_AT_STEP = timedelta(minutes=1)
# Per person: more browsers than anybody uses.
MAX_SESSIONS = 50
# Of links that work: their conversation, and its owner.
_OPEN = (
    conversations.c.id == conversation_links.c.conversation_id,
    conversations.c.deleted_at.is_(None),
    people.c.id == conversations.c.person_id,
    people.c.disabled_at.is_(None),
)


def hash_of(secret: str) -> str:
    """Return the hash of a secret. Secrets are long and random, so a fast hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


class CredentialStore(Store):
    """Stores credentials."""

    # --- sessions

    def start_session(self, person_id: int, secret: str, lifetime: timedelta, **values: object) -> Session:
        """Store a new session, with where it began; delete expired ones and, beyond ``MAX_SESSIONS``, the oldest."""
        moment = now()
        times = {"created_at": moment, "used_at": moment, "expires_at": moment + lifetime}
        new = {"person_id": person_id, "secret_hash": hash_of(secret)} | times | values
        with self._database.write() as connection:
            lock(connection, f"sessions of {person_id}")
            connection.execute(sa.delete(sessions).where(sessions.c.expires_at <= moment))
            row = connection.execute(sa.insert(sessions).values(new).returning(*sessions.c)).mappings().one()
            own = sessions.c.person_id == person_id
            newest = sa.select(sessions.c.id).where(own).order_by(sessions.c.id.desc()).limit(MAX_SESSIONS)
            connection.execute(sa.delete(sessions).where(own, sessions.c.id.not_in(newest)))
            return record_of(row, Session)

    def session(self, secret: str) -> tuple[Person, Session] | None:
        """Return the person and session of a secret, ``None`` if it has expired or the person may not sign in."""
        return self._used(sessions, Session, secret)

    def sessions_of(self, person_id: int) -> list[Session]:
        """Return a person's sessions, most recently used first."""
        own = sessions.c.person_id == person_id, sessions.c.expires_at > now()
        return self._records(sa.select(sessions).where(*own).order_by(sessions.c.used_at.desc()), Session)

    def is_open(self, session_id: int | None, token_id: int | None) -> bool:
        """Return whether a session or token is still valid."""
        table, number = (sessions, session_id) if session_id is not None else (api_tokens, token_id)
        return bool(self._rows(_valid(table).where(table.c.id == number), {"moment": now()}))

    def end_session(self, person_id: int, session_id: int) -> None:
        """End one session of a person. Raises CredentialNotFound."""
        if not self._commit(sa.delete(sessions).where(sessions.c.person_id == person_id, sessions.c.id == session_id)):
            raise errors.CredentialNotFound("session", session_id)

    def end_sessions(self, person_id: int, but: int | None = None) -> None:
        """End all sessions of a person except one."""
        self._commit(sa.delete(sessions).where(sessions.c.person_id == person_id, sessions.c.id != (but or 0)))

    def knows_address(self, person_id: int, address: str) -> bool:
        """Return whether a person is signed in from an address."""
        own = sessions.c.person_id == person_id, sessions.c.address == address
        return bool(self._values(sa.select(sessions.c.id).where(*own).limit(1)))

    # --- tokens

    def add_token(self, secret: str, **values: object) -> ApiToken:
        """Store a token: whose it is, its name, prefix and scopes, and when it expires."""
        inserted = sa.insert(api_tokens).values(values | {"secret_hash": hash_of(secret), "created_at": now()})
        with self._database.write() as connection:
            return record_of(connection.execute(inserted.returning(*api_tokens.c)).mappings().one(), ApiToken)

    def token(self, secret: str) -> tuple[Person, ApiToken] | None:
        """Return the person and token of a secret, ``None`` if it has expired or the person may not sign in."""
        return self._used(api_tokens, ApiToken, secret)

    def tokens_of(self, person_id: int) -> list[ApiToken]:
        """Return a person's tokens, including expired ones, newest first."""
        own = sa.select(api_tokens).where(api_tokens.c.person_id == person_id)
        return self._records(own.order_by(api_tokens.c.id.desc()), ApiToken)

    def revoke_token(self, person_id: int, token_id: int) -> ApiToken:
        """Revoke a token and return it. Raises CredentialNotFound."""
        with self._database.write() as connection:
            own = api_tokens.c.person_id == person_id, api_tokens.c.id == token_id
            gone = connection.execute(sa.delete(api_tokens).where(*own).returning(*api_tokens.c)).mappings().first()
            if gone is None:
                raise errors.CredentialNotFound("token", token_id)
            return record_of(gone, ApiToken)

    # --- one-time links

    def make_link(self, person_id: int, secret: str, lifetime: timedelta) -> None:
        """Store a link for choosing a password; it replaces an earlier one."""
        moment = now()
        with self._database.write() as connection:
            connection.execute(sa.select(people.c.id).where(people.c.id == person_id).with_for_update())
            stale = (password_links.c.person_id == person_id) | (password_links.c.expires_at <= moment)
            connection.execute(sa.delete(password_links).where(stale))
            values = {"secret_hash": hash_of(secret), "person_id": person_id, "expires_at": moment + lifetime}
            connection.execute(sa.insert(password_links).values(values))

    def link(self, secret: str) -> Person:
        """Return the person a link is for. Raises LinkOver if it was used or has expired."""
        of_link = sa.select(password_links.c.person_id).where(*_is_good(secret))
        for row in self._rows(sa.select(people).where(people.c.id.in_(of_link), people.c.disabled_at.is_(None))):
            return person_of_row(row)
        raise errors.LinkOver

    def use_link(self, secret: str, password_hash: str) -> Person:
        """Set the password chosen through a link; end all sessions and the link. Raises LinkOver."""
        with self._database.write() as connection:
            person_id = spend_link(connection, secret)
            connection.execute(sa.delete(sessions).where(sessions.c.person_id == person_id))
            changed = sa.update(people).where(people.c.id == person_id).values(password_hash=password_hash)
            return person_of_row(connection.execute(changed.returning(*people.c)).mappings().one())

    def spend_link(self, secret: str) -> None:
        """Invalidate a link. Raises LinkOver if it already was."""
        with self._database.write() as connection:
            spend_link(connection, secret)

    def _used(self, table: sa.Table, kind: type[Record], secret: str) -> tuple[Person, Record] | None:
        """Return a credential's person and record, and record its use, to the minute, if that can be stored."""
        moment = now()
        with self._database.read() as connection:
            shown = {"secret": hash_of(secret), "moment": moment}
            row = connection.execute(_SHOWN[table], shown).mappings().first()
            if row is None:
                return None
            person = person_of_row(connection.execute(_PERSON, {"person": row["person_id"]}).mappings().one())
        if row["used_at"] is None or moment - row["used_at"] > USED_AT_STEP:
            with suppress(errors.StorageFailed):
                self._commit(sa.update(table).where(table.c.id == row["id"]).values(used_at=moment))
        return person, record_of(row, kind)


def _valid(table: sa.Table) -> sa.Select[tuple[object]]:
    """Return the query for credentials that are valid at a ``moment``, of people who may sign in."""
    welcome = sa.select(people.c.id).where(people.c.disabled_at.is_(None))
    in_time = sa.or_(table.c.expires_at.is_(None), table.c.expires_at > sa.bindparam("moment"))
    return sa.select(table).where(in_time, table.c.person_id.in_(welcome))


# Every request runs these, so they are built once.
_SHOWN = {table: _valid(table).where(table.c.secret_hash == sa.bindparam("secret")) for table in (sessions, api_tokens)}
_PERSON = sa.select(people).where(people.c.id == sa.bindparam("person"))


def _is_good(secret: str) -> tuple[sa.ColumnElement[bool], ...]:
    return password_links.c.secret_hash == hash_of(secret), password_links.c.expires_at > now()


def spend_link(connection: sa.Connection, secret: str) -> int:
    """Delete a one-time link and return whose it was. Raises LinkOver, also if they may not sign in."""
    welcome = sa.select(people.c.id).where(people.c.disabled_at.is_(None))
    spent = sa.delete(password_links).where(*_is_good(secret), password_links.c.person_id.in_(welcome))
    person_id: int | None = connection.execute(spent.returning(password_links.c.person_id)).scalar()
    if person_id is None:
        raise errors.LinkOver
    return person_id


class LinkedIdentityStore(Store):
    """Stores linked identities."""

    def find(self, external: ExternalIdentity) -> tuple[Person, LinkedIdentity] | None:
        """Return whose identity this is, even if disabled, and record its use; ``None`` if it isn't linked."""
        same = linked_identities.c.issuer == external.issuer, linked_identities.c.subject == external.subject
        used = sa.update(linked_identities).where(*same).values(label=external.label, used_at=now())
        with self._database.write() as connection:
            row = connection.execute(used.returning(*linked_identities.c)).mappings().first()
            if row is None:
                return None
            person = connection.execute(sa.select(people).where(people.c.id == row["person_id"])).mappings().one()
            return person_of_row(person), record_of(row, LinkedIdentity)

    def of_person(self, person_id: int) -> list[LinkedIdentity]:
        """Return a person's linked identities, oldest first."""
        own = sa.select(linked_identities).where(linked_identities.c.person_id == person_id)
        return self._records(own.order_by(linked_identities.c.id), LinkedIdentity)

    def people(self) -> frozenset[int]:
        """Return the ids of everybody with a linked identity."""
        return frozenset(self._values(sa.select(linked_identities.c.person_id)))

    def add(self, person_id: int, external: ExternalIdentity, invitation: str | None = None) -> LinkedIdentity:
        """Link an identity to a person, who may have come by a one-time link. Raises IdentityTaken, LinkOver."""
        try:
            with self._database.write() as connection:
                if invitation is not None:
                    spend_link(connection, invitation)
                return record_of(link_identity(connection, person_id, external), LinkedIdentity)
        except IntegrityError:
            raise errors.IdentityTaken from None

    def remove(self, person_id: int, identity_id: int, keep_session: int | None) -> LinkedIdentity:
        """Unlink an identity and end its sessions except one. Raises CredentialNotFound, LastWayIn."""
        own = linked_identities.c.person_id == person_id, linked_identities.c.id == identity_id
        with self._database.write() as connection:
            # So that nobody unlinks another one at the same time.
            connection.execute(sa.select(people.c.id).where(people.c.id == person_id).with_for_update())
            gone = connection.execute(sa.delete(linked_identities).where(*own).returning(*linked_identities.c))
            row = gone.mappings().first()
            if row is None:
                raise errors.CredentialNotFound("linked account", identity_id)
            with_password = sa.select(people.c.id).where(people.c.id == person_id, people.c.password_hash.is_not(None))
            others = sa.select(linked_identities.c.id).where(linked_identities.c.person_id == person_id)
            if connection.execute(sa.union(with_password, others)).first() is None:
                raise errors.LastWayIn
            begun = sessions.c.identity_id == identity_id, sessions.c.id != (keep_session or 0)
            connection.execute(sa.delete(sessions).where(*begun))
            return record_of(row, LinkedIdentity)


class ConversationLinkStore(Store):
    """Stores links through which others can read a conversation, until they are revoked."""

    def make(
        self, conversation_id: int, secret: str, with_sources: bool, person: str | None = None
    ) -> ConversationLink:
        """Store a new link; one for a ``person`` replaces theirs. Raises ConversationNotFound, AccountNotFound."""
        created_at = now()
        values = {"conversation_id": conversation_id, "secret_hash": hash_of(secret), "with_sources": with_sources}
        with self._database.write() as connection:
            load_conversation(connection, conversation_id, lock=True)
            if person is not None:
                row = row_of_person(connection, person)
                values["person_id"], person = row["id"], row["name"]
                replaced = (conversation_links.c[name] == values[name] for name in ("conversation_id", "person_id"))
                connection.execute(sa.delete(conversation_links).where(*replaced))
            link_id = insert_row(connection, conversation_links, values | {"created_at": created_at})
        return ConversationLink(link_id, conversation_id, with_sources, created_at, person)

    def of(self, conversation_id: int) -> list[ConversationLink]:
        """Return the links to a conversation, oldest first. Raises ConversationNotFound."""
        with self._database.read() as connection:
            load_conversation(connection, conversation_id)
        named = sa.select(conversation_links, people.c.name.label("person"))
        own = named.outerjoin(people, people.c.id == conversation_links.c.person_id)
        own = own.where(conversation_links.c.conversation_id == conversation_id)
        return self._records(own.order_by(conversation_links.c.id), ConversationLink)

    def revoke(self, conversation_id: int, link_id: int) -> None:
        """Revoke a link. Raises ConversationNotFound, LinkNotFound."""
        with self._database.write() as connection:
            load_conversation(connection, conversation_id)
            this = conversation_links.c.conversation_id == conversation_id, conversation_links.c.id == link_id
            if not connection.execute(sa.delete(conversation_links).where(*this)).rowcount:
                raise errors.LinkNotFound

    def owner_of(self, link: str, reader_id: int) -> tuple[int, ConversationLink]:
        """Return a link, by its secret or as the number of one for the reader, and its conversation's owner.

        Raises LinkNotFound, also if either is deleted or disabled.
        """
        is_readers = conversation_links.c.person_id == reader_id, sa.cast(conversation_links.c.id, sa.String) == link
        is_it = (conversation_links.c.secret_hash == hash_of(link)) | sa.and_(*is_readers)
        owned = sa.select(conversation_links, conversations.c.person_id.label("owner_id"))
        for row in self._rows(owned.where(*_OPEN, is_it)):
            return row["owner_id"], record_of(row, ConversationLink)
        raise errors.LinkNotFound

    def read_by(self, person_id: int) -> list[SharedConversation]:
        """Return the conversations that others let a person read by name, most recently used first."""
        link = sa.cast(conversation_links.c.id, sa.String).label("link")
        shown = sa.select(link, conversations.c.title, people.c.name.label("owner"), conversations.c.updated_at)
        readable = shown.where(*_OPEN, conversation_links.c.person_id == person_id)
        return self._records(readable.order_by(conversations.c.updated_at.desc()), SharedConversation)
