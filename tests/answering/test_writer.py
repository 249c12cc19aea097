"""The text of many answers is committed together, and only then shown."""

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from msgspec import field
from sqlalchemy import update

from rag_assistant.answering import writer as module
from rag_assistant.answering.live import LiveTurn
from rag_assistant.answering.writer import AnswerWriter, with_citation_checks
from rag_assistant.records import Question, Source, Turn
from rag_assistant.records.errors import AnswerTakenOver, AssistantError, StorageDamaged, StorageFailed
from rag_assistant.storage.conversations.turn_endings import AnswerLog, Piece
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import turns
from tests.web.conftest import until


class Log(AnswerLog):
    """Takes note of what is committed together; ``failures`` are met first, and nothing is committed while it holds."""

    commits: list[list[str]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    may_commit: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_commit.set()

    def append_all(self, pieces: Sequence[Piece]) -> set[int]:
        self.commits.append([text for _, _, text in pieces])
        assert self.may_commit.wait(10)
        if self.failures:
            raise self.failures.pop()
        return super().append_all(pieces)


class Answers:
    """Running answers over a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.turns = TurnStore(database, "here", str.lower)
        self.log = Log(database, "here")
        self.writer = AnswerWriter(self.turns, self.log)

    def begin(self, count: int = 1) -> list[LiveTurn]:
        """Begin some answers."""
        return [LiveTurn(self.turns.accept(Question("Why?"), "Why?")[0]) for _ in range(count)]

    def write_together(self, answers: Sequence[LiveTurn], text: str) -> None:
        """Write to some answers while a commit is under way."""
        self.log.may_commit.clear()
        self.log.commits.clear()
        (live,) = self.begin()
        self.writer.write(live, "busy")
        until(lambda: self.log.commits)
        for live in answers:
            self.writer.write(live, text)
        self.log.may_commit.set()

    def texts(self, live: LiveTurn) -> tuple[str, str]:
        """Return what was shown of an answer, and what is kept."""
        return live.text(), self.turns.get(live.turn.id).answer


@pytest.fixture
def answers(database: Database, monkeypatch: pytest.MonkeyPatch) -> Answers:
    monkeypatch.setattr(module, "RETRY_INTERVAL_SECONDS", 0.01)
    return Answers(database)


@pytest.mark.parametrize("count", [2, 40])
def test_a_round_of_many_streams_is_one_commit(answers: Answers, count: int) -> None:
    running = answers.begin(count)
    answers.write_together(running, "So it is.")
    for live in running:
        answers.writer.flush(live)
        assert answers.texts(live) == ("So it is.", "So it is.")
    assert answers.log.commits == [["busy"], ["So it is."] * count]


def test_nothing_is_shown_that_is_not_committed(answers: Answers) -> None:
    (live,) = answers.begin()
    answers.log.may_commit.clear()
    answers.writer.write(live, "So")
    until(lambda: answers.log.commits)
    assert answers.texts(live) == ("", "")
    answers.log.may_commit.set()
    answers.writer.flush(live)
    assert answers.texts(live) == ("So", "So")


def test_text_that_comes_while_a_commit_is_under_way_is_one_piece(answers: Answers) -> None:
    (live,) = answers.begin()
    answers.write_together([live] * 3, "a ")
    answers.writer.flush(live)
    assert answers.log.commits == [["busy"], ["a a a "]]
    assert answers.texts(live) == ("a a a ", "a a a ")


def test_an_answer_that_is_not_ours_any_more_ends_alone(answers: Answers) -> None:
    running = answers.begin(3)
    lost, *others = running
    with answers.database.write() as connection:
        connection.execute(update(turns).where(turns.c.id == lost.turn.id).values(owner="elsewhere"))
    answers.write_together(running, "So it is.")
    with pytest.raises(AnswerTakenOver):
        answers.writer.flush(lost)
    with pytest.raises(AnswerTakenOver):
        answers.writer.write(lost, " Or not.")
    assert answers.texts(lost) == ("", "")
    for live in others:
        answers.writer.flush(live)
        assert answers.texts(live) == ("So it is.", "So it is.")


def test_a_commit_that_fails_is_tried_again(answers: Answers) -> None:
    running = answers.begin(3)
    answers.log.failures = [StorageFailed("The disk is full.")] * 2
    answers.write_together(running, "So it is.")
    for live in running:
        answers.writer.flush(live)
        assert answers.texts(live) == ("So it is.", "So it is.")


def test_who_is_stopped_while_nothing_can_be_committed_waits_no_longer(answers: Answers) -> None:
    (live,) = answers.begin()
    answers.log.failures = [StorageFailed("The disk is full.")] * 100_000
    answers.writer.write(live, "So")
    live.call.stop()
    began = time.monotonic()
    with pytest.raises(StorageFailed):
        answers.writer.flush(live)
    assert time.monotonic() - began < 1
    answers.log.failures.clear()


@pytest.mark.parametrize("error", [StorageDamaged("The database is damaged."), RuntimeError("the driver is gone")])
def test_a_commit_that_cannot_succeed_is_told_to_its_answers_and_nothing_of_it_is_shown(
    answers: Answers, error: Exception
) -> None:
    running = answers.begin(3)
    for live in running:
        answers.writer.write(live, "So")
        answers.writer.flush(live)
    answers.log.failures = [error]
    for live in running:
        answers.writer.write(live, " it is.")
    failed = 0
    for live in running:
        try:
            answers.writer.flush(live)
        except AssistantError:
            failed += 1
            assert live.text() == "So"
    assert failed >= 1
    (live,) = answers.begin()
    answers.writer.write(live, "So it is.")
    answers.writer.flush(live)
    assert answers.texts(live) == ("So it is.", "So it is.")


HERONS = Source(1, 3, "a.md", None, 0, 4, "The heron shed opens at nine.", 1.0)


def cited_at_the_end(chars: int) -> tuple[Turn, str]:
    """Return a turn, and an answer of one line whose last sentence isn't supported."""
    turn = Turn(1, 1, 1, "running", "Why?", "", datetime.now(UTC), model="m", sources=(HERONS,))
    return turn, "It opens at nine. " * (chars // 18) + "The heron shed has 17 doors [1]."


@pytest.mark.parametrize(("chars", "doubts", "notes"), [(900, 1, ()), (200_000, 0, (module.CHECKED_IN_PART,))])
def test_a_long_answer_is_checked_in_part_and_says_so(chars: int, doubts: int, notes: tuple[str, ...]) -> None:
    checked = with_citation_checks(*cited_at_the_end(chars))
    assert (checked.doubts, checked.notes, checked.sources[0].cited) == (doubts, notes, True)


def test_a_check_that_takes_too_long_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHECK_SECONDS", -1.0)
    checked = with_citation_checks(*cited_at_the_end(900))
    assert (checked.doubts, checked.notes) == (0, (module.CHECKED_IN_PART,))
