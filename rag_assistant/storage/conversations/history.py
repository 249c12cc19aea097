"""What the model sees of a conversation; changes can be undone, and nothing here shortens or deletes a turn."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from rag_assistant.records import Conversation, DataUrl, PastTurn, RelatedTurn, Source, Turn, runs_of
from rag_assistant.records.errors import HistoryChanged, NoSummary, NothingToUndo, TurnErased, TurnSummarised
from rag_assistant.storage.conversations.conversations import (
    Row,
    conversation_of,
    load_conversation,
    refuse_while_running,
)
from rag_assistant.storage.conversations.counters import covered_by, recount
from rag_assistant.storage.conversations.turn_rows import as_turns, load_pictures, load_turn, turns_in_view
from rag_assistant.storage.database import Store, as_json, insert_row, set_values
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.tables import HELD, MARKED, conversations, history_changes, now, summaries, turns

BEING_SUMMARISED = (
    "Nothing was undone: the conversation is being summarised. Once that is done, /undo removes the summary."
)
ChangeKind = Literal["clear", "reset", "compact", "edit summary", "pin", "exclude"]
VIEW = ("context_start", "earlier_starts", "view_start", "summary_id", "decided_until")
MARKS = ("pinned", "excluded")
# From this certainty on, a question may be about a turn (bench/history.md shows what is missed).
MIN_CERTAINTY = 0.2
# Copies of a turn in branches are found as well.
CANDIDATES = 4
_ORIGIN = sa.func.coalesce(turns.c.origin_id, turns.c.id)
# With at most this many turns in between, words are looked up in each of them.
FEW, NEAR = 100, 2_000
_TURNS_BEFORE = (
    sa.select(turns.c.id, turns.c.number)
    .where(turns.c.conversation_id == sa.bindparam("of"), turns.c.visible | turns.c.excluded)
    .where(turns.c.number < sa.bindparam("before"))
    .limit(sa.bindparam("most"))
)


class HistoryStore(Store):
    """Stores where the model's view of each conversation begins, and reads what is in it."""

    def past(self, conversation: Conversation, before: int, newest: int | None) -> list[PastTurn]:
        """Return the ``newest`` turns in the model's view before number ``before``, oldest first.

        Pinned turns and those awaiting confirmation are included wherever they are after the context start. Only these
        turns are read; ``None`` reads the whole view.
        """
        if newest == 0 and not conversation.held_turns:
            return []
        with self._database.read() as connection:
            held = conversation.held_turns > 0
            return turns_in_view(connection, conversation, conversation.view_start, before, newest, with_held=held)

    def between(self, conversation: Conversation, first: int, last: int) -> list[PastTurn]:
        """Return the turns in the model's view from number ``first`` to ``last``, oldest first, with all held ones."""
        first = max(first, conversation.view_start)
        with self._database.read() as connection:
            return turns_in_view(connection, conversation, first, last + 1, None, with_held=True)

    def pictures(self, turn: Turn) -> tuple[DataUrl, ...]:
        """Return the pictures attached to a turn's question."""
        if not turn.images:
            return ()
        with self._database.read() as connection:
            urls = load_pictures(connection, turn.images)
        return tuple(urls[key] for key in turn.images)

    def last_passage_tokens(self, conversation_id: int) -> int:
        """Return how many tokens the last answer's passages took; the answer before, if the last has no figures."""
        own = sa.select(turns.c.history).where(turns.c.conversation_id == conversation_id)
        last = self._values(own.order_by(turns.c.number.desc()).limit(2))
        return next((int(history["tokens"]["passages"]) for history in last if history), 0)

    def related(
        self,
        conversation: Conversation,
        words: Sequence[str],
        before: int,
        seen: Collection[int],
        limit: int,
        beside: int = 0,
    ) -> list[RelatedTurn]:
        """Return up to ``limit`` turns before number ``before`` that match ``words``, best first.

        With ``beside`` 1 the turn after the best follows it, with -1 the one before. ``seen`` are the numbers of turns
        the model sees anyway. Purged and erased turns are never found.
        """
        if not words or not limit:
            return []
        with self._database.read() as connection:
            first = {"of": conversation.id, "before": before, "most": FEW + len(seen)}
            unseen = {one.id for one in connection.execute(_TURNS_BEFORE, first) if one.number not in seen}
            if not unseen:
                return []
            is_unseen = (
                turns.c.conversation_id == conversation.id,
                turns.c.visible | turns.c.excluded,
                turns.c.number < before,
                turns.c.number.not_in(_numbers(connection, seen)),
            )
            if len(unseen) < FEW and max(unseen) - min(unseen) < NEAR:
                surest = dict(TURN_WORDS.surest_among(connection, words, limit, unseen, MIN_CERTAINTY))
            else:
                only = sa.exists().where(turns.c.id == TURN_WORDS.row_id(connection), *is_unseen)
                surest = dict(TURN_WORDS.surest(connection, words, limit, only))
            sure = [turn_id for turn_id, certainty in surest.items() if certainty >= MIN_CERTAINTY]
            if not sure:
                return []
            if beside:
                best = sa.select(turns.c.number + beside).where(turns.c.id == sure[0]).scalar_subquery()
                neighbour = connection.execute(sa.select(turns.c.id).where(*is_unseen, turns.c.number == best)).scalar()
                if neighbour is not None:
                    surest[neighbour] = surest[sure[0]]
                    sure = [sure[0], neighbour, *(one for one in sure[1:] if one != neighbour)]
            rows = connection.execute(sa.select(turns).where(turns.c.id.in_(sure))).mappings()
            related = []
            for turn in sorted(as_turns(connection, rows), key=lambda one: sure.index(one.id)):
                cited = tuple(source for source in turn.sources if source.cited)
                why = "excluded" if turn.excluded else "cleared" if turn.number < conversation.context_start else ""
                certainty = round(surest[turn.id], 2)
                related.append(RelatedTurn(turn.number, turn.question, turn.answer, cited, certainty, why))
        return related

    def elsewhere(
        self, conversation: Conversation, words: Sequence[str], limit: int, *, in_project: bool
    ) -> list[tuple[Turn, float]]:
        """Return up to ``limit`` turns of a person's other conversations that match ``words``, most certain first.

        With ``in_project`` only those in the same project. Each comes once with its certainty, however many branches
        have it, and none that this conversation has a copy of.
        """
        this, other = conversations.alias("this"), conversations.alias("other")
        with self._database.read() as connection:
            only = sa.exists().where(
                turns.c.id == TURN_WORDS.row_id(connection),
                turns.c.visible,
                turns.c.conversation_id != conversation.id,
                other.c.id == turns.c.conversation_id,
                other.c.deleted_at.is_(None),
                this.c.id == conversation.id,
                this.c.person_id.is_not_distinct_from(other.c.person_id),
                this.c.project_id == other.c.project_id if in_project else sa.true(),
            )
            surest = dict(TURN_WORDS.surest(connection, words, CANDIDATES * limit, only)) if words else {}
            sure = [turn_id for turn_id, certainty in surest.items() if certainty >= MIN_CERTAINTY]
            if not sure:
                return []
            origins = dict(connection.execute(sa.select(turns.c.id, _ORIGIN).where(turns.c.id.in_(sure))).all())
            own = sa.select(_ORIGIN).where(turns.c.conversation_id == conversation.id)
            mine = set(connection.execute(own.where(_ORIGIN.in_(set(origins.values())))).scalars())
            best: dict[int, int] = {}
            for turn_id in sorted(sure, key=lambda one: (-surest[one], -one)):
                if origins[turn_id] not in mine:
                    best.setdefault(origins[turn_id], turn_id)
            chosen = list(best.values())[:limit]
            rows = connection.execute(sa.select(turns).where(turns.c.id.in_(chosen))).mappings()
            best_turns = sorted(as_turns(connection, rows), key=lambda turn: chosen.index(turn.id))
            return [(turn, round(surest[turn.id], 4)) for turn in best_turns]

    def cited(self, conversation: Conversation, numbers: Collection[int]) -> dict[int, tuple[Source, ...]]:
        """Return the sources cited by the answers of some turns, by turn number."""
        own = turns.c.conversation_id == conversation.id, turns.c.number.in_(numbers)
        rows = self._rows(sa.select(turns.c.number, turns.c.sources).where(*own))
        return {row["number"]: tuple(Source(**one) for one in row["sources"] or () if one["cited"]) for row in rows}

    # --- changes that can be undone

    def move_context_start(self, conversation_id: int, kind: ChangeKind, at_turn: int | None = None) -> Conversation:
        """Move the context start to turn ``at_turn`` (default: the next one), without a summary.

        The kind ``reset`` without a turn also clears the conversation's overrides.
        """
        with self._changing(conversation_id, kind, running=at_turn) as (connection, row):
            start = row["turns"] + 1 if at_turn is None else at_turn
            values: dict[str, Any] = {"context_start": start, "view_start": start, "summary_id": None}
            values["earlier_starts"] = sorted({*row["earlier_starts"], row["context_start"]} - {start})
            if kind == "reset" and at_turn is None:
                values["overrides"] = {}
            set_values(connection, conversations, conversation_id, values)
        return self._get(conversation_id)

    def keep_summary(
        self, conversation: Conversation, text: str, covered: Sequence[int], written_by: str, running: int | None
    ) -> Conversation:
        """Replace the turns ``covered`` and those of the current summary by a summary.

        ``conversation`` is as it was when the summary was begun; raises HistoryChanged if the view has changed since.
        ``running`` is the number of the turn that needs it.
        """
        with self._changing(conversation.id, "compact", running) as (connection, row):
            summary = conversation.summary
            begun_with = (conversation.context_start, conversation.view_start, summary.id if summary else None)
            if (row["context_start"], row["view_start"], row["summary_id"]) != begun_with:
                raise HistoryChanged
            there = connection.execute(
                sa.select(turns.c.number)
                .where(turns.c.conversation_id == conversation.id, turns.c.visible, ~MARKED)
                .where(turns.c.number <= covered[-1], HELD | (turns.c.number >= row["view_start"]))
                .order_by(turns.c.number)
            )
            if list(there.scalars()) != list(covered):
                raise HistoryChanged
            runs = sorted(covered_by(connection, row["summary_id"]) + runs_of(covered))
            summary_id = insert_summary(connection, conversation.id, text, runs, written_by, now())
            values = {"summary_id": summary_id, "view_start": runs[-1][1] + 1}
            set_values(connection, conversations, conversation.id, values)
        return self._get(conversation.id)

    def edit_summary(self, conversation_id: int, text: str) -> Conversation:
        """Replace the summary's text with an edited one. Raises NoSummary."""
        with self._changing(conversation_id, "edit summary") as (connection, row):
            old = connection.execute(sa.select(summaries).where(summaries.c.id == row["summary_id"])).mappings().first()
            if old is None:
                raise NoSummary(conversation_id)
            summary_id = insert_summary(connection, conversation_id, text, old["covered"], "a person", now())
            set_values(connection, conversations, conversation_id, {"summary_id": summary_id})
        return self._get(conversation_id)

    def mark(self, turn_id: int, *, pinned: bool | None = None, excluded: bool | None = None) -> Turn:
        """Pin, unpin, exclude or include a turn. Raises TurnNotFound, TurnErased, ConversationBusy, TurnSummarised."""
        with self._database.read() as connection:
            turn = load_turn(connection, turn_id)
        if turn.status == "erased":
            raise TurnErased(turn.number)
        marks = {name: value for name, value in (("pinned", pinned), ("excluded", excluded)) if value is not None}
        if pinned or excluded:
            marks = {"pinned": bool(pinned), "excluded": bool(excluded)}  # A turn can't be both.
        if marks:
            kind: ChangeKind = "pin" if pinned is not None else "exclude"
            with self._changing(turn.conversation_id, kind, turn=turn) as (connection, row):
                covered = covered_by(connection, row["summary_id"])
                if excluded and any(first <= turn.number <= last for first, last in covered):
                    raise TurnSummarised(turn.number)
                set_values(connection, turns, turn_id, marks)
                _see(connection, turn_id)
        with self._database.read() as connection:
            return load_turn(connection, turn_id)

    def undo(self, conversation_id: int) -> tuple[Conversation, str]:
        """Undo the last change; return the conversation and its kind. Raises NothingToUndo, also during a summary."""
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id, lock=True)
            refuse_while_running(connection, row)
            if row["operation"] is not None:
                raise NothingToUndo(BEING_SUMMARISED)
            last = connection.execute(_last_change(conversation_id)).mappings().first()
            if last is None:
                raise NothingToUndo(f"There is nothing to undo in conversation {conversation_id}.")
            before = dict(last["before"])
            marked = {int(turn_id): marks for turn_id, marks in before.pop("marks", {}).items()}
            for turn_id, marks in marked.items():
                set_values(connection, turns, turn_id, marks)
                _see(connection, turn_id)
            set_values(connection, conversations, conversation_id, before)
            if row["summary_id"] != before["summary_id"]:  # No branch inherits a summary that was undone.
                connection.execute(sa.delete(summaries).where(summaries.c.id == row["summary_id"]))
            connection.execute(sa.delete(history_changes).where(history_changes.c.id == last["id"]))
            recount(connection, conversation_id)
        return self._get(conversation_id), last["kind"]

    def last_change(self, conversation_id: int) -> str | None:
        """Return the kind of change that ``undo`` would revert."""
        return next((change["kind"] for change in self._rows(_last_change(conversation_id))), None)

    def decide(self, conversation_id: int, until_turn: int) -> None:
        """Record that a person agreed to leave out turns up to ``until_turn``."""
        earlier = conversations.c.id == conversation_id, conversations.c.decided_until < until_turn
        self._commit(sa.update(conversations).where(*earlier).values(decided_until=until_turn))

    def _get(self, conversation_id: int) -> Conversation:
        with self._database.read() as connection:
            return conversation_of(connection, load_conversation(connection, conversation_id))

    @contextmanager
    def _changing(
        self, conversation_id: int, kind: ChangeKind, running: int | None = None, turn: Turn | None = None
    ) -> Iterator[tuple[sa.Connection, Row]]:
        """Give a transaction for a change, with the conversation's row before it; the change is recorded for ``undo``.

        What changes nothing isn't recorded. Raises ConversationBusy while an answer is being written, unless that turn
        (``running``, its number) needs the change.
        """
        with self._database.write() as connection:
            row = load_conversation(connection, conversation_id, lock=True)
            refuse_while_running(connection, row, running)
            own = kind == "reset" and running is None
            before = _undoable(connection, row, own, turn)
            yield connection, row
            if _undoable(connection, load_conversation(connection, conversation_id), own, turn) == before:
                return
            change = {"conversation_id": conversation_id, "kind": kind, "before": before, "created_at": now()}
            connection.execute(sa.insert(history_changes).values(change))
            recount(connection, conversation_id)


def _last_change(conversation_id: int) -> sa.Select[Any]:
    own = sa.select(history_changes).where(history_changes.c.conversation_id == conversation_id)
    return own.order_by(history_changes.c.id.desc()).limit(1)


def _numbers(connection: sa.Connection, numbers: Collection[int]) -> sa.Select[tuple[int]]:
    """Return numbers as rows: an unlimited window has more of them than a statement may have parameters."""
    if connection.dialect.name == "sqlite":
        return sa.select(sa.func.json_each(as_json(list(numbers))).table_valued("value").c.value)
    return sa.select(sa.func.unnest(sa.literal(list(numbers), sa.ARRAY(sa.Integer))).column_valued())


def _undoable(connection: sa.Connection, row: Row, own: bool, turn: Turn | None) -> dict[str, Any]:
    """Return what ``undo`` restores: the view, with ``own`` the overrides, and a turn's marks."""
    state: dict[str, Any] = {name: row[name] for name in (*VIEW, *(("overrides",) if own else ()))}
    if turn is not None:
        marks = connection.execute(sa.select(turns).where(turns.c.id == turn.id)).mappings().one()
        state["marks"] = {str(turn.id): {name: marks[name] for name in MARKS}}
    return state


def _see(connection: sa.Connection, turn_id: int) -> None:
    """Make a turn visible to the model if it has an answer and nothing hides it."""
    set_values(connection, turns, turn_id, {"visible": load_turn(connection, turn_id).may_be_seen})


def insert_summary(
    connection: sa.Connection,
    conversation_id: int,
    text: str,
    covered: Sequence[Sequence[int]],
    written_by: str,
    created_at: datetime,
) -> int:
    """Insert a summary of the turns in runs of [first, last], and return its id."""
    own = {"conversation_id": conversation_id, "text": text, "written_by": written_by, "created_at": created_at}
    stands_for = {"first_turn": covered[0][0], "last_turn": covered[-1][1], "covered": covered}
    return insert_row(connection, summaries, own | stands_for)
