"""A conversation as it stood before a turn: what a branch would be that goes off there, without a branch."""

import pytest

from rag_assistant.records import Question
from rag_assistant.storage.conversations.branching import BranchStore
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from tests.storage.conversations.test_turns import talk


@pytest.mark.parametrize("number", [1, 4, 6, 8])
def test_a_conversation_before_a_turn_is_as_a_branch_would_be(database: Database, number: int) -> None:
    turns = TurnStore(database, "here", str.lower)
    manager, history = ConversationManager(database), HistoryStore(database)
    conversation = talk(turns, 8)
    every = turns.page(conversation, 8)
    history.move_context_start(conversation, "clear", at_turn=2)
    history.mark(every[3].id, pinned=True)
    history.mark(every[6].id, excluded=True)
    history.keep_summary(manager.get(conversation), "They talked.", [2, 3, 5], "m", running=None)
    before = manager.get(conversation)
    stood = BranchStore(database).conversation_before(every[number - 1])
    assert manager.get(conversation) == before, "nothing is changed"
    branch, _ = turns.accept(Question("Otherwise?", edits_turn=every[number - 1].id), "t")
    turns.interrupt(branch.id, lambda turn, _text: turn)
    made = manager.get(branch.conversation_id)
    assert stood.turns == number - 1
    assert (stood.summary and stood.summary.text) == (made.summary and made.summary.text)
    assert history.past(stood, number, None) == history.past(made, number, None)
    same = ("context_start", "view_start", "visible_turns", "visible_messages", "held_turns", "scope")
    assert [getattr(stood, name) for name in same] == [getattr(made, name) for name in same]
