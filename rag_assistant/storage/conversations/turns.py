"""Turns: accepted, answered, ended. A turn is a row, not a connection: once accepted, it is never lost.

Statements that every question needs are built once: building one costs more than running it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, bindparam, case, insert, select, update
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import (
    EVERYTHING,
    UNTITLED,
    Conversation,
    Message,
    Question,
    Source,
    Turn,
    TurnStatus,
    Unset,
    errors,
    turn_of,
)
from rag_assistant.storage.conversations import turn_endings, turn_rows, versions
from rag_assistant.storage.conversations.branching import branch_for
from rag_assistant.storage.conversations.conversations import (
    HAS_NOTES,
    THIS,
    conversation_of,
    insert_conversation,
    load_conversation,
    not_found,
)
from rag_assistant.storage.conversations.counters import recount
from rag_assistant.storage.conversations.receipts import keep_receipt, load_receipt
from rag_assistant.storage.database import Database, Store, person_of
from rag_assistant.storage.ownership import key_of
from rag_assistant.storage.processes import is_nobodys
from rag_assistant.storage.tables import conversations, now, turns

log = logging.getLogger(__name__)

TURNS_AT_ONCE = 200
CRASHED = ("AnswerInterrupted", "The server stopped before the answer was complete. The text so far was saved.")
CRASHED_EARLY = ("AnswerInterrupted", "The server stopped before the first word. Your question was saved; try again.")

_RUNS_HERE = turns.c.id == bindparam("turn"), turns.c.status == "running", turns.c.owner == bindparam("present_owner")
_STOPPED = select(turns.c.id).where(
    turns.c.status == "running", turns.c.owner == bindparam("present_owner"), turns.c.stop_requested
)
_ACCEPT = insert(turns).returning(turns.c.id)
# The first question gives an unnamed conversation its title.
_UNNAMED = (conversations.c.turns == 0) & (conversations.c.title == UNTITLED)
_NUMBER = (
    update(conversations)
    .where(*THIS)
    .values(
        turns=conversations.c.turns + 1,
        title=case((_UNNAMED, bindparam("first_title")), else_=conversations.c.title),
        updated_at=bindparam("moment"),
        listed=conversations.c.listed | bindparam("interactive"),
        archived=False,
    )
    .returning(conversations, HAS_NOTES)
)
_UPDATE_OURS = update(turns).where(*_RUNS_HERE)
_LOCK_OURS = select(turns.c.id).where(*_RUNS_HERE).with_for_update()
Unchecked = Callable[[Turn, str], Turn]


class TurnStore(Store):
    """Stores turns with their messages and receipts.

    ``owner`` names this process: it never writes to another's running turn. ``words_of`` turns a text into the words
    that keyword search indexes.
    """

    def __init__(self, database: Database, owner: str, words_of: Callable[[str], str]) -> None:
        super().__init__(database)
        self.owner = owner
        self._words_of = words_of

    def accept(self, question: Question, title: str) -> tuple[Turn, Conversation | None]:
        """Commit a question as a running turn, and return it and its conversation.

        Without a conversation, one is created with ``title``; for an edited question a branch is. A known
        Idempotency-Key returns its turn, and ``None``. Raises ConversationNotFound, TurnNotFound, InvalidRequest,
        ConversationBusy, IdempotencyKeyReused.
        """
        try:
            with self._database.write(adds=True) as connection:
                earlier = _known(connection, question)
                if earlier is not None:
                    return earlier, None
                conversation_id = question.conversation_id
                if question.edits_turn is not None:
                    conversation_id = branch_for(connection, question, title)
                return self._insert(connection, question, conversation_id, title)
        except IntegrityError:
            # Another turn of the conversation is running, or the same request was accepted a moment ago.
            with self._database.read() as connection:
                earlier = _known(connection, question)
            if earlier is None and question.conversation_id is not None:
                raise errors.ConversationBusy(question.conversation_id) from None
            if earlier is None:
                raise
            return earlier, None

    def by_idempotency_key(self, question: Question) -> Turn | None:
        """Return the turn of the question's Idempotency-Key. Raises IdempotencyKeyReused."""
        if question.idempotency_key is None:
            return None
        with self._database.read() as connection:
            return _known(connection, question)

    def _insert(
        self, connection: Connection, question: Question, conversation_id: int | None, title: str
    ) -> tuple[Turn, Conversation]:
        moment = now()
        if conversation_id is None:
            scope = EVERYTHING if isinstance(question.scope, Unset) else question.scope
            conversation_id = insert_conversation(connection, title, scope, project_id=question.project_id)
        this = {"conversation": conversation_id, "person": person_of(connection)}
        now_asked = this | {"first_title": title, "moment": moment, "interactive": question.interactive}
        row = connection.execute(_NUMBER, now_asked).mappings().first()
        if row is None:
            raise not_found(connection, conversation_id)
        conversation = conversation_of(connection, row)
        if question.project_id not in (None, conversation.project_id):
            raise errors.NotInProject(conversation.id, question.project_id)
        images, turn = tuple(map(turn_rows.picture_key, question.images)), turn_of(question, conversation, 0, moment)
        key = question.idempotency_key
        accepted: dict[str, Any] = {
            "conversation_id": conversation_id,
            "number": turn.number,
            "status": turn.status,
            "visible": False,
            "owner": self.owner,
            "request": turn_rows.request_of(replace(question, scope=turn.scope)),
            "idempotency_key": None if key is None else key_of(connection, key),
            "request_hash": turn_rows.hash_of(question) if key else None,
            "message_count": 1,
            "notes": [],
            "created_at": moment,
        }
        turn_id = connection.execute(_ACCEPT, accepted).scalar_one()
        turn_rows.keep_pictures(connection, turn_id, question.images)
        extra = {turn_rows.IMAGES: images} if images else None
        connection.execute(
            turn_endings.INSERT_MESSAGE, turn_endings.message_row(turn_id, 0, "user", question.text, extra)
        )
        return replace(turn, id=turn_id, images=images), conversation

    def retry(self, turn_id: int) -> tuple[Turn, Conversation]:
        """Restart a failed turn, the conversation's last; return it and its conversation. Raises TurnNotRetryable."""
        with self._database.write() as connection:
            turn, conversation = versions.load_turn_locked(connection, turn_id)
            if turn.status != "failed":
                raise errors.TurnNotRetryable(
                    f"Turn {turn_id} is {turn.status}; only a failed one can be retried. Ask the question again."
                )
            if conversation["turns"] != turn.number:
                raise errors.TurnNotRetryable(
                    f"Turn {turn_id} is no longer the last in its conversation. Ask the question again."
                )
            versions.refuse_unseen(turn, conversation, errors.TurnNotRetryable)
            return self._restarted(connection, turn, {})

    def regenerate(self, turn_id: int) -> tuple[Turn, Conversation]:
        """Restart the last turn of a conversation; its current answer is kept as a version.

        Returns it and its conversation. Raises TurnNotRegenerable, TurnErased, ConversationBusy.
        """
        with self._database.write() as connection:
            turn, conversation = versions.load_turn_locked(connection, turn_id)
            versions.refuse_to_regenerate(turn, conversation)
            # An answer without text isn't worth keeping.
            counted: dict[str, Any] = {}
            if turn.answer.strip():
                versions.keep_version(connection, turn)
                counted = {"version": turn.versions + 1, "versions": turn.versions + 1}
            return self._restarted(connection, turn, counted)

    def _restarted(self, connection: Connection, turn: Turn, counted: dict[str, Any]) -> tuple[Turn, Conversation]:
        """Take a turn's answer off, and return the running turn with its conversation."""
        versions.take_answer_off(connection, turn.id, counted | {"status": "running", "owner": self.owner})
        recount(connection, turn.conversation_id)
        conversation = load_conversation(connection, turn.conversation_id)
        return turn_rows.load_turn(connection, turn.id), conversation_of(connection, conversation)

    def keep_receipt(self, turn: Turn, receipt: dict[str, Any]) -> None:
        """Store the request before it is sent to the model, with the figures known by then.

        A power cut may lose it together with the text that follows. Raises AnswerTakenOver.
        """
        with self._database.write(forced=False) as connection:
            announced = {name: getattr(turn, name) for name in ("history", "sources", "search", "model", "notes")}
            running = {"turn": turn.id, "present_owner": self.owner} | announced
            if not connection.execute(_UPDATE_OURS, running).rowcount:
                raise errors.AnswerTakenOver
            keep_receipt(connection, turn, receipt)

    def keep_iteration(self, turn_id: int, iteration: Sequence[Message]) -> None:
        """Store a tool iteration of a running turn: the calls and all their results. Raises AnswerTakenOver."""
        with self._database.write() as connection:
            if connection.execute(_LOCK_OURS, {"turn": turn_id, "present_owner": self.owner}).first() is None:
                raise errors.AnswerTakenOver
            turn_endings.insert_messages(connection, turn_id, iteration)

    def receipt(self, turn_id: int) -> dict[str, Any] | None:
        """Return a turn's receipt, ``None`` if it has none yet. Raises TurnNotFound, ConversationNotFound."""
        with self._database.read() as connection:
            load_conversation(connection, turn_rows.load_turn(connection, turn_id).conversation_id)
            return load_receipt(connection, turn_id)

    def finish(
        self,
        turn: Turn,
        status: TurnStatus,
        answer: str,
        *,
        usage: dict[str, Any] | None = None,
        error: tuple[str, str] | None = None,
    ) -> Turn:
        """End a running turn of this process with its whole answer, and return it; any other one stays unchanged.

        ``turn`` brings its model, sources, notes and pending action. A turn is visible to the model only if its answer
        has text. One that answers another's confirmation (``confirms_turn``) hides both from the model.
        """
        kind, message = error or (None, None)
        ended = replace(turn, status=status, answer=answer, usage=usage, error_type=kind, error_message=message)
        words = turn_endings.words_found_by(turn.question, answer, self._words_of)
        with self._database.write() as connection:
            return turn_endings.end_turn(connection, ended, self.owner, words)

    def request_stop(self, turn_id: int) -> bool:
        """Request that the process answering a turn stops; return False if the turn isn't running."""
        running = turns.c.id == turn_id, turns.c.status == "running"
        return bool(self._commit(update(turns).where(*running).values(stop_requested=True)))

    def stops_requested(self) -> list[int]:
        """Return the running turns of this process that were stopped through another one."""
        return self._values(_STOPPED, {"present_owner": self.owner})

    def interrupt_unfinished(self, unchecked: Unchecked) -> list[Turn]:
        """End the turns of dead processes with their committed text; ``unchecked`` marks which sources it cites."""
        nobodys = turns.c.status == "running", is_nobodys(turns.c.owner)
        ended = []
        for turn_id in self._values(select(turns.c.id).where(*nobodys)):
            try:
                ended.append(self.interrupt(turn_id, unchecked))
            except Exception:
                log.exception("Turn %s could not be ended; its conversation stays blocked", turn_id)
        return ended

    def get(self, turn_id: int) -> Turn:
        """Return a turn, with its text so far. Raises TurnNotFound, or ConversationNotFound if that was deleted."""
        with self._database.read() as connection:
            turn = turn_rows.load_turn(connection, turn_id)
            load_conversation(connection, turn.conversation_id)
            return turn

    def page(self, conversation_id: int, limit: int, before: int | None = None) -> list[Turn]:
        """Return up to ``limit`` turns with a number below ``before``, oldest first. Raises ConversationNotFound."""
        query = select(turns).where(turns.c.conversation_id == conversation_id).order_by(turns.c.number.desc())
        if before is not None:
            query = query.where(turns.c.number < before)
        with self._database.read() as connection:
            load_conversation(connection, conversation_id)
            return turn_rows.as_turns(connection, reversed(connection.execute(query.limit(limit)).mappings().all()))

    def every(self, conversation_id: int) -> Iterator[Turn]:
        """Yield all turns of a conversation in batches, oldest first. Raises ConversationNotFound."""
        query = select(turns).where(turns.c.conversation_id == conversation_id, turns.c.number > bindparam("after"))
        query = query.order_by(turns.c.number).limit(TURNS_AT_ONCE)
        after = 0
        while True:
            with self._database.read() as connection:
                load_conversation(connection, conversation_id)
                page = turn_rows.as_turns(connection, connection.execute(query, {"after": after}).mappings())
            yield from page
            if len(page) < TURNS_AT_ONCE:
                return
            after = page[-1].number

    def interrupt(self, turn_id: int, unchecked: Unchecked, error: tuple[str, str] | None = None) -> Turn:
        """End a running turn of this process or of none with its committed text; without ``error``, as by a crash."""
        with self._database.write() as connection:
            turn_endings.lock_conversation(connection, turn_rows.load_turn(connection, turn_id).conversation_id)
            # Whoever commits text waits for this lock, then finds the turn ended.
            free = (turns.c.owner == self.owner) | is_nobodys(turns.c.owner)
            unended = select(turns.c.owner).where(turns.c.id == turn_id, turns.c.status == "running", free)
            owner = connection.execute(unended.with_for_update()).scalar()
            if owner is None:
                return turn_rows.load_turn(connection, turn_id)
            text = turn_rows.committed_text(connection, turn_id)
            status: TurnStatus = "interrupted" if text.strip() else "failed"
            turn = turn_rows.load_turn(connection, turn_id)
            kind, message = error or (CRASHED if text.strip() else CRASHED_EARLY)
            ended = replace(turn, status=status, answer=text, error_type=kind, error_message=message, unseen=True)
            words = turn_endings.words_found_by(turn.question, text, self._words_of)
            return turn_endings.end_turn(connection, unchecked(ended, text), owner, words)

    def keep_checks(self, turn: Turn, sources: tuple[Source, ...], notes: tuple[str, ...]) -> None:
        """Store the checked sources of a turn, and its notes, unless the turn has changed."""
        with self._database.write() as connection:
            turn_endings.lock_conversation(connection, turn.conversation_id)
            if turn_rows.load_turn(connection, turn.id) == turn:
                connection.execute(update(turns).where(turns.c.id == turn.id).values(sources=sources, notes=notes))


def _known(connection: Connection, question: Question) -> Turn | None:
    """Return the turn of the question's Idempotency-Key. Raises IdempotencyKeyReused."""
    if question.idempotency_key is None:
        return None
    own = turns.c.idempotency_key == key_of(connection, question.idempotency_key)
    row = connection.execute(select(turns.c.id, turns.c.request_hash).where(own)).first()
    if row is None:
        return None
    if row.request_hash != turn_rows.hash_of(question):
        raise errors.IdempotencyKeyReused(question.idempotency_key)
    return turn_rows.load_turn(connection, row.id)
