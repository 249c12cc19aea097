"""By which accounts elsewhere people are known: always by issuer and subject, never by a name or an e-mail address."""

from sqlalchemy import delete, select, union, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import ExternalIdentity, LinkedIdentity, Person
from rag_assistant.records.errors import CredentialNotFound, IdentityTaken, LastWayIn, LinkOver
from rag_assistant.storage.accounts.credentials import spend_link
from rag_assistant.storage.accounts.people import link_identity, person_of_row
from rag_assistant.storage.database import Store, record_of
from rag_assistant.storage.tables import linked_identities, now, people, sessions


class LinkedIdentityStore(Store):
    """Keeps which account elsewhere is whose."""

    def find(self, external: ExternalIdentity) -> tuple[Person, LinkedIdentity] | None:
        """Return who is known by this, also if disabled, and keep that it was used; ``None`` if nobody is."""
        same = linked_identities.c.issuer == external.issuer, linked_identities.c.subject == external.subject
        used = update(linked_identities).where(*same).values(label=external.label, used_at=now())
        with self._database.write() as connection:
            row = connection.execute(used.returning(*linked_identities.c)).mappings().first()
            if row is None:
                return None
            person = connection.execute(select(people).where(people.c.id == row["person_id"])).mappings().one()
            return person_of_row(person), record_of(row, LinkedIdentity)

    def of_person(self, person_id: int) -> list[LinkedIdentity]:
        """Return by what a person is known, the oldest first."""
        own = select(linked_identities).where(linked_identities.c.person_id == person_id)
        return self._records(own.order_by(linked_identities.c.id), LinkedIdentity)

    def people(self) -> frozenset[int]:
        """Return the ids of all who are known by something."""
        return frozenset(self._values(select(linked_identities.c.person_id)))

    def add(self, person_id: int, external: ExternalIdentity, invitation: str | None = None) -> LinkedIdentity:
        """Let a person be known by this, too, who may have come by a one-time link. Raises IdentityTaken, LinkOver."""
        try:
            with self._database.write() as connection:
                if invitation is not None and spend_link(connection, invitation) is None:
                    raise LinkOver
                return record_of(link_identity(connection, person_id, external), LinkedIdentity)
        except IntegrityError:
            raise IdentityTaken from None

    def remove(self, person_id: int, identity_id: int, keep_session: int | None) -> LinkedIdentity:
        """Let a person be known by this no more, and end the sessions that began with it but for one.

        Raises CredentialNotFound, and LastWayIn if nothing else would let them in.
        """
        own = linked_identities.c.person_id == person_id, linked_identities.c.id == identity_id
        with self._database.write() as connection:
            # Nobody else takes another one from them meanwhile.
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
