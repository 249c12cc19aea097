"""Answers given anew and chosen: by two at once, and while something else is decided about their turn."""

import threading

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from rag_assistant.records import Question, Turn
from rag_assistant.records.errors import ConversationBusy, TurnNotRegenerable, VersionFixed
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.conversations.versions import VersionStore
from rag_assistant.storage.database import Database
from tests.conftest import both_engines
from tests.testkit.statements import listening

DOING = {"what": "compact", "first_turn": 1, "last_turn": 1, "part": 1, "parts": 1}


@pytest.fixture
def turns(database: Database) -> TurnStore:
    return TurnStore(database, "here", str.lower)


@pytest.fixture
def versions(database: Database) -> VersionStore:
    return VersionStore(database, str.lower)


def answered(turns: TurnStore, answer: str = "The first.") -> Turn:
    return turns.finish(turns.accept(Question("Why?"), "t")[0], "completed", answer)


def test_an_answer_is_asked_for_anew_once_however_many_ask_at_once(turns: TurnStore, versions: VersionStore) -> None:
    turn = answered(turns)
    for done in range(1, 6):
        ended: list[object] = []
        ready = threading.Barrier(4)

        def ask_anew(ready: threading.Barrier = ready, ended: list[object] = ended) -> None:
            ready.wait()
            try:
                ended.append(turns.regenerate(turn.id)[0].version)
            except ConversationBusy:
                ended.append("busy")
            except Exception as error:  # noqa: BLE001 - whatever it is, the test is to show it
                ended.append(error)

        threads = [threading.Thread(target=ask_anew) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, ended)) == [str(done + 1), "busy", "busy", "busy"]
        turns.finish(turns.get(turn.id), "completed", f"Answer {done + 1}.")
    assert [one.answer for one in versions.all(turn.id)] == ["The first.", *(f"Answer {n}." for n in range(2, 7))]


def test_an_answer_that_waits_for_a_yes_is_not_put_away(turns: TurnStore, versions: VersionStore) -> None:
    turn = answered(turns)
    again, _ = turns.regenerate(turn.id)
    turns.finish(replace(again, waiting={"call": "delete"}), "completed", "Shall I?")
    with pytest.raises(VersionFixed):
        versions.choose(turn.id, 1)
    assert turns.get(turn.id).answer == "Shall I?"


@both_engines
def test_while_turns_are_summarised_their_answers_stay(
    turns: TurnStore, versions: VersionStore, database: Database
) -> None:
    turn = answered(turns)
    turns.finish(turns.regenerate(turn.id)[0], "completed", "The second.")
    manager = ConversationManager(database)
    manager.show_operation(turn.conversation_id, DOING)
    with pytest.raises(VersionFixed):
        versions.choose(turn.id, 1)
    with pytest.raises(TurnNotRegenerable):
        turns.regenerate(turn.id)
    manager.show_operation(turn.conversation_id, None)
    assert versions.choose(turn.id, 1).answer == "The first."


def test_words_are_stemmed_while_no_transaction_is_open(database: Database, turns: TurnStore) -> None:
    """Those of a long answer take a while, in which nobody else could write."""
    open_at_words: list[int] = []
    under_way: list[object] = []

    def words_of(text: str) -> str:
        open_at_words.append(len(under_way))
        return text.lower()

    def end(_: object) -> None:
        under_way.pop()

    stemming = TurnStore(database, "here", words_of)
    with (
        listening(Engine, "begin", under_way.append),
        listening(Engine, "commit", end),
        listening(Engine, "rollback", end),
    ):
        turn = answered(stemming)
        again, _ = stemming.regenerate(turn.id)
        stemming.finish(again, "completed", "The second.")
        VersionStore(database, words_of).choose(turn.id, 1)
    assert open_at_words == [0, 0, 0]
    assert turns.get(turn.id).answer == "The first."
