"""What the model sees of a conversation, as it is kept: on SQLite and on PostgreSQL."""

from typing import Any

import pytest
from sqlalchemy import select

from rag_assistant.records import Conversation, Message, Question
from rag_assistant.records.errors import ConversationBusy, NoSummary, NothingToUndo
from rag_assistant.retrieval.tokenize import search_words
from rag_assistant.storage.conversations import history
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.history import MIN_CERTAINTY, HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.full_text import WordIndex
from rag_assistant.storage.tables import turns as turns_table
from tests.conftest import both_engines


class Talk:
    """A conversation with answered turns."""

    def __init__(self, database: Database) -> None:
        self.turns = TurnStore(database, "here", lambda said: " ".join(search_words(said)))
        self.history = HistoryStore(database)
        self.conversations = ConversationManager(database)
        self.eraser = TurnEraser(database, str.lower)
        self.id: int | None = None
        self.ids: list[int] = []

    def say(self, *questions: str, **finish: Any) -> None:
        for question in questions:
            turn, _ = self.turns.accept(Question(question, self.id), "t")
            self.id = turn.conversation_id
            self.ids.append(turn.id)
            self.turns.finish(turn, "completed", f"Answer to {question}.", **finish)

    @property
    def conversation(self) -> Conversation:
        assert self.id is not None
        return self.conversations.get(self.id)

    def seen(self, newest: int | None = 5) -> list[int]:
        conversation = self.conversation
        return [past.number for past in self.history.past(conversation, conversation.turns + 1, newest)]

    def counted(self) -> tuple[int, int]:
        return self.conversation.visible_turns, self.conversation.visible_messages


@pytest.fixture
def talk(database: Database) -> Talk:
    made = Talk(database)
    made.say("one", "two", "three", "four", "five", "six", "seven")
    return made


def test_a_pinned_turn_comes_along_wherever_it_stands(talk: Talk) -> None:
    talk.history.mark(talk.ids[0], pinned=True)
    assert talk.seen(2) == [1, 6, 7]
    assert talk.seen(0) == [1]
    assert talk.conversation.held_turns == 1
    talk.history.mark(talk.ids[0], pinned=False)
    assert talk.seen(2) == [6, 7]


def test_an_excluded_turn_is_not_read_and_not_counted(talk: Talk) -> None:
    talk.history.mark(talk.ids[5], excluded=True)
    assert talk.seen(2) == [5, 7]
    assert talk.counted() == (6, 12)
    assert [(run["reason"], run["first_turn"]) for run in talk.conversation.standing_runs] == [("excluded", 6)]
    talk.history.undo(talk.conversation.id)
    assert (talk.seen(2), talk.counted()) == ([6, 7], (7, 14))


def test_what_is_hidden_is_counted_whole_however_many_are_listed(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.storage.conversations.counters.MAX_HIDDEN_LISTED", 2)
    for index in (0, 1, 3, 4):
        talk.history.mark(talk.ids[index], excluded=True)
    lost, _ = talk.turns.accept(Question("Lost", talk.id), "t")
    talk.turns.finish(lost, "failed", "", error=("ModelFailed", "It broke."))
    talk.history.mark(lost.id, excluded=True)
    runs = [
        (run["reason"], run["turns"], run["first_turn"], run["last_turn"]) for run in talk.conversation.standing_runs
    ]
    assert runs == [("excluded", 3, 1, 4), ("excluded", 1, 5, 5), ("failed", 1, 8, 8)]
    cleared = talk.history.move_context_start(talk.conversation.id, "clear")
    assert [(run["reason"], run["turns"]) for run in cleared.standing_runs] == [("cleared", 7), ("failed", 1)]


@both_engines
def test_nothing_comes_back_from_before_a_clear_but_by_undo(talk: Talk) -> None:
    talk.history.mark(talk.ids[0], pinned=True)
    cleared = talk.history.move_context_start(talk.conversation.id, "clear")
    assert (talk.seen(), talk.counted(), cleared.held_turns) == ([], (0, 0), 0)
    assert cleared.standing_runs[0] == {
        "reason": "cleared", "turns": 7, "messages": 14, "first_turn": 1, "last_turn": 7,
    }  # fmt: skip
    talk.say("eight")
    assert talk.seen() == [8]
    assert talk.history.undo(talk.conversation.id)[1] == "clear"
    assert (talk.seen(2), talk.counted()) == ([1, 7, 8], (8, 16))


def test_while_a_summary_is_written_nothing_else_is_undone(talk: Talk) -> None:
    talk.history.mark(talk.ids[0], pinned=True)
    talk.conversations.show_operation(talk.conversation.id, {"what": "summarise"})
    with pytest.raises(NothingToUndo, match="is being summarised"):
        talk.history.undo(talk.conversation.id)
    talk.conversations.show_operation(talk.conversation.id, None)
    assert talk.history.undo(talk.conversation.id)[1] == "pin"


def test_a_summary_stands_for_turns_and_undo_brings_them_back(talk: Talk) -> None:
    with pytest.raises(NoSummary):
        talk.history.edit_summary(talk.conversation.id, "x")
    kept = talk.history.keep_summary(talk.conversation, "Four turns.", [1, 2, 3, 4], "a model", None)
    assert kept.summary is not None
    assert (kept.summary.text, kept.view_start, talk.counted()) == ("Four turns.", 5, (3, 6))
    assert talk.seen(None) == [5, 6, 7]
    edited = talk.history.edit_summary(talk.conversation.id, "Edited.")
    assert edited.summary is not None
    assert (edited.summary.text, edited.summary.written_by) == ("Edited.", "a person")
    talk.history.undo(talk.conversation.id)
    assert talk.conversation.summary is not None
    assert talk.conversation.summary.text == "Four turns."
    talk.history.undo(talk.conversation.id)
    assert talk.conversation.summary is None
    assert talk.seen(None) == [1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(NothingToUndo):
        talk.history.undo(talk.conversation.id)


def test_while_an_answer_is_written_its_view_stands(talk: Talk) -> None:
    running, _ = talk.turns.accept(Question("eight", talk.id), "t")
    for change in (
        lambda: talk.history.move_context_start(talk.conversation.id, "clear"),
        lambda: talk.history.mark(talk.ids[0], pinned=True),
        lambda: talk.history.undo(talk.conversation.id),
        lambda: talk.eraser.erase_conversation(talk.conversation.id),
    ):
        with pytest.raises(ConversationBusy):
            change()
    assert talk.history.move_context_start(talk.conversation.id, "reset", running.number).view_start == 8


def test_an_unanswered_turn_never_becomes_visible(talk: Talk) -> None:
    turn, _ = talk.turns.accept(Question("eight", talk.id), "t")
    call = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    talk.turns.keep_iteration(
        turn.id,
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "r"},
        ],
    )
    talk.turns.finish(turn, "stopped", "")
    talk.history.mark(turn.id, excluded=True)
    talk.history.mark(turn.id, excluded=False)
    assert talk.seen(1) == [7]
    assert talk.conversation.standing_runs[-1]["reason"] == "failed"


def test_tool_iterations_are_kept_with_their_turn_and_counted(talk: Talk) -> None:
    turn, _ = talk.turns.accept(Question("eight", talk.id), "t")
    call = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    said: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "r"},
    ]
    talk.turns.keep_iteration(turn.id, said)
    assert talk.turns.get(turn.id).iterations == tuple(said)
    talk.turns.finish(turn, "completed", "Done.")
    assert talk.counted() == (8, 18)
    (past,) = talk.history.past(talk.conversation, 9, 1)
    assert [message["role"] for message in past.messages] == ["user", "assistant", "tool", "assistant"]
    assert past.messages[1:3] == tuple(said)


def test_a_waiting_turn_is_held_until_it_is_answered(talk: Talk) -> None:
    from msgspec.structs import replace

    turn, _ = talk.turns.accept(Question("delete", talk.id), "t")
    waiting = {"call_id": "d", "tool": "delete_documents", "arguments": {"document_ids": [1]}}
    talk.turns.finish(replace(turn, waiting=waiting), "completed", "Delete it?")
    talk.say("more", "and more")
    assert talk.seen(1) == [8, 10]
    assert talk.history.past(talk.conversation, 11, 1)[0].waiting_call == "d"
    answer, _ = talk.turns.accept(Question("yes", talk.id, confirms_turn=turn.id), "t")
    talk.turns.finish(answer, "completed", "Deleted.")
    assert talk.seen() == [5, 6, 7, 9, 10]
    assert [run["reason"] for run in talk.conversation.standing_runs] == ["purged", "purged"]
    assert talk.turns.get(turn.id).waiting is None


@both_engines
def test_related_are_the_turns_that_are_not_seen_and_that_the_words_ask_for(talk: Talk) -> None:
    def related(*words: str, seen: tuple[int, ...] = (), beside: int = 0) -> list[tuple[int, str]]:
        found = talk.history.related(talk.conversation, words, talk.conversation.turns + 1, seen, 3, beside)
        assert all(MIN_CERTAINTY <= turn.certainty <= 1 for turn in found)
        return [(turn.number, turn.why) for turn in found]

    assert related("three") == [(3, "")]
    assert related("three", seen=(3,)) == []
    assert related("two", beside=1) == [(2, ""), (3, "")]
    assert related("two", beside=-1) == [(2, ""), (1, "")]
    assert related("two", seen=(3,), beside=1) == [(2, "")]
    assert related("nothing", beside=1) == []
    assert related() == []
    # One word of many is no reason to speak of a turn.
    assert related("three", "seals", "swim", "towards", "harbours") == []
    talk.history.mark(talk.ids[2], excluded=True)
    assert related("three") == [(3, "excluded")]
    talk.history.move_context_start(talk.conversation.id, "clear")
    assert related("two") == [(2, "cleared")]
    other = Talk(talk.turns._database)
    other.say("nine")
    assert related("nine") == []


def test_the_surest_turn_comes_first_however_long_the_others_are(talk: Talk) -> None:
    talk.say("The seal at the pier is called Bruno.")
    talk.say("A pier. " + "Nothing about it is worth a word. " * 20)
    words = ["seal", "pier", "called"]
    found = talk.history.related(talk.conversation, words, talk.conversation.turns + 1, (), 3)
    assert found[0].question.startswith("The seal")
    assert [turn.certainty for turn in found] == sorted((turn.certainty for turn in found), reverse=True)


def test_words_that_no_turn_has_find_none_however_little_certainty_is_asked_for(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MIN_CERTAINTY", 0.0)
    talk.say("The seal at the pier is called Bruno.")
    assert talk.history.related(talk.conversation, ["walrus"], talk.conversation.turns + 1, (), 3) == []


@pytest.mark.parametrize("few", [100, 1])
def test_related_turns_come_in_the_order_of_the_index(talk: Talk, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(history, "FEW", few)
    talk.say("Bruno the seal: Bruno barks, Bruno sleeps.")
    talk.say("A long walk with Bruno. " + "Nothing about it is worth a word. " * 20)
    first, second = talk.history.related(talk.conversation, ["bruno"], talk.conversation.turns + 1, (), 3)
    assert first.certainty == second.certainty
    assert (first.question[:9], first.number) == ("Bruno the", second.number - 1)


def test_few_turns_are_related_as_many_are(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.say("The seal at the pier is called Bruno.", "Boats at the pier.", "Bruno sleeps.")
    Talk(talk.turns._database).say("A pier elsewhere.", "Bruno elsewhere.")
    asked = [("seal", "pier", "called"), ("bruno",), ("bruno", "pier", "boats"), ("three", "seal"), ("nothing",)]

    def related() -> list[list[Any]]:
        found = [
            talk.history.related(talk.conversation, words, talk.conversation.turns + 1, (2,), 3) for words in asked
        ]
        return [[(turn.number, pytest.approx(turn.certainty)) for turn in turns] for turns in found]

    among_few = related()
    assert [len(turns) for turns in among_few] == [1, 2, 2, 2, 0]
    monkeypatch.setattr(history, "FEW", 1)
    assert related() == among_few


def test_where_no_word_is_held_none_is_counted(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A common word of a large server stands in thousands of other people's turns."""
    monkeypatch.setattr(WordIndex, "counted", None)
    assert talk.history.related(talk.conversation, ["seals", "swim"], talk.conversation.turns + 1, (), 3) == []


def test_a_purged_conversation_is_gone_with_its_words(talk: Talk, database: Database) -> None:
    other = Talk(database)
    other.say("three again")
    assert {hit.conversation.id for hit in talk.conversations.find(["three"], 9)} == {talk.id, other.id}
    assert talk.id is not None
    talk.eraser.erase_conversation(talk.id)
    assert [hit.conversation.id for hit in talk.conversations.find(["three"], 9)] == [other.id]
    with database.read() as connection:
        left = connection.execute(select(turns_table.c.id)).scalars().all()
    assert left == other.ids
