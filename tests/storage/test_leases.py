"""Whose work is whose: processes that fall silent are buried, and write to nothing of theirs after that."""

from collections.abc import Callable
from typing import Any

import pytest

from rag_assistant.answering.writer import unchecked
from rag_assistant.records import Question, Turn
from rag_assistant.records.errors import AnswerTakenOver, SettingsError
from rag_assistant.settings.schema import Settings, shared_settings
from rag_assistant.storage import processes as module
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.documents.rows import ScanStore
from rag_assistant.storage.processes import LEASE_SECONDS, Leases
from tests.conftest import both_engines
from tests.testkit.shelf import KEY, Shelf

Later = Callable[[float], None]


def leases(database: Database, installation: str, **changed: Any) -> Leases:
    """Return the leases of a process with these settings."""
    return Leases(database, installation, lambda: shared_settings(Settings()) | changed)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Lets time pass for those who look."""
    moment = [1000.0]
    monkeypatch.setattr(module, "monotonic", lambda: moment[0])

    def pass_time(seconds: float) -> None:
        moment[0] += seconds

    return pass_time


def watch(watcher: Leases, later: Later, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> int:
    """Look every two seconds, and return how many were buried."""
    buried = watcher.bury()
    for _ in range(int(seconds / 2)):
        later(2)
        meanwhile()
        buried += watcher.bury()
    return buried


def test_who_falls_silent_is_buried_after_a_lease_and_who_beats_is_not(database: Database, later: Later) -> None:
    here, there, silent = (
        leases(database, "here"),
        leases(database, "there"),
        leases(database, "silent"),
    )
    for one in (here, there, silent):
        one.enter("server")
    assert watch(here, later, LEASE_SECONDS - 2, there.beat) == 0
    assert watch(here, later, 4, there.beat) == 1
    assert there.beat() is None
    assert here.beat() is None
    new_name = silent.beat()
    assert new_name is not None
    assert silent.beat() is None


@both_engines
def test_nobody_is_buried_by_one_who_could_not_look_either(database: Database, later: Later) -> None:
    here, there = leases(database, "here"), leases(database, "there")
    here.enter("server")
    there.enter("server")
    watch(here, later, 10)
    later(100)
    assert watch(here, later, LEASE_SECONDS - 2) == 0
    assert watch(here, later, 4) == 1


def test_the_lock_of_a_folder_says_at_once_which_of_its_own_processes_died(database: Database) -> None:
    before, command, elsewhere = (
        leases(database, "here"),
        leases(database, "here"),
        leases(database, "there"),
    )
    before.enter("server")
    command.enter("command")
    elsewhere.enter("server")
    leases(database, "here").forget(commands=False)
    assert before.beat() is not None
    assert command.beat() is None
    # SQLite's file lies in one folder; who else was in it came with a backup.
    assert (elsewhere.beat() is None) is not database.is_sqlite


def test_a_server_with_another_embedding_model_is_refused_while_the_others_live(
    database: Database, later: Later, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if database.is_sqlite:
        pytest.skip("there is one server on a data folder")
    there = leases(database, "there")
    there.enter("server")
    other = leases(database, "here", embedder="endpoint:bge-m3", max_history_turns=9)

    def wait_while_it_beats(seconds: float) -> None:
        later(seconds)
        there.beat()

    monkeypatch.setattr(module, "sleep", wait_while_it_beats)
    with pytest.raises(SettingsError, match='embedder is "endpoint:bge-m3", but .* uses "builtin"; all must use one'):
        other.enter("server")
    assert there.beat() is None
    monkeypatch.setattr(module, "sleep", later)
    other.enter("command")
    other.leave()
    other.enter("server")
    assert there.beat() is not None
    assert "max_history_turns is 9 here" not in caplog.text


def test_settings_that_differ_are_named_at_the_start(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    if database.is_sqlite:
        pytest.skip("there is one server on a data folder")
    leases(database, "there").enter("server")
    leases(database, "here", max_history_turns=9).enter("server")
    said = [record.message for record in caplog.records]
    assert said == [
        "Servers on one database should have the same settings: max_history_turns is 9 here and 5 at another server."
    ]


def accepted(turns: TurnStore) -> Turn:
    turn, _ = turns.accept(Question("Why?"), "Why?")
    return turn


def test_a_turn_belongs_to_its_process_while_that_lives_and_to_nobody_afterwards(database: Database) -> None:
    dying = leases(database, "there")
    theirs, ours = TurnStore(database, dying.enter("server"), str.lower), TurnStore(database, "us", str.lower)
    answers = AnswerLog(database, theirs.owner)
    turn = accepted(theirs)
    answers.append_all([(turn.id, 0, "Bec")])
    assert ours.interrupt_unfinished(unchecked) == []
    assert ours.interrupt(turn.id, unchecked).status == "running"
    dying.leave()
    (left,) = ours.interrupt_unfinished(unchecked)
    assert (left.status, left.answer) == ("interrupted", "Bec")


def test_who_was_taken_for_dead_writes_no_more_also_when_the_question_is_answered_again(database: Database) -> None:
    late, ours = TurnStore(database, "late", str.lower), TurnStore(database, "us", str.lower)
    late_answers, our_answers = AnswerLog(database, "late"), AnswerLog(database, "us")
    turn, other = accepted(late), accepted(late)
    late_answers.append_all([(turn.id, 0, "Bec")])
    ours.interrupt(turn.id, unchecked)
    ours.regenerate(turn.id)
    our_answers.append_all([(turn.id, 0, "So")])
    assert late_answers.append_all([(turn.id, 3, "ause.")]) == {turn.id}
    with pytest.raises(AnswerTakenOver):
        late.keep_receipt(turn, {})
    with pytest.raises(AnswerTakenOver):
        late.keep_iteration(turn.id, [{"role": "assistant", "content": "x"}])
    assert late.finish(turn, "completed", "Because.").status == "running"
    late_answers.append_all([(other.id, 0, "its own")])
    assert (ours.get(turn.id).answer, ours.get(other.id).answer) == ("So", "its own")


def test_a_summary_at_work_is_cleared_when_its_process_died_and_not_before(database: Database) -> None:
    dying = leases(database, "there")
    theirs = ConversationManager(database, dying.enter("server"))
    conversation = theirs.create("One")
    theirs.show_operation(conversation.id, {"what": "compact"})
    ConversationManager(database, "us").clear_operations()
    assert theirs.get(conversation.id).operation == {"what": "compact"}
    dying.leave()
    ConversationManager(database, "us").clear_operations()
    assert theirs.get(conversation.id).operation is None


@both_engines
def test_a_document_is_worked_on_by_one_process_and_by_another_when_that_died(database: Database) -> None:
    dying, living = leases(database, "here"), leases(database, "elsewhere")
    shelf = Shelf(database)
    shelf.documents.worker = dying.enter("server")
    elsewhere = DocumentStore(database, "elsewhere", living.enter("server"))
    half, read, waiting = shelf.add("half"), shelf.add("read"), shelf.add("waiting")
    shelf.read(half, "aa", "bb")
    assert shelf.documents.take_in(half.id, "embedding")
    shelf.documents.take(read.id)

    assert not elsewhere.take_in(half.id, "embedding")
    assert elsewhere.take_up_unfinished() == ([], [], [])
    dying.leave()
    # What is to be read lies in a folder of the other machine.
    assert elsewhere.take_up_unfinished() == ([], [half.id], [])
    assert elsewhere.take_in(half.id, "embedding")
    assert shelf.documents.take_up_unfinished() == ([read.id, waiting.id], [], [])
    shelf.embed(half)
    assert shelf.embed(half) is True
    assert elsewhere.finish(half.id, KEY)


def test_scanned_pages_are_recognised_by_one_process_at_a_time_and_only_where_their_file_is(
    database: Database,
) -> None:
    dying, living, away = leases(database, "here"), leases(database, "here"), leases(database, "elsewhere")
    shelf, scans = Shelf(database), ScanStore(database)
    shelf.documents.worker = dying.enter("server")
    ours = DocumentStore(database, "here", living.enter("server"))
    elsewhere = DocumentStore(database, "elsewhere", away.enter("server"))
    scan, half = shelf.add("scan"), shelf.add("half")
    for document in (scan, half):
        shelf.read(document, "aa")
        scans.add(document.id, [1])
        shelf.embed(document)
    assert not shelf.documents.finish(scan.id, KEY, recognises=True)
    assert shelf.documents.is_ours_in("recognising", scan.id)

    assert not ours.take_in(scan.id, "recognising")
    dying.leave()
    assert elsewhere.take_up_unfinished(recognises=True) == ([], [half.id], [])
    assert ours.take_up_unfinished(recognises=True, of_ours=False) == ([], [], [scan.id])
    assert not shelf.documents.take_in(scan.id, "recognising")
    # Who has not its file makes it ready, and who has it goes on at its next start.
    assert elsewhere.finish(half.id, KEY, recognises=True)
    assert ours.take_up_unfinished(recognises=True) == ([], [], [half.id])
