"""The answers to a turn's question: one is current, the others are kept in full, each with its rating."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Literal

from msgspec import convert
from msgspec.structs import asdict, replace
from sqlalchemy import Connection, RowMapping, bindparam, delete, exists, func, insert, select, update

from rag_assistant.records import SCOPE_FIELDS, AnswerVersion, Turn, Unset, errors
from rag_assistant.storage.conversations.conversations import Row, load_conversation, refuse_while_running
from rag_assistant.storage.conversations.counters import covered_by, recount
from rag_assistant.storage.conversations.turn_endings import insert_messages, words_found_by
from rag_assistant.storage.conversations.turn_rows import as_turns, load_turn
from rag_assistant.storage.database import Database, Store, person_of, record_of, set_values
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import (
    answer_versions,
    conversations,
    history_changes,
    messages,
    now,
    ratings,
    receipts,
    turns,
)

# The columns of a turn that describe its answer, and their values while there is none.
ABOUT_THE_ANSWER: dict[str, Any] = {
    "status": "running",
    "history": None,
    "sources": None,
    "search": None,
    "usage": None,
    "model": None,
    "notes": [],
    "error_type": None,
    "error_message": None,
}


RECEIPTS_AT_ONCE = 100
_FINISHED = (
    select(turns)
    .where(turns.c.conversation_id == bindparam("conversation"), turns.c.number > bindparam("number"))
    .where(turns.c.status != "running")
    .order_by(turns.c.number)
    .limit(RECEIPTS_AT_ONCE)
)


class VersionStore:
    """Lists the answers of a turn and switches between them."""

    def __init__(self, database: Database, words_of: Callable[[str], str]) -> None:
        self._database = database
        self._words_of = words_of

    def all(self, turn_id: int) -> list[AnswerVersion]:
        """Return the answers of a turn, oldest first. Raises TurnNotFound, ConversationNotFound."""
        with self._database.read() as connection:
            turn = load_turn(connection, turn_id)
            load_conversation(connection, turn.conversation_id)
            rows = connection.execute(select(answer_versions).where(answer_versions.c.turn_id == turn_id)).mappings()
            others = [version_of(row) for row in rows]
        present = replace(convert(turn, AnswerVersion, from_attributes=True), chosen=True)
        return sorted([*others, present], key=lambda one: one.version)

    def receipts(self, conversation_id: int) -> Iterator[dict[str, Any]]:
        """Yield what the model was sent for each answer of a conversation, and the answer, oldest first.

        Pictures are represented by their keys. Raises ConversationNotFound before the first.
        """
        with self._database.read() as connection:
            load_conversation(connection, conversation_id)
        return self._receipts(conversation_id)

    def _receipts(self, conversation_id: int) -> Iterator[dict[str, Any]]:
        number = 0
        while True:
            with self._database.read() as connection:
                params = {"conversation": conversation_id, "number": number}
                page = as_turns(connection, connection.execute(_FINISHED, params).mappings())
                ids = [turn.id for turn in page]
                current = connection.execute(select(receipts).where(receipts.c.turn_id.in_(ids))).all()
                others = connection.execute(select(answer_versions).where(answer_versions.c.turn_id.in_(ids))).all()
            if not page:
                return
            for turn in page:
                own = {"conversation": conversation_id, "turn": turn.number}
                bodies = [(turn.version, row.body, turn.answer) for row in current if row.turn_id == turn.id]
                of_turn = [one for one in others if one.turn_id == turn.id and one.receipt is not None]
                bodies += [(one.version, one.receipt, answer_in(one.messages)) for one in of_turn]
                for version, receipt, answer in sorted(bodies, key=itemgetter(0)):
                    yield own | {"version": version, "receipt": receipt, "answer": answer}
            number = page[-1].number

    def choose(self, turn_id: int, version: int) -> Turn:
        """Make another answer current for the model. Raises VersionNotFound, VersionFixed, ConversationBusy."""
        with self._database.read() as connection:
            turn = load_turn(connection, turn_id)
            if version == turn.version:
                return turn
            # What a version says never changes.
            answer = answer_in(load_version(connection, turn, version)["messages"])
        words = words_found_by(turn.question, answer, self._words_of)
        with self._database.write() as connection:
            turn, conversation = load_turn_locked(connection, turn_id)
            if version == turn.version:
                return turn
            row = load_version(connection, turn, version)
            _refuse_to_choose(connection, turn, conversation)
            keep_version(connection, turn)
            take_answer_off(connection, turn_id, row["figures"] | {"version": version})
            if row["messages"]:
                insert_messages(connection, turn_id, row["messages"])
            if row["receipt"] is not None:
                connection.execute(insert(receipts).values(turn_id=turn_id, body=row["receipt"]))
            visible = replace(turn, answer=answer).may_be_seen
            set_values(connection, turns, turn_id, {"visible": visible, "finished_at": row["finished_at"]})
            if words:
                TURN_WORDS.insert(connection, [(turn_id, words)])
            this = answer_versions.c.turn_id == turn_id, answer_versions.c.version == version
            connection.execute(delete(answer_versions).where(*this))
            recount(connection, turn.conversation_id)
            return load_turn(connection, turn_id)


def load_turn_locked(connection: Connection, turn_id: int) -> tuple[Turn, Row]:
    """Return a turn and its conversation's row, locked against other writers. Raises as ``load_turn`` does."""
    conversation = load_conversation(connection, load_turn(connection, turn_id).conversation_id, lock=True)
    # Read again: another writer may have changed the turn while this one waited for the lock.
    return load_turn(connection, turn_id), conversation


def keep_version(connection: Connection, turn: Turn) -> None:
    """Store a turn's current answer as a version, with everything that belongs to it."""
    row = connection.execute(select(turns).where(turns.c.id == turn.id)).mappings().one()
    values = {
        "turn_id": turn.id,
        "version": turn.version,
        "messages": turn.said_behind,
        "figures": {name: row[name] for name in ABOUT_THE_ANSWER},
        "receipt": connection.execute(select(receipts.c.body).where(receipts.c.turn_id == turn.id)).scalar(),
        "finished_at": turn.finished_at,
    }
    connection.execute(insert(answer_versions).values(values))


def take_answer_off(connection: Connection, turn_id: int, values: dict[str, Any]) -> None:
    """Remove the answer of a finished turn and set ``values``. The caller recounts."""
    unanswered = {"message_count": 1, "visible": False, "stop_requested": False, "finished_at": None, "retry_at": None}
    fresh = ABOUT_THE_ANSWER | unanswered | values
    set_values(connection, turns, turn_id, fresh)
    connection.execute(delete(receipts).where(receipts.c.turn_id == turn_id))
    connection.execute(delete(messages).where(messages.c.turn_id == turn_id, messages.c.position > 0))
    TURN_WORDS.drop(connection, [turn_id])


def refuse_to_regenerate(turn: Turn, conversation: Row) -> None:
    """Raise TurnNotRegenerable, TurnErased or ConversationBusy if the question can't be answered again."""
    if turn.status == "running":
        raise errors.ConversationBusy(turn.conversation_id)
    if turn.status == "erased":
        raise errors.TurnErased(turn.number)
    if conversation["turns"] != turn.number:
        raise errors.TurnNotRegenerable(
            f"Turn {turn.number} is no longer the last in its conversation. Edit its question instead: it is asked in "
            "a branch."
        )
    if turn.has_confirmation or turn.confirms_turn is not None:
        raise errors.TurnNotRegenerable(
            f"Turn {turn.number} asks for a confirmation or gives one, so it cannot be regenerated. Ask again."
        )
    refuse_unseen(turn, conversation, errors.TurnNotRegenerable)


def refuse_unseen(turn: Turn, conversation: Row, refusal: type[errors.AssistantError]) -> None:
    """Raise a ``refusal`` to answer a turn again that the model does not see, or that is being summarised."""
    if conversation["operation"] is not None:
        raise refusal("The conversation is being summarised. Wait until that is done.")
    if turn.number < conversation["view_start"]:
        raise refusal(
            f"The model no longer sees turn {turn.number}: it was summarised, or is from before you started over. Undo "
            "that to have it answered again."
        )


def answer_in(items: list[dict[str, Any]]) -> str:
    """Return the answer among a turn's messages, empty if there is none."""
    last = items[-1] if items else {}
    return (last.get("content") or "") if last.get("role") == "assistant" and "tool_calls" not in last else ""


def load_version(connection: Connection, turn: Turn, version: int) -> RowMapping:
    """Return the row of an answer that isn't current. Raises VersionNotFound."""
    own = answer_versions.c.turn_id == turn.id
    query = select(answer_versions).where(own, answer_versions.c.version == version)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise errors.VersionNotFound(turn.id, version, turn.versions)
    return row


def _refuse_to_choose(connection: Connection, turn: Turn, conversation: Row) -> None:
    refuse_while_running(connection, conversation)
    if turn.has_confirmation:
        raise errors.VersionFixed(
            f"Turn {turn.number} asks for a confirmation, or asked for one. Its answer cannot be changed, as the yes "
            "or no refers to it."
        )
    if conversation["operation"] is not None:
        raise errors.VersionFixed(
            "The conversation is being summarised. Wait until that is done to choose another answer."
        )
    changes = select(history_changes.c.before).where(history_changes.c.conversation_id == conversation["id"])
    earlier = [before.get("summary_id") for before in connection.execute(changes).scalars()]
    for summary_id in {conversation["summary_id"], *earlier}:
        if any(first <= turn.number <= last for first, last in covered_by(connection, summary_id)):
            raise errors.VersionFixed(
                f"Turn {turn.number} is part of a summary that the model sees, or would see after an undo, and the "
                "summary covers this answer. Undo the summary to choose another one."
            )


def version_of(row: RowMapping) -> AnswerVersion:
    own = {"answer": answer_in(row["messages"]), "sources": row["figures"]["sources"] or ()}
    return record_of({**row, **row["figures"], **own}, AnswerVersion)


class RatingStore(Store):
    """Stores ratings."""

    def rate(self, turn_id: int, rating: Literal["up", "down"], right_answer: str | Unset | None) -> Turn:
        """Rate a turn's current answer, replacing an earlier rating, and return the turn.

        ``UNSET`` leaves the expected answer unchanged. Raises TurnNotFound, ConversationNotFound, TurnNotRatable.
        """
        with self._database.write() as connection:
            turn, _ = load_turn_locked(connection, turn_id)
            confirms = turn.confirms_turn is not None or turn.has_confirmation
            if turn.status == "running" or not turn.answer.strip() or confirms:
                raise errors.TurnNotRatable(turn.number)
            if isinstance(right_answer, Unset):
                right_answer = turn.rating.right_answer if turn.rating else None
            _drop_rating(connection, turn)
            values = {"version": turn.version, "rating": rating, "right_answer": right_answer, "rated_at": now()}
            connection.execute(insert(ratings).values(turn_id=turn_id, **values))
            return load_turn(connection, turn_id)

    def remove(self, turn_id: int) -> Turn:
        """Remove a turn's rating and expected answer; return the turn. Raises as ``rate`` does."""
        with self._database.write() as connection:
            turn, _ = load_turn_locked(connection, turn_id)
            _drop_rating(connection, turn)
            return load_turn(connection, turn_id)

    def page(self, limit: int, before: int | None = None) -> list[Turn]:
        """Return up to ``limit`` rated turns with an id below ``before``, newest first, each with the answer that was
        rated.

        Those of deleted conversations are left out.
        """
        query = select(turns).join(ratings, ratings.c.turn_id == turns.c.id)
        if before is not None:
            query = query.where(turns.c.id < before)
        with self._database.read() as connection:
            # A join would start with all conversations that aren't deleted.
            in_list = conversations.c.deleted_at.is_(None), own_conversations(connection)
            query = query.where(exists().where(conversations.c.id == turns.c.conversation_id, *in_list))
            rows = connection.execute(query.order_by(ratings.c.turn_id.desc()).limit(limit)).mappings()
            return [_as_rated(connection, turn) for turn in as_turns(connection, rows)]


# A branch repeats the questions of another conversation.
_ANSWERED = turns.c.status.in_(("completed", "stopped", "interrupted")) & turns.c.origin_id.is_(None)
_LISTED = conversations.c.deleted_at.is_(None), conversations.c.id == turns.c.conversation_id


class AnsweredQuestions(Store):
    """Lists answered questions of all conversations outside the trash."""

    def page(self, limit: int, before_id: int) -> list[Turn]:
        """Return up to ``limit`` of the person's with an id below ``before_id``, newest first."""
        own = exists().where(*_LISTED, own_conversations(self._database, of_few=True))
        query = select(turns).where(turns.c.id < before_id, _ANSWERED, own).order_by(turns.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return as_turns(connection, connection.execute(query).mappings())

    def shown(self, turn_ids: Sequence[int]) -> set[int]:
        """Return which of some turns are in a listed conversation, or copied to one; the others were edited."""
        here = turns.c.id.in_(turn_ids) | turns.c.origin_id.in_(turn_ids)
        listed = exists().where(*_LISTED, conversations.c.listed)
        return set(self._values(select(func.coalesce(turns.c.origin_id, turns.c.id)).where(here, listed)))

    def found_before(self, turn_ids: Sequence[int]) -> set[int]:
        """Return the documents that earlier answers of some turns were given."""
        figures = self._values(select(answer_versions.c.figures).where(answer_versions.c.turn_id.in_(turn_ids)))
        return {source["document_id"] for one in figures for source in one["sources"] or ()}

    def of_others_without_sources(self, limit: int) -> int:
        """Return how many of the newest ``limit`` of other people found nothing."""
        of_others = exists().where(*_LISTED, conversations.c.person_id != person_of(self._database))
        support = turns.c.search["support"].as_string().label("support")
        unscoped = (turns.c.request[name].as_string().is_(None) for name in SCOPE_FIELDS)
        newest = (
            select(support).where(_ANSWERED, of_others, *unscoped).order_by(turns.c.id.desc()).limit(limit).subquery()
        )
        return self._values(select(newest.c.support)).count("nothing_found")


def _drop_rating(connection: Connection, turn: Turn) -> None:
    """Delete a turn's rating, and mark its conversation as changed."""
    connection.execute(delete(ratings).where(ratings.c.turn_id == turn.id))
    this = update(conversations).where(conversations.c.id == turn.conversation_id)
    connection.execute(this.values(changes=conversations.c.changes + 1))


def _as_rated(connection: Connection, turn: Turn) -> Turn:
    """Return a turn with the answer that was rated."""
    if turn.rating is None or turn.rating.version == turn.version:
        return turn
    rated = asdict(version_of(load_version(connection, turn, turn.rating.version)))
    del rated["chosen"]
    return replace(turn, **rated)
