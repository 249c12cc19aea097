"""What a library report reads of documents, questions and answers."""

from collections.abc import Sequence

from sqlalchemy import exists, func, select

from rag_assistant.records import Turn
from rag_assistant.storage.conversations.turn_rows import as_turns
from rag_assistant.storage.database import Store, person_of
from rag_assistant.storage.ownership import own_conversations, readable
from rag_assistant.storage.tables import answer_versions, chunks, conversations, turns

# A branch repeats the questions of another conversation.
_COUNTED = turns.c.status.in_(("completed", "stopped", "interrupted")) & turns.c.origin_id.is_(None)
_LISTED = conversations.c.deleted_at.is_(None), conversations.c.id == turns.c.conversation_id


class ReportStore(Store):
    """Each method is a short transaction whose result is limited."""

    def first_chunks(self) -> dict[int, int]:
        """Return the id of each document's first chunk, which changes with its text."""
        own = readable(self._database, chunks.c.document_id)
        return self._pairs(select(chunks.c.document_id, func.min(chunks.c.id)).where(own).group_by("document_id"))

    def questions(self, limit: int, before_id: int) -> list[Turn]:
        """Return up to ``limit`` of the person's answered questions with an id below ``before_id``, newest first."""
        own = exists().where(*_LISTED, own_conversations(self._database, of_few=True))
        query = select(turns).where(turns.c.id < before_id, _COUNTED, own).order_by(turns.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return as_turns(connection, connection.execute(query).mappings())

    def found_before(self, turn_ids: Sequence[int]) -> set[int]:
        """Return the documents that earlier answers of some turns were given."""
        figures = self._values(select(answer_versions.c.figures).where(answer_versions.c.turn_id.in_(turn_ids)))
        return {source["document_id"] for one in figures for source in one["sources"] or ()}

    def others_unanswered(self, limit: int) -> int:
        """Return how many of the newest ``limit`` questions of other people found nothing."""
        of_others = exists().where(*_LISTED, conversations.c.person_id != person_of(self._database))
        support = turns.c.search["support"].as_string().label("support")
        newest = select(support).where(_COUNTED, of_others).order_by(turns.c.id.desc()).limit(limit).subquery()
        return self._values(select(newest.c.support)).count("nothing_found")
