"""Turns in the database: acceptance, the window, endings, crashes."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rag_assistant.answering.writer import NOT_CHECKED, unchecked, with_citation_checks
from rag_assistant.records import UNSET, PastTurn, Question, Source, Turn
from rag_assistant.records.errors import ConversationBusy, ConversationNotFound, IdempotencyKeyReused, TurnNotRetryable
from rag_assistant.storage.conversations import turn_endings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database, sqlite_url
from tests.conftest import both_engines


@pytest.fixture
def turns(database: Database) -> TurnStore:
    return TurnStore(database, "here", str.lower)


def ask(turns: TurnStore, text: str = "Why?", conversation_id: int | None = None) -> Turn:
    turn, new = turns.accept(Question(text, conversation_id), "A title")
    assert new
    return turn


def talk(turns: TurnStore, count: int) -> int:
    conversation_id = None
    for n in range(1, count + 1):
        turn = ask(turns, f"Q{n}", conversation_id)
        conversation_id = turn.conversation_id
        turns.finish(turn, "completed", f"A{n}")
    assert conversation_id is not None
    return conversation_id


def window_of(database: Database, turn: Turn, newest: int | None) -> list[PastTurn]:
    conversation = ConversationManager(database).get(turn.conversation_id)
    return HistoryStore(database).past(conversation, turn.number, newest)


def test_an_accepted_question_is_a_running_turn(turns: TurnStore) -> None:
    turn = ask(turns, "Why?")
    assert (turn.status, turn.number, turn.question, turn.answer) == ("running", 1, "Why?", "")
    assert turns.get(turn.id) == turn


@both_engines
def test_a_finished_turn_has_its_answer(turns: TurnStore) -> None:
    asked = replace(ask(turns), model="m")
    turn = turns.finish(asked, "completed", "Because.", usage={"prompt_tokens": 3})
    assert turns.get(turn.id) == turn
    assert (turn.status, turn.answer, turn.usage, turn.model) == ("completed", "Because.", {"prompt_tokens": 3}, "m")
    assert turn.finished_at is not None


def test_a_turn_ends_once(turns: TurnStore) -> None:
    turn = ask(turns)
    turns.finish(turn, "stopped", "Bec")
    assert turns.finish(turn, "completed", "Because.").answer == "Bec"


def test_one_conversation_answers_one_question_at_a_time(turns: TurnStore) -> None:
    turn = ask(turns)
    with pytest.raises(ConversationBusy):
        ask(turns, "Again?", turn.conversation_id)
    turns.finish(turn, "completed", "Because.")
    assert ask(turns, "Again?", turn.conversation_id).number == 2


def test_a_question_to_no_conversation_is_refused_and_leaves_nothing(turns: TurnStore, database: Database) -> None:
    with pytest.raises(ConversationNotFound, match="There is no conversation 7"):
        turns.accept(Question("Why?", 7), "t")
    assert ConversationManager(database).page(10) == []


def test_the_same_key_gives_the_same_turn(turns: TurnStore) -> None:
    question = Question("Why?", idempotency_key="k")
    first, conversation = turns.accept(question, "t")
    again, begun = turns.accept(question, "t")
    assert conversation is not None
    assert begun is None
    assert again.id == first.id


def test_the_same_key_for_another_question_is_refused(turns: TurnStore) -> None:
    turns.accept(Question("Why?", idempotency_key="k"), "t")
    with pytest.raises(IdempotencyKeyReused):
        turns.accept(Question("How?", idempotency_key="k"), "t")


def test_the_window_is_the_newest_turns_in_their_order(turns: TurnStore, database: Database) -> None:
    conversation_id = talk(turns, 7)
    window = window_of(database, ask(turns, "now", conversation_id), 3)
    assert [past.number for past in window] == [5, 6, 7]
    assert window[0].messages == ({"role": "user", "content": "Q5"}, {"role": "assistant", "content": "A5"})


def test_a_window_of_zero_is_empty_and_without_limit_is_everything(turns: TurnStore, database: Database) -> None:
    turn = ask(turns, "now", talk(turns, 4))
    assert window_of(database, turn, 0) == []
    assert len(window_of(database, turn, None)) == 4


@pytest.mark.parametrize(("status", "answer", "visible"), [("failed", "", 0), ("stopped", "", 0), ("stopped", "x", 1)])
def test_only_turns_with_text_are_seen_again(turns: TurnStore, database: Database, status, answer, visible) -> None:  # type: ignore[no-untyped-def]
    turn = ask(turns)
    turns.finish(turn, status, answer, error=("ModelFailed", "It failed."))
    conversation = ConversationManager(database).get(turn.conversation_id)
    assert (conversation.turns, conversation.visible_turns) == (1, visible)
    assert len(window_of(database, ask(turns, "now", turn.conversation_id), 5)) == visible


def test_a_crash_leaves_the_committed_text_as_an_interrupted_turn(turns: TurnStore, database: Database) -> None:
    turn = ask(turns)
    answers = AnswerLog(database, "here")
    answers.append_all([(turn.id, 0, "Bec")])
    answers.append_all([(turn.id, 3, "au")])
    assert turns.get(turn.id).answer == "Becau"
    (left,) = TurnStore(database, "elsewhere", str.lower).interrupt_unfinished(unchecked)
    assert (left.id, left.status, left.answer) == (turn.id, "interrupted", "Becau")
    assert turns.interrupt_unfinished(unchecked) == []


@both_engines
def test_a_crash_leaves_what_was_known_of_the_answer(turns: TurnStore, database: Database) -> None:
    turn = ask(turns)
    source = Source(1, 3, "a.txt", None, 0, 4, "Text", 1.0)
    turns.keep_receipt(replace(turn, model="m", notes=("Trimmed.",), sources=(source,)), {"request": {"messages": []}})
    AnswerLog(database, "here").append_all([(turn.id, 0, "Because [1].")])
    turns.interrupt_unfinished(unchecked)
    left = turns.get(turn.id)
    assert (left.model, left.notes, left.sources[0].cited) == ("m", ("Trimmed.", NOT_CHECKED), True)


@pytest.mark.parametrize("changed", [False, True])
def test_what_is_checked_later_is_stored_unless_the_turn_has_changed(
    turns: TurnStore, database: Database, changed: bool
) -> None:
    source = Source(1, 3, "a.txt", None, 0, 4, "Text", 1.0)
    turn = ask(turns)
    turns.keep_receipt(replace(turn, model="m", sources=(source,)), {"request": {"messages": []}})
    AnswerLog(database, "here").append_all([(turn.id, 0, "Because of 17 herons [1].")])
    turns.interrupt_unfinished(unchecked)
    left = turns.get(turn.id)
    checked = with_citation_checks(left, left.answer)
    if changed:
        HistoryStore(database).mark(turn.id, pinned=True)
    turns.keep_checks(left, checked.sources, checked.notes)
    kept = turns.get(turn.id)
    assert (kept.notes, kept.doubts) == (((NOT_CHECKED,), 0) if changed else ((), 1))


def test_a_failed_turn_can_run_again(turns: TurnStore) -> None:
    turn = ask(turns)
    turns.finish(turn, "failed", "", error=("ModelFailed", "It failed."))
    again, _ = turns.retry(turn.id)
    assert (again.id, again.status, again.error_type) == (turn.id, "running", None)
    assert turns.finish(turn, "completed", "Because.").answer == "Because."


def test_only_the_last_failed_turn_can_run_again(turns: TurnStore) -> None:
    turn = ask(turns)
    turns.finish(turn, "failed", "")
    later = turns.finish(ask(turns, "next", turn.conversation_id), "completed", "x")
    with pytest.raises(TurnNotRetryable, match="no longer the last"):
        turns.retry(turn.id)
    with pytest.raises(TurnNotRetryable, match="is completed"):
        turns.retry(later.id)


def test_turns_come_by_page_oldest_first(turns: TurnStore) -> None:
    conversation_id = talk(turns, 5)
    assert [turn.number for turn in turns.page(conversation_id, 2)] == [4, 5]
    assert [turn.number for turn in turns.page(conversation_id, 2, before=4)] == [2, 3]


def test_a_deleted_conversation_is_gone_and_can_be_brought_back(turns: TurnStore, database: Database) -> None:
    conversation_id = talk(turns, 2)
    manager = ConversationManager(database)
    manager.delete(conversation_id)
    with pytest.raises(ConversationNotFound):
        turns.page(conversation_id, 9)
    assert manager.page(9) == []
    assert manager.restore(conversation_id).turns == 2


def test_a_conversation_keeps_its_own_window_also_none(turns: TurnStore, database: Database) -> None:
    manager = ConversationManager(database)
    conversation_id = talk(turns, 1)
    assert manager.get(conversation_id).max_history_turns is UNSET
    assert manager.change(conversation_id, own={"max_history_turns": None}).max_history_turns is None
    assert manager.change(conversation_id, title="New").max_history_turns is None
    assert manager.change(conversation_id, own={"max_history_turns": UNSET}).max_history_turns is UNSET


def test_the_latest_used_conversation_comes_first(turns: TurnStore, database: Database) -> None:
    first, second = talk(turns, 1), talk(turns, 1)
    manager = ConversationManager(database)
    assert [c.id for c in manager.page(9)] == [second, first]
    talk_on = ask(turns, "more", first)
    turns.finish(talk_on, "completed", "x")
    latest = manager.page(9)[0]
    assert [c.id for c in manager.page(9)] == [first, second]
    assert [c.id for c in manager.page(9, (latest.updated_at, latest.id))] == [second]


def test_many_answers_written_at_once_are_whole_and_in_order(tmp_path: Path, migrated: Path) -> None:
    shutil.copytree(migrated, tmp_path, dirs_exist_ok=True)
    database = Database(sqlite_url(tmp_path))
    turns, answers = TurnStore(database, "here", str.lower), AnswerLog(database, "here")
    running = [ask(turns, f"Q{n}") for n in range(16)]
    whole = "".join(f"{n} " for n in range(100))

    def write(turn: Turn) -> None:
        for position in range(0, len(whole), 3):
            answers.append_all([(turn.id, position, whole[position : position + 3])])

    threads = [threading.Thread(target=write, args=(turn,)) for turn in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {turns.get(turn.id).answer for turn in running} == {whole}
    database.close()


def test_the_window_reads_only_the_window(tmp_path: Path, migrated: Path) -> None:
    """SQLite's own count of steps is the same behind 10 and behind 150 turns."""
    steps = []
    for count in (10, 150):
        folder = tmp_path / str(count)
        shutil.copytree(migrated, folder)
        database = Database(sqlite_url(folder))
        turns = TurnStore(database, "here", str.lower)
        turn = ask(turns, "now", talk(turns, count))
        taken = 0

        def count_step() -> int:
            nonlocal taken
            taken += 1
            return 0

        with database.read() as connection:
            raw = connection.connection.dbapi_connection
        raw.set_progress_handler(count_step, 10)  # type: ignore[union-attr]
        window_of(database, turn, 5)
        raw.set_progress_handler(None, 0)  # type: ignore[union-attr]
        steps.append(taken)
        database.close()
    assert steps[0] > 0
    assert abs(steps[1] - steps[0]) <= 2


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_question_that_comes_while_an_answer_ends_waits_for_it(
    turns: TurnStore, interrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = ask(turns)
    next_turns: list[Turn] = []
    asking = threading.Thread(target=lambda: next_turns.append(ask(turns, "And?", turn.conversation_id)))

    step = "recount" if interrupted else "message_row"
    end_with = getattr(turn_endings, step)

    def end_beside_a_question(*given: Any) -> Any:
        if asking.ident is None:
            asking.start()
            asking.join(0.3)  # It has come as far as it can.
        return end_with(*given)

    monkeypatch.setattr(turn_endings, step, end_beside_a_question)
    ended = turns.interrupt(turn.id, unchecked) if interrupted else turns.finish(turn, "completed", "Because.")
    asking.join(20)
    assert ended.status == ("failed" if interrupted else "completed")
    assert [one.number for one in next_turns] == [2]
