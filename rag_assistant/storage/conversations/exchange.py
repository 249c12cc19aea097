"""Export and import of whole conversations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic, sleep
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Connection, RowMapping, and_, func, insert, select
from sqlalchemy.exc import IntegrityError

from rag_assistant.records import Message, Turn
from rag_assistant.records.archive import WholeAnswer, WholeConversation, WholeTurn
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.records.views import turn_data
from rag_assistant.storage.conversations.conversations import (
    IMPORT,
    MAX_PINNED,
    MAX_TITLE_CHARS,
    conversation_of,
    count_pinned,
    drop_conversations,
    load_conversation,
)
from rag_assistant.storage.conversations.counters import recount
from rag_assistant.storage.conversations.history import insert_summary
from rag_assistant.storage.conversations.turn_endings import message_rows, words_found_by
from rag_assistant.storage.conversations.turn_rows import IMAGES, as_turns, keep_pictures, load_pictures, picture_key
from rag_assistant.storage.conversations.versions import ABOUT_THE_ANSWER, answer_in
from rag_assistant.storage.database import Database, Store, insert_row, insert_rows, record_of, set_values
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.ownership import key_of, own_conversations, owner_of_new
from rag_assistant.storage.tables import answer_versions, conversations, messages, now, ratings, summaries, turns

# Inserted in one transaction: nobody who writes waits longer.
MAX_TURNS_AT_ONCE, MAX_CHARS_AT_ONCE = 200, 500_000
# How long to pause after a piece, relative to it: others then run at half speed at worst.
PAUSE = 2
# Prefix of imported conversations' keys among the Idempotency-Keys of first turns.
IMPORTED = "import:"
VIEW_STARTS = ("context_start", "earlier_starts", "view_start")
COPIED = ("created_at", "updated_at", "archived", "overrides", *VIEW_STARTS, "decided_until")
COPIED_OF_TURN = ("request", "created_at", "pinned", "excluded", "purged", "erased_at", "version")


class ExchangeStore(Store):
    """Reads and inserts whole conversations.

    ``owner`` names this installation, ``process`` this process; ``words_of`` is as for TurnStore.
    """

    def __init__(self, database: Database, owner: str, words_of: Callable[[str], str], process: str = "") -> None:
        super().__init__(database)
        self._owner = owner
        self.process = process
        self._words_of = words_of

    def imported_ids(self) -> dict[str, int]:
        """Return the ids of all conversations by identity, including those in the trash."""
        query = select(conversations.c.id, conversations.c.created_at, turns.c.idempotency_key).join_from(
            conversations, turns, and_(turns.c.conversation_id == conversations.c.id, turns.c.number == 1), isouter=True
        )
        prefix = key_of(self._database, IMPORTED)
        return {
            IMPORTED + key.removeprefix(prefix)
            if (key := row["idempotency_key"] or "").startswith(prefix)
            else f"created:{row['created_at'].isoformat()}": row["id"]
            for row in self._rows(query.where(own_conversations(self._database)))
        }

    def ids(self) -> list[int]:
        """Return the ids of all conversations with turns, except deleted ones, oldest first."""
        there = conversations.c.deleted_at.is_(None), conversations.c.turns > 0, own_conversations(self._database)
        return self._values(select(conversations.c.id).where(*there).order_by(conversations.c.id))

    def read(self, conversation_id: int) -> WholeConversation:
        """Return a whole conversation, without a turn that is being answered. Raises ConversationNotFound."""
        with self._database.read() as connection:
            row = load_conversation(connection, conversation_id)
            own = turns.c.conversation_id == conversation_id
            query = select(turns).where(own, turns.c.status != "running").order_by(turns.c.number)
            rows = connection.execute(query).mappings().all()
            wholes = [
                _turn_of(connection, one, turn) for one, turn in zip(rows, as_turns(connection, rows), strict=True)
            ]
            key: str = (rows[0]["idempotency_key"] if rows else None) or ""
            prefix = key_of(connection, IMPORTED)
            origin = row["branched_from"]
            summary = select(summaries).where(summaries.c.id == row["summary_id"])
            more = {
                "turns": tuple(wholes),
                "key": IMPORTED + key.removeprefix(prefix) if key.startswith(prefix) else None,
                "branched_from": (origin["conversation_id"], origin["turn"]) if origin else None,
                "scope": row["scope"] or {},
                "summary": connection.execute(summary).mappings().first(),
            }
            return record_of({**row, **more}, WholeConversation)

    def insert(self, whole: WholeConversation) -> int:
        """Insert a whole conversation and return its id; the ids in it must be those of this database.

        A long one is inserted in pieces, so that others can write, and becomes visible when it is complete. Raises
        InvalidRequest, and stores nothing, if one of its turns couldn't be displayed.
        """
        conversation_id: int | None = None
        pieces = list(_pieces_of(whole.turns))
        try:
            for number, (first, piece) in enumerate(pieces, 1):
                began = monotonic()
                words = [self._words(turn) for turn in piece]
                with self._database.write(adds=True) as connection:
                    new_id = conversation_id or self._insert_conversation(connection, whole, is_part=len(pieces) > 1)
                    self._insert_turns(connection, new_id, whole, first, piece, words)
                    if number == len(pieces):
                        _complete(connection, new_id, whole)
                conversation_id = new_id
                sleep(PAUSE * (monotonic() - began))  # Leave time to others.
            return new_id
        except BaseException as error:
            if conversation_id is not None:
                with self._database.write() as connection:
                    drop_conversations(connection, conversations.c.id == conversation_id)
            if isinstance(error, IntegrityError):
                raise InvalidRequest(f'The conversation "{whole.title}" was imported a moment ago.') from error
            if isinstance(error, TypeError | ValueError | KeyError | AttributeError):
                sentence = f'The conversation "{whole.title}" has values that an export never contains.'
                raise InvalidRequest(sentence) from error
            raise

    def _words(self, turn: WholeTurn) -> str:
        return words_found_by(turn.question, answer_in(list(turn.answer.messages)), self._words_of)

    def _insert_conversation(self, connection: Connection, whole: WholeConversation, *, is_part: bool) -> int:
        origin = whole.branched_from
        row = {name: getattr(whole, name) for name in COPIED} | {
            "person_id": owner_of_new(connection),
            "title": whole.title[:MAX_TITLE_CHARS],
            "turns": len(whole.turns),
            "visible_turns": 0,
            "visible_messages": 0,
            "pinned": whole.pinned and count_pinned(connection) < MAX_PINNED,
            "scope": whole.scope.as_dict(),
            "branched_from": {"conversation_id": origin[0], "turn": origin[1]} if origin else None,
            "origin_id": origin[0] if origin else None,
        }
        if is_part:
            row |= {"deleted_at": now(), "operation": {"what": IMPORT}, "operation_owner": self.process}
        return insert_row(connection, conversations, row)

    def _insert_turns(
        self,
        connection: Connection,
        new_id: int,
        whole: WholeConversation,
        first: int,
        piece: Sequence[WholeTurn],
        words: Sequence[str],
    ) -> None:
        """Insert turns from number ``first`` on and read them back: errors would otherwise appear on display."""
        origins: dict[int, int] = {}
        if whole.branched_from is not None:  # The originals of a branch's turns are erased with them.
            origin, branch_turn = whole.branched_from
            shared = turns.c.number >= first, turns.c.number < min(first + len(piece), branch_turn)
            query = select(turns.c.number, func.coalesce(turns.c.origin_id, turns.c.id))
            originals = connection.execute(query.where(turns.c.conversation_id == origin, *shared))
            origins = {row[0]: row[1] for row in originals}
        common = {"conversation_id": new_id, "owner": self._owner, "idempotency_key": None}
        rows = [
            common | {"number": number, "origin_id": origins.get(number)} | _turn_values(turn)
            for number, turn in enumerate(piece, first)
        ]
        if first == 1 and whole.key:
            rows[0]["idempotency_key"] = key_of(connection, whole.key)
        # In one go: a statement per turn takes ten times as long and blocks all other writers.
        connection.execute(insert(turns), rows)
        own = turns.c.conversation_id == new_id, turns.c.number >= first
        ids = connection.execute(select(turns.c.id).where(*own).order_by(turns.c.number)).scalars().all()
        _insert_what_belongs(connection, list(zip(ids, piece, strict=True)))
        if found_by := [(turn_id, terms) for turn_id, terms in zip(ids, words, strict=True) if terms]:
            TURN_WORDS.insert(connection, found_by)
        for turn in as_turns(connection, connection.execute(select(turns).where(*own)).mappings()):
            turn_data(turn)


def _pieces_of(all_turns: Sequence[WholeTurn]) -> Iterator[tuple[int, Sequence[WholeTurn]]]:
    """Yield batches of turns, each with the number of its first."""
    first, chars = 0, 0
    for index, turn in enumerate(all_turns):
        chars += len(turn.question) + sum(len(str(one.get("content"))) for one in turn.answer.messages)
        if index - first == MAX_TURNS_AT_ONCE or (chars > MAX_CHARS_AT_ONCE and index > first):
            yield first + 1, all_turns[first:index]
            first, chars = index, 0
    yield first + 1, all_turns[first:]


def _complete(connection: Connection, new_id: int, whole: WholeConversation) -> None:
    """Complete a conversation whose turns are inserted, and read it back."""
    shown: dict[str, Any] = {"deleted_at": None, "operation": None}
    if (summary := whole.summary) is not None:
        about = summary.text, summary.covered, summary.written_by, summary.created_at
        shown["summary_id"] = insert_summary(connection, new_id, *about)
    set_values(connection, conversations, new_id, shown)
    recount(connection, new_id)
    conversation_of(connection, load_conversation(connection, new_id))


def _insert_what_belongs(connection: Connection, numbered: Sequence[tuple[int, WholeTurn]]) -> None:
    """Insert what belongs to turns, given with their ids, in other tables."""
    of_turns: list[dict[str, Any]] = []
    for turn_id, turn in numbered:
        if turn.erased_at is None:
            images = {IMAGES: list(map(picture_key, turn.images))} if turn.images else {}
            question: Message = {"role": "user", "content": turn.question} | images
            of_turns += message_rows(turn_id, [question, *turn.answer.messages])
            keep_pictures(connection, turn_id, turn.images)
    insert_rows(connection, messages, of_turns)
    others = [
        {"turn_id": turn_id, "version": version, "messages": list(one.messages)}
        | {"figures": _figures(one), "finished_at": one.finished_at}
        for turn_id, turn in numbered
        for version, one in turn.others.items()
    ]
    insert_rows(connection, answer_versions, others)
    rated = [{"turn_id": turn_id} | asdict(turn.rating) for turn_id, turn in numbered if turn.rating is not None]
    insert_rows(connection, ratings, rated)


def _turn_values(turn: WholeTurn) -> dict[str, Any]:
    answered = turn.erased_at is None and bool(answer_in(list(turn.answer.messages)).strip())
    copied = {name: getattr(turn, name) for name in COPIED_OF_TURN}
    return (
        _figures(turn.answer)
        | copied
        | {
            "visible": answered and not (turn.excluded or turn.purged),
            "finished_at": turn.answer.finished_at,
            "versions": 1 + len(turn.others),
            "message_count": 0 if turn.erased_at is not None else 1 + len(turn.answer.messages),
        }
    )


def _figures(answer: WholeAnswer) -> dict[str, Any]:
    """Return the columns of a turn that describe its answer."""
    return {name: getattr(answer, name) for name in ABOUT_THE_ANSWER}


def _turn_of(connection: Connection, row: RowMapping, turn: Turn) -> WholeTurn:
    versions = select(answer_versions).where(answer_versions.c.turn_id == turn.id).order_by(answer_versions.c.version)
    others = connection.execute(versions).mappings().all() if turn.versions > 1 else []
    urls = load_pictures(connection, turn.images)
    own = {
        "question": turn.question,
        "answer": _answer_of({**row, "messages": turn.said_behind}),
        # The turn that a yes or no refers to is over, and has another id here.
        "request": {name: value for name, value in row["request"].items() if name != "confirms_turn"},
        "others": {one["version"]: _answer_of({**one, **one["figures"]}) for one in others},
        "rating": turn.rating,
        "images": [urls[key] for key in turn.images],
    }
    return record_of({**row, **own}, WholeTurn)


def _answer_of(values: Mapping[str, Any]) -> WholeAnswer:
    return record_of({**values, "sources": values["sources"] or ()}, WholeAnswer)
