"""What was excluded or edited after an answer, in every database."""

from typing import Any

import pytest
from msgspec.structs import replace

from rag_assistant.records import Correction, Turn
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.receipts import CorrectionStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from tests.storage.conversations.test_turns import ask


@pytest.fixture
def answered(database: Database) -> list[Turn]:
    """Three turns of one conversation; the second one saw the first, the third one a summary of both."""
    store, history = TurnStore(database, "here", str.lower), HistoryStore(database)

    def turn(conversation_id: int | None, **history: Any) -> Turn:
        asked = replace(ask(store, conversation_id=conversation_id), history=history)
        store.keep_receipt(asked, {"kept_turns": history["kept_turns"], "request": {"messages": []}})
        return store.finish(asked, "completed", "Because.")

    first = turn(None, kept_turns=[])
    second = turn(first.conversation_id, kept_turns=[1])
    before = ConversationManager(database).get(first.conversation_id)
    history.keep_summary(before, "They spoke.", [1, 2], "a model", None)
    return [first, second, turn(first.conversation_id, kept_turns=[], summary_sent=True)]


def test_what_was_changed_since_is_found(database: Database, answered: list[Turn]) -> None:
    first, second, third = answered
    corrections, history = CorrectionStore(database), HistoryStore(database)
    assert not any(corrections.of(answered).values())
    history.edit_summary(first.conversation_id, "They spoke of geese.")
    assert corrections.of(answered)[third.id] == [Correction("summary", "edited")]
    history.undo(first.conversation_id)
    history.undo(first.conversation_id)
    history.mark(first.id, excluded=True)
    assert corrections.of(answered) == {
        first.id: [],
        second.id: [Correction("turn", "excluded", turn=1)],
        third.id: [],
    }
