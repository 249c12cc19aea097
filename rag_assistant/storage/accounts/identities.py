"""Linked accounts of identity providers, identified by issuer and subject, never by name or e-mail address."""

from sqlalchemy import delete, select, union, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import ExternalIdentity, LinkedIdentity, Person
from rag_assistant.records.errors import CredentialNotFound, IdentityTaken, LastWayIn, LinkOver
from rag_assistant.storage.accounts.credentials import spend_link
from rag_assistant.storage.accounts.people import link_identity, person_of_row
from rag_assistant.storage.database import Store, record_of
from rag_assistant.storage.tables import linked_identities, now, people, sessions


class LinkedIdentityStore(Store):
    """Stores linked identities."""

    def find(self, external: ExternalIdentity) -> tuple[Person, LinkedIdentity] | None:
        """Return whose identity this is, even if disabled, and record its use; ``None`` if it isn't linked."""
        same = linked_identities.c.issuer == external.issuer, linked_identities.c.subject == external.subject
        used = update(linked_identities).where(*same).values(label=external.label, used_at=now())
        with self._database.write() as connection:
            row = connection.execute(used.returning(*linked_identities.c)).mappings().first()
            if row is None:
                return None
            person = connection.execute(select(people).where(people.c.id == row["person_id"])).mappings().one()
            return person_of_row(person), record_of(row, LinkedIdentity)

    def of_person(self, person_id: int) -> list[LinkedIdentity]:
        """Return a person's linked identities, oldest first."""
        own = select(linked_identities).where(linked_identities.c.person_id == person_id)
        return self._records(own.order_by(linked_identities.c.id), LinkedIdentity)

    def people(self) -> frozenset[int]:
        """Return the ids of everybody with a linked identity."""
        return frozenset(self._values(select(linked_identities.c.person_id)))

    def add(self, person_id: int, external: ExternalIdentity, invitation: str | None = None) -> LinkedIdentity:
        """Link an identity to a person, who may have come by a one-time link. Raises IdentityTaken, LinkOver."""
        try:
            with self._database.write() as connection:
                if invitation is not None and spend_link(connection, invitation) is None:
                    raise LinkOver
                return record_of(link_identity(connection, person_id, external), LinkedIdentity)
        except IntegrityError:
            raise IdentityTaken from None

    def remove(self, person_id: int, identity_id: int, keep_session: int | None) -> LinkedIdentity:
        """Unlink an identity and end the sessions that began with it, except one.

        Raises CredentialNotFound, and LastWayIn if the person couldn't sign in any other way.
        """
        own = linked_identities.c.person_id == person_id, linked_identities.c.id == identity_id
        with self._database.write() as connection:
            # So that nobody unlinks another one at the same time.
            connection.execute(select(people.c.id).where(people.c.id == person_id).with_for_update())
            gone = connection.execute(delete(linked_identities).where(*own).returning(*linked_identities.c))
            row = gone.mappings().first()
            if row is None:
                raise CredentialNotFound("linked account", identity_id)
            with_password = select(people.c.id).where(people.c.id == person_id, people.c.password_hash.is_not(None))
            others = select(linked_identities.c.id).where(linked_identities.c.person_id == person_id)
            if connection.execute(union(with_password, others)).first() is None:
                raise LastWayIn
            begun = sessions.c.identity_id == identity_id, sessions.c.id != (keep_session or 0)
            connection.execute(delete(sessions).where(*begun))
            return record_of(row, LinkedIdentity)
