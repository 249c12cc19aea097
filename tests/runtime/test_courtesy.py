"""Work in the background rests while requests come, and not otherwise."""

from collections.abc import Iterator

import pytest

from rag_assistant.runtime import courtesy


class Clock:
    """The time of the wall, the time that this thread has reckoned, and the rests."""

    def __init__(self) -> None:
        self.now = self.reckoned = 0.0
        self.rests: list[float] = []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr("rag_assistant.runtime.courtesy.time.monotonic", lambda: clock.now)
    monkeypatch.setattr("rag_assistant.runtime.courtesy.time.thread_time", lambda: clock.reckoned)
    monkeypatch.setattr("rag_assistant.runtime.courtesy.time.sleep", clock.rests.append)
    monkeypatch.setattr(courtesy, "_last_request", float("-inf"))
    courtesy.step_aside()
    yield clock
    del courtesy._rested.at  # The thread's own time goes on where it was.


def test_who_works_in_the_background_steps_aside_only_while_requests_come(clock: Clock) -> None:
    assert clock.rests == []
    courtesy.note_request()
    courtesy.step_aside()
    assert clock.rests == [courtesy.MIN_REST_SECONDS]
    clock.now = courtesy.BUSY_SECONDS
    courtesy.step_aside()
    assert len(clock.rests) == 1


def test_a_rest_is_longer_than_the_work_before_it(clock: Clock) -> None:
    courtesy.note_request()
    for reckoned in (0.1, 0.1, 0.3, 9.0):
        clock.reckoned = reckoned
        courtesy.step_aside()
    assert clock.rests == pytest.approx(
        [0.1 * courtesy.REST_FACTOR, courtesy.MIN_REST_SECONDS, 0.2 * courtesy.REST_FACTOR, courtesy.MAX_REST_SECONDS]
    )


def test_work_that_was_done_while_nobody_asked_is_not_rested_for(clock: Clock) -> None:
    clock.reckoned = 0.4
    courtesy.step_aside()
    courtesy.note_request()
    courtesy.step_aside()
    assert clock.rests == [courtesy.MIN_REST_SECONDS]
