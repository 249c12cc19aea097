"""Ratings of answers: one a turn, of one of its answers. What is right, if that was said, holds for all of them."""

from datetime import datetime
from typing import Any, Literal

from msgspec.structs import asdict, replace
from sqlalchemy import Connection, delete, exists, insert, select, update

from rag_assistant.records import Turn, Unset
from rag_assistant.records.errors import TurnNotRatable
from rag_assistant.storage.conversations.turn_rows import as_turns, load_turn
from rag_assistant.storage.conversations.versions import load_turn_locked, load_version, version_of
from rag_assistant.storage.database import Store
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import conversations, now, ratings, turns


class RatingStore(Store):
    """Keeps what people think of answers, and what came of it when their questions were asked again."""

    def rate(self, turn_id: int, rating: Literal["up", "down"], right_answer: str | Unset | None) -> Turn:
        """Rate the answer that stands in a turn, in the place of any rating before, and return the turn.

        A right answer that is ``UNSET`` stays what it was. Raises TurnNotFound, ConversationNotFound, TurnNotRatable.
        """
        with self._database.write() as connection:
            turn, _ = load_turn_locked(connection, turn_id)
            confirms = turn.confirms_turn is not None or turn.purged or turn.waiting is not None
            if turn.status == "running" or not turn.answer.strip() or confirms:
                raise TurnNotRatable(turn.number)
            if isinstance(right_answer, Unset):
                right_answer = turn.rating.right_answer if turn.rating else None
            _drop(connection, turn)
            values = {"version": turn.version, "rating": rating, "right_answer": right_answer, "rated_at": now()}
            connection.execute(insert(ratings).values(turn_id=turn_id, **values))
            return load_turn(connection, turn_id)

    def remove(self, turn_id: int) -> Turn:
        """Take the rating of a turn back, with its right answer; return the turn. Raises as ``rate`` does."""
        with self._database.write() as connection:
            turn, _ = load_turn_locked(connection, turn_id)
            _drop(connection, turn)
            return load_turn(connection, turn_id)

    def page(self, limit: int, before: int | None = None) -> list[Turn]:
        """Return up to ``limit`` rated turns with an id below ``before``, newest first, each as it was rated.

        Those of deleted conversations are left out.
        """
        query = select(turns).join(ratings, ratings.c.turn_id == turns.c.id)
        if before is not None:
            query = query.where(turns.c.id < before)
        with self._database.read() as connection:
            # A join would begin with all conversations that were not deleted.
            in_list = conversations.c.deleted_at.is_(None), own_conversations(connection)
            query = query.where(exists().where(conversations.c.id == turns.c.conversation_id, *in_list))
            rows = connection.execute(query.order_by(ratings.c.turn_id.desc()).limit(limit)).mappings()
            return [_as_rated(connection, turn) for turn in as_turns(connection, rows)]

    def keep_result(self, turn_id: int, rated_at: datetime, result: dict[str, Any]) -> None:
        """Keep what came of a rating when its question was asked again; one that was changed meanwhile has none."""
        same = ratings.c.turn_id == turn_id, ratings.c.rated_at == rated_at
        self._commit(update(ratings).where(*same).values(result=result))


def _drop(connection: Connection, turn: Turn) -> None:
    """Delete the rating of a turn, and let its conversation be another one than before."""
    connection.execute(delete(ratings).where(ratings.c.turn_id == turn.id))
    this = update(conversations).where(conversations.c.id == turn.conversation_id)
    connection.execute(this.values(changes=conversations.c.changes + 1))


def _as_rated(connection: Connection, turn: Turn) -> Turn:
    """Return a turn with that of its answers that was rated."""
    if turn.rating is None or turn.rating.version == turn.version:
        return turn
    rated = asdict(version_of(load_version(connection, turn, turn.rating.version)))
    del rated["chosen"]
    return replace(turn, **rated)
