"""Notes that people saved. A note is never overwritten: a new text is a new note, and both stay visible."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, or_, select, true

from rag_assistant.records import Conversation, Note
from rag_assistant.records.archive import ArchivedNote
from rag_assistant.records.errors import NoteNotFound, TurnErased
from rag_assistant.storage.conversations.conversations import usable_project
from rag_assistant.storage.conversations.turn_rows import load_turn
from rag_assistant.storage.database import Bound, Store, insert_row, person_of, record_of, set_values
from rag_assistant.storage.ownership import owner_of_new
from rag_assistant.storage.tables import conversations, notes, now, turns

# How many are considered for a question: pinned ones, then the newest.
MAX_READ = 50
MAX_PROPOSED = 20
_NOTES = select(notes, turns.c.conversation_id, turns.c.number.label("turn")).outerjoin(
    turns, turns.c.id == notes.c.turn_id
)


class NoteStore(Store):
    """Stores a person's notes."""

    def all(self) -> list[Note]:
        """Return all notes, including superseded ones, newest first."""
        return self._records(_NOTES.where(_own(self._database)).order_by(notes.c.id.desc()), Note)

    def in_force(self, conversation: Conversation) -> list[Note]:
        """Return the notes that apply to a conversation, pinned ones first, then the newest."""
        owner = select(conversations.c.person_id).where(conversations.c.id == conversation.id).scalar_subquery()
        places = or_(*(notes.c.project_id.is_not_distinct_from(one) for one in {None, conversation.project_id}))
        own = notes.c.person_id.is_not_distinct_from(owner), places, notes.c.active, notes.c.superseded_by.is_(None)
        newest = _NOTES.where(*own).order_by(notes.c.pinned.desc(), notes.c.id.desc())
        return self._records(newest.limit(MAX_READ), Note)

    def add(
        self, text: str, *, turn_id: int | None = None, project_id: int | None = None, pinned: bool = False
    ) -> Note:
        """Store a note, for all conversations or a project's. Raises TurnNotFound, TurnErased, ProjectNotFound."""
        with self._database.write() as connection:
            if turn_id is not None and (turn := load_turn(connection, turn_id)).status == "erased":
                raise TurnErased(turn.number)
            own = {"turn_id": turn_id, "project_id": usable_project(connection, project_id), "pinned": pinned}
            return _insert(connection, own | {"text": text})

    def propose(self, text: str, turn_id: int) -> bool:
        """Store a note proposed by a model, until a person accepts or deletes it; return whether it was stored.

        It isn't if the same text exists already, or if too many proposals are waiting.
        """
        with self._database.write() as connection:
            own = _own(connection)
            there = connection.execute(select(notes.c.id).where(own, notes.c.text == text).limit(1)).first()
            waiting = (
                select(notes.c.id).where(own, notes.c.proposed, notes.c.superseded_by.is_(None)).limit(MAX_PROPOSED)
            )
            if there is not None or len(connection.execute(waiting).all()) == MAX_PROPOSED:
                return False
            _insert(connection, {"text": text, "turn_id": turn_id, "active": False, "proposed": True})
            return True

    def change(
        self, note_id: int, *, text: str | None = None, pinned: bool | None = None, active: bool | None = None
    ) -> Note:
        """Pin, accept or switch a note; with another ``text``, return its successor. Raises NoteNotFound."""
        with self._database.write() as connection:
            note = _load(connection, note_id)
            marks = {"pinned": pinned, "active": active, "proposed": None if active is None else False}
            values: dict[str, Any] = {name: value for name, value in marks.items() if value is not None}
            if text is not None and text != note.text:
                same = {name: getattr(note, name) for name in ("turn_id", "project_id", "pinned", "active", "proposed")}
                newer = _insert(connection, same | {"text": text} | values)
                set_values(connection, notes, note_id, {"superseded_by": newer.id})
                return newer
            set_values(connection, notes, note_id, values)
            return _load(connection, note_id)

    def delete(self, note_id: int) -> None:
        """Delete a note, from the file too. Receipts keep what was sent. Raises NoteNotFound."""
        with self._database.write() as connection:
            _load(connection, note_id)
            connection.execute(notes.delete().where(notes.c.id == note_id))
        self._database.forget_deleted()

    def archived(self) -> list[ArchivedNote]:
        """Return all notes in the archive's form, oldest first."""
        return [
            ArchivedNote(
                one.text,
                one.created_at,
                pinned=one.pinned,
                active=one.active and one.superseded_by is None,
                proposed=one.proposed and one.superseded_by is None,
                turn=(one.conversation_id, one.turn) if one.conversation_id and one.turn else None,
            )
            for one in reversed(self.all())
        ]

    def restore(self, archived: Sequence[ArchivedNote]) -> int:
        """Import notes of an archive whose turns have this database's ids, and return how many are new.

        One that was sent there waits for a person to accept it here.
        """
        count = 0
        with self._database.write() as connection:
            own = _own(connection)
            for one in archived:
                same = notes.c.text == one.text, notes.c.created_at == one.created_at
                if connection.execute(select(notes.c.id).where(own, *same)).first() is None:
                    conversation_id, number = one.turn or (0, 0)
                    place = turns.c.conversation_id == conversation_id, turns.c.number == number
                    turn_id = connection.execute(select(turns.c.id).where(*place, turns.c.erased_at.is_(None))).scalar()
                    if turn_id is not None or one.turn is None:  # Nothing comes back of a turn that was erased here.
                        own_values = {"text": one.text, "pinned": one.pinned, "created_at": one.created_at}
                        waits = {"active": False, "proposed": one.active or one.proposed}
                        _insert(connection, own_values | waits | {"turn_id": turn_id})
                        count += 1
        return count


def _own(bound: Bound) -> ColumnElement[bool]:
    return true() if (person := person_of(bound)) is None else notes.c.person_id == person


def _load(connection: Connection, note_id: int) -> Note:
    """Return a note of the person. Raises NoteNotFound."""
    row = connection.execute(_NOTES.where(notes.c.id == note_id, _own(connection))).mappings().first()
    if row is None:
        raise NoteNotFound(note_id)
    return record_of(row, Note)


def _insert(connection: Connection, values: dict[str, Any]) -> Note:
    own = {"person_id": owner_of_new(connection), "created_at": now(), "active": True, "pinned": False}
    return _load(connection, insert_row(connection, notes, own | values))
