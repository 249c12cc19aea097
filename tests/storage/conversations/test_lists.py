"""The list of conversations in the database: by page, pinned, put away, found. On SQLite and on PostgreSQL."""

import pytest
from sqlalchemy import Engine, event, update

from rag_assistant.records import ListedConversation, Question
from rag_assistant.records.errors import TooManyPinned
from rag_assistant.records.views import view_of
from rag_assistant.storage import full_text
from rag_assistant.storage.conversations import conversations as module
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import conversations
from tests.conftest import both_engines


@pytest.fixture
def manager(database: Database) -> ConversationManager:
    return ConversationManager(database)


def test_a_list_goes_on_behind_a_place_and_ends_at_one(manager: ConversationManager, database: Database) -> None:
    made = [manager.create(f"Talk {n}") for n in range(6)][::-1]
    assert [one.id for one in manager.page(2)] == [one.id for one in made[:2]]
    behind = (made[1].updated_at, made[1].id)
    until = (made[3].updated_at, made[3].id)
    assert [one.id for one in manager.page(9, behind)] == [one.id for one in made[2:]]
    assert manager.entries(9, pinned=False) == []  # A program made them, and they have no answer.
    with database.write() as connection:
        connection.execute(update(conversations).values(listed=True))
    assert manager.entries(9, behind, until, pinned=False) == [view_of(ListedConversation, one) for one in made[2:4]]
    assert manager.entries(9, pinned=True) == []


def test_what_was_put_away_is_listed_by_when(manager: ConversationManager) -> None:
    ids = [manager.create(f"Talk {n}").id for n in range(4)]
    for number in (ids[2], ids[0], ids[1]):
        manager.delete(number)
    listed = manager.page(9, deleted=True)
    assert [one.id for one in listed] == [ids[1], ids[0], ids[2]]
    assert listed[0].deleted_at is not None
    assert [one.id for one in manager.page(9, (listed[0].deleted_at, listed[0].id), deleted=True)] == [ids[0], ids[2]]
    manager.restore(ids[0])
    assert [one.id for one in manager.page(9, deleted=True)] == [ids[1], ids[2]]


def test_only_so_many_can_be_pinned(manager: ConversationManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PINNED", 2)
    ids = [manager.create(f"Talk {n}").id for n in range(4)]
    for number in ids[:2]:
        assert manager.change(number, pinned=True).pinned
    with pytest.raises(TooManyPinned):
        manager.change(ids[2], pinned=True)
    manager.delete(ids[0])
    assert manager.change(ids[2], pinned=True).pinned
    assert {one.id for one in manager.page(9, pinned=True)} == {ids[1], ids[2]}
    assert [one.id for one in manager.page(9, pinned=False)] == [ids[3]]


@both_engines
def test_titles_are_found_first_and_each_conversation_once(manager: ConversationManager, database: Database) -> None:
    turns = TurnStore(database, "here", str.lower)
    said, _ = turns.accept(Question("Of geese and swans"), "Birds")
    turns.finish(said, "completed", "Geese again.")
    named = manager.create("My GEESE")
    hits = manager.find(["geese"], 9)
    assert [(hit.conversation.id, hit.turn, hit.text) for hit in hits] == [
        (named.id, None, ""),
        (said.conversation_id, 1, "Of geese and swans\nGeese again."),
    ]
    assert [hit.conversation.id for hit in manager.find(["geese"], 1)] == [named.id]
    assert next(hit.conversation.id for hit in manager.find(["my", "gees"], 9, typing=True)) == named.id


def test_the_beginning_of_a_word_is_sought_in_turns_from_three_letters_on(
    manager: ConversationManager, database: Database
) -> None:
    if database.engine.dialect.name != "sqlite":
        pytest.skip("finds whole words only")
    turns = TurnStore(database, "here", str.lower)
    turns.finish(turns.accept(Question("Of swans"), "Birds")[0], "completed", "We saw it.")
    named = manager.create("Swimming")
    assert [hit.conversation.id for hit in manager.find(["sw"], 9, typing=True)] == [named.id]
    assert [hit.turn for hit in manager.find(["swa"], 9, typing=True)] == [1]
    assert [hit.turn for hit in manager.find(["we"], 9, typing=True)] == [1]


def test_words_of_too_many_turns_bring_the_newest_and_a_rare_one_the_best(
    manager: ConversationManager, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_text, "MAX_RANKED_WHILE_TYPING", 3)
    turns = TurnStore(database, "here", str.lower)
    said = ("Geese geese geese", "Geese and swans of the lake", "Swans geese", "Geese here", "Geese and more")
    ids = [turns.finish(turns.accept(Question(text), "t")[0], "completed", ".").conversation_id for text in said]
    assert [hit.conversation.id for hit in manager.find(["geese"], 9)] == ids[::-1]
    assert [hit.conversation.id for hit in manager.find(["geese", "swans"], 9)] == [ids[2], ids[1]]
    assert [hit.conversation.id for hit in manager.find(["geese", "boats"], 9)] == ids[::-1]


@pytest.mark.parametrize("word", ["%", "_", "\\", "'", '"', "*"])
def test_signs_that_mean_something_to_a_database_are_sought_as_they_are(
    manager: ConversationManager, word: str
) -> None:
    manager.create("Nothing of it")
    assert manager.find([word], 9, typing=True) == []


def test_a_list_of_summarised_conversations_takes_no_statement_for_each(
    manager: ConversationManager, database: Database
) -> None:
    turns, history = TurnStore(database, "here", str.lower), HistoryStore(database)
    for number in range(5):
        turn = turns.finish(turns.accept(Question("Why?"), "t")[0], "completed", "Because.")
        history.keep_summary(manager.get(turn.conversation_id), f"Summary {number}", [1], "m", None)
    said: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        page = manager.page(9)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert [one.summary.text for one in page if one.summary] == [f"Summary {n}" for n in range(4, -1, -1)]
    assert len([statement for statement in said if "FROM summaries" in statement]) == 1
