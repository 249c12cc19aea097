"""Links through which others can read a conversation, until they are revoked. Only their hashes are stored."""

from sqlalchemy import delete, insert, select

from rag_assistant.records import ConversationLink
from rag_assistant.records.errors import LinkNotFound
from rag_assistant.storage.accounts.credentials import hash_of
from rag_assistant.storage.conversations.conversations import load_conversation
from rag_assistant.storage.database import Store, record_of
from rag_assistant.storage.tables import conversation_links, conversations, now, people


class ConversationLinkStore(Store):
    """Stores links to conversations."""

    def make(self, conversation_id: int, secret: str, with_sources: bool) -> ConversationLink:
        """Store a new link to a conversation. Raises ConversationNotFound."""
        with self._database.write() as connection:
            load_conversation(connection, conversation_id)
            values = {"conversation_id": conversation_id, "secret_hash": hash_of(secret), "with_sources": with_sources}
            inserted = insert(conversation_links).values(values | {"created_at": now()})
            row = connection.execute(inserted.returning(*conversation_links.c)).mappings().one()
            return record_of(row, ConversationLink)

    def of(self, conversation_id: int) -> list[ConversationLink]:
        """Return the links to a conversation, oldest first. Raises ConversationNotFound."""
        with self._database.read() as connection:
            load_conversation(connection, conversation_id)
        own = select(conversation_links).where(conversation_links.c.conversation_id == conversation_id)
        return self._records(own.order_by(conversation_links.c.id), ConversationLink)

    def revoke(self, conversation_id: int, link_id: int) -> None:
        """Revoke a link. Raises ConversationNotFound, LinkNotFound."""
        with self._database.write() as connection:
            load_conversation(connection, conversation_id)
            this = conversation_links.c.conversation_id == conversation_id, conversation_links.c.id == link_id
            if not connection.execute(delete(conversation_links).where(*this)).rowcount:
                raise LinkNotFound

    def owner_of(self, secret: str) -> tuple[int, ConversationLink]:
        """Return a link and the owner of its conversation.

        Raises LinkNotFound, also if the conversation is in the trash or its owner may not sign in.
        """
        welcome = select(people.c.id).where(people.c.disabled_at.is_(None))
        query = (
            select(conversation_links, conversations.c.person_id)
            .join(conversations, conversations.c.id == conversation_links.c.conversation_id)
            .where(conversation_links.c.secret_hash == hash_of(secret))
            .where(conversations.c.deleted_at.is_(None), conversations.c.person_id.in_(welcome))
        )
        for row in self._rows(query):
            return row["person_id"], record_of(row, ConversationLink)
        raise LinkNotFound
