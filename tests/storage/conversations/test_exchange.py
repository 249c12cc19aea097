"""A long conversation is inserted in pieces, and is there when it is whole. On SQLite and on PostgreSQL."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from rag_assistant.records.archive import WholeAnswer, WholeConversation, WholeTurn
from rag_assistant.records.errors import ConversationNotFound, InvalidRequest
from rag_assistant.storage.conversations import exchange as module
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.exchange import ExchangeStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.processes import Leases
from tests.conftest import both_engines

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
ANSWERS = [WholeAnswer(({"role": "assistant", "content": f"It hisses {n}."},), finished_at=MOMENT) for n in range(7)]
TURNS = tuple(WholeTurn(f"Goose {n}?", answer, MOMENT) for n, answer in enumerate(ANSWERS))
LONG = WholeConversation(1, "Geese", MOMENT, MOMENT, TURNS, key="import:geese")
# The last piece has what no page could show.
BROKEN = replace(LONG, turns=(*TURNS, replace(TURNS[0], answer=WholeAnswer(history={"nonsense": 1}))))


@pytest.fixture(autouse=True)
def in_pieces_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TURNS_AT_ONCE", 2)


@pytest.fixture
def process(database: Database) -> str:
    return Leases(database, "here", dict).enter("command")


@pytest.fixture
def store(database: Database, process: str) -> ExchangeStore:
    return ExchangeStore(database, "here", str, process)


@pytest.fixture
def manager(database: Database) -> ConversationManager:
    return ConversationManager(database)


def listed(manager: ConversationManager) -> list[str]:
    found = [hit.conversation for hit in manager.find(["goose"], 9)]
    return [one.title for one in (*manager.page(9), *manager.page(9, deleted=True), *found)]


def test_others_write_between_the_pieces_and_see_nothing_of_them(
    store: ExchangeStore, manager: ConversationManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def meanwhile(_seconds: float) -> None:
        seen.append(listed(manager))
        if len(seen) < len(TURNS) // 2:
            with pytest.raises(ConversationNotFound):
                manager.restore(before.id + 1)

    before = manager.create("Before")
    monkeypatch.setattr(module, "sleep", meanwhile)
    made = store.insert(LONG)
    assert (made, seen) == (before.id + 1, [["Before"]] * 3 + [["Before", "Geese", "Geese"]])
    assert store.read(made).turns == TURNS


def test_nothing_is_kept_of_what_cannot_be_shown(store: ExchangeStore, manager: ConversationManager) -> None:
    with pytest.raises(InvalidRequest, match="an export never contains"):
        store.insert(BROKEN)
    assert (listed(manager), store.imported_ids()) == ([], {})
    assert store.read(store.insert(LONG)).turns == TURNS


@both_engines
def test_a_part_goes_when_its_process_has_died(
    store: ExchangeStore,
    manager: ConversationManager,
    database: Database,
    process: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(module, "sleep", kill)
    monkeypatch.setattr(module, "drop_conversations", kill)
    with pytest.raises(Killed):
        store.insert(LONG)
    manager.clear_operations()
    assert len(store.imported_ids()) == 1, "the process lives"
    with database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM processes WHERE id = '{process}'")
    manager.clear_operations()
    assert (listed(manager), store.imported_ids()) == ([], {})
