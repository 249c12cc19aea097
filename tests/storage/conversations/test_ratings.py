"""Ratings in the database, as they were given."""

import pytest

from rag_assistant.records import UNSET
from rag_assistant.records.errors import TurnNotRatable
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.conversations.versions import RatingStore
from rag_assistant.storage.database import Database
from tests.conftest import both_engines
from tests.storage.conversations.test_turns import ask


@pytest.fixture
def turns(database: Database) -> TurnStore:
    return TurnStore(database, "here", str.lower)


@both_engines
def test_another_rating_replaces_the_first_and_keeps_the_right_answer(turns: TurnStore, database: Database) -> None:
    turn, store = turns.finish(ask(turns), "completed", "Because."), RatingStore(database)
    store.rate(turn.id, "up", "Because")
    second = store.rate(turn.id, "down", UNSET).rating
    assert second is not None
    assert (second.rating, second.right_answer) == ("down", "Because")
    assert [one.rating for one in store.page(5)] == [second]


def test_a_rated_turn_is_listed_with_the_answer_that_was_rated(turns: TurnStore, database: Database) -> None:
    turn, store = turns.finish(ask(turns), "completed", "The first."), RatingStore(database)
    store.rate(turn.id, "up", None)
    running, _ = turns.regenerate(turn.id)
    assert [(one.answer, one.version) for one in store.page(5)] == [("The first.", 1)]
    with pytest.raises(TurnNotRatable):
        store.rate(turn.id, "up", None)
    turns.finish(running, "completed", "The second.")
    assert [(one.answer, one.version) for one in store.page(5)] == [("The first.", 1)]
    store.rate(turn.id, "up", None)
    assert [(one.answer, one.version) for one in store.page(5)] == [("The second.", 2)]


def test_a_rating_goes_with_its_conversation(turns: TurnStore, database: Database) -> None:
    turn, store = turns.finish(ask(turns), "completed", "Because."), RatingStore(database)
    store.rate(turn.id, "up", None)
    ConversationManager(database).delete(turn.conversation_id)
    assert store.page(5) == []
    ConversationManager(database).restore(turn.conversation_id)
    assert len(store.page(5)) == 1
    TurnEraser(database, str).erase_conversation(turn.conversation_id)
    assert store.page(5) == []
