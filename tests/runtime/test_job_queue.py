"""The queues: what is added is done, once, in its turn; nothing of it is code; a broken file is no loss."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.runtime.job_queue import JobQueue

Done = list[tuple[str, int]]
# A busy machine must not fail a test.
MAX_WAIT_SECONDS = 60


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


class Worked:
    """A lane that notes what it does."""

    def __init__(self, where: Path, name: str) -> None:
        self.lane = JobQueue(name, where)
        self.done: Done = []
        for kind, priority in (("slow", 0), ("quick", 5)):
            self.lane.offer(kind, self._noted(kind), priority)

    def _noted(self, kind: str) -> Callable[[int], None]:
        def work(document_id: int) -> None:
            self.done.append((kind, document_id))
            if document_id == 13:
                raise RuntimeError("thirteen")

        return work

    def wait(self, count: int) -> Done:
        """Return what was done as soon as it is so much."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        while len(self.done) < count:
            assert time.monotonic() < end, self.done
            time.sleep(0.01)
        return self.done

    def wait_for_quiet(self) -> None:
        """Return when nothing waits, now or for later, and nothing is at hand."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        while self.lane.busy:
            assert time.monotonic() < end, self.done
            time.sleep(0.01)


@pytest.fixture
def worked(where: Path, tmp_path: Path) -> Iterator[Worked]:
    made = Worked(where, tmp_path.name)
    yield made
    made.lane.stop()


def test_what_waits_is_done_by_priority_and_then_in_its_order(worked: Worked) -> None:
    for number in (1, 2):
        worked.lane.add("slow", number)
    worked.lane.add("quick", 3)
    assert worked.lane.busy
    worked.lane.start()
    assert worked.wait(3) == [("quick", 3), ("slow", 1), ("slow", 2)]
    worked.wait_for_quiet()


def test_what_is_put_off_comes_later(worked: Worked) -> None:
    worked.lane.start()
    worked.lane.add("slow", 1, delay_seconds=3.0)
    worked.lane.add("slow", 2)
    assert worked.wait(2) == [("slow", 2), ("slow", 1)]


def test_work_that_raises_does_not_end_the_lane(worked: Worked, caplog: pytest.LogCaptureFixture) -> None:
    worked.lane.start()
    worked.lane.add("slow", 13)
    worked.lane.add("slow", 14)
    assert len(worked.wait(2)) == 2
    assert "thirteen" in caplog.text


def test_a_queue_outlives_its_process(worked: Worked, where: Path, tmp_path: Path) -> None:
    worked.lane.add("slow", 7)
    worked.lane.stop()
    second = Worked(where, tmp_path.name)
    second.lane.start()
    assert second.wait(1) == [("slow", 7)]
    second.lane.stop()


def test_what_is_forgotten_is_not_done(worked: Worked) -> None:
    worked.lane.add("slow", 1)
    worked.lane.add("slow", 2, delay_seconds=1.0)
    worked.lane.forget()
    worked.lane.start()
    worked.lane.add("slow", 3)
    worked.wait_for_quiet()
    assert worked.done == [("slow", 3)]


@pytest.mark.parametrize(("step", "delay_seconds"), [("dequeue", 0.0), ("read_schedule", 0.1)])
def test_a_piece_between_two_places_is_still_seen(
    worked: Worked, monkeypatch: pytest.MonkeyPatch, step: str, delay_seconds: float
) -> None:
    storage = worked.lane._huey.storage
    taken = getattr(storage, step)

    def take_slowly(*args: Any) -> Any:
        result = taken(*args)
        if result:
            time.sleep(0.3)
        return result

    monkeypatch.setattr(storage, step, take_slowly)
    worked.lane.start()
    worked.lane.add("slow", 1, delay_seconds)
    worked.wait_for_quiet()
    assert worked.done == [("slow", 1)]


def test_what_lies_in_the_queue_is_text_and_no_code(tmp_path: Path) -> None:
    lane = Worked(tmp_path / "queue.db", "x").lane
    lane.add("slow", 1)
    (item,) = lane._huey.storage.enqueued_items()
    stored: Any = bytes(item)
    assert stored.startswith(b"{")
    assert b'"args": [1]' in stored
    lane.stop()


def test_a_broken_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    path.write_bytes(b"this is no database" * 1000)
    worked = Worked(path, "x")
    worked.lane.start()
    worked.lane.add("slow", 1)
    assert worked.wait(1) == [("slow", 1)]
    assert (tmp_path / "queue.broken").exists()
    worked.lane.stop()


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(b"no database" * 1000), Path.unlink, lambda path: path.write_bytes(b"")],
    ids=["nonsense", "gone", "empty"],
)
def test_a_file_that_is_damaged_while_it_is_in_use_is_begun_anew_and_filled(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    """There are two queues in it, as there are in a server."""
    path = tmp_path / "queue.db"
    one, other = Worked(path, "x"), Worked(path, "y")

    def refill() -> None:
        one.lane.add("slow", 3)
        other.lane.add("slow", 3)

    for each in (one, other):
        each.lane.start(refill)
        each.lane.add("slow", 1)
        each.wait(1)
    damage(path)
    for each in (one, other):
        each.lane.add("slow", 2)
    for each in (one, other):
        each.wait(2)
        each.wait_for_quiet()
        assert set(each.done) >= {("slow", 1), ("slow", 2), ("slow", 3)}
        each.lane.stop()
