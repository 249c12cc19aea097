"""The queues: what is added is done, once, in its turn."""

import time
from collections.abc import Callable, Iterator

import pytest

from rag_assistant.runtime.background import JobQueue

Done = list[tuple[str, int]]
# A busy machine must not fail a test.
MAX_WAIT_SECONDS = 60


class Worked:
    """A lane that notes what it does."""

    def __init__(self) -> None:
        self.lane = JobQueue("test")
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
def worked() -> Iterator[Worked]:
    made = Worked()
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
    worked.lane.add("slow", 1, delay_seconds=0.3)
    worked.lane.add("slow", 2)
    assert worked.wait(2) == [("slow", 2), ("slow", 1)]


def test_work_that_raises_does_not_end_the_lane(worked: Worked, caplog: pytest.LogCaptureFixture) -> None:
    worked.lane.start()
    worked.lane.add("slow", 13)
    worked.lane.add("slow", 14)
    assert len(worked.wait(2)) == 2
    assert "thirteen" in caplog.text


def test_nobody_waits_for_all_jobs_of_somebody_who_added_many() -> None:
    lane, done = JobQueue("test", lambda number: number // 100), list[int]()
    lane.offer("read", done.append)
    for number in (*range(101, 111), 201, 202, 301):
        lane.add("read", number)
    lane.start()
    end = time.monotonic() + MAX_WAIT_SECONDS
    while lane.busy and time.monotonic() < end:
        time.sleep(0.01)
    lane.stop()
    assert done == [101, 201, 301, 102, 202, *range(103, 111)]
