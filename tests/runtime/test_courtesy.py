"""Work in the background rests while requests come, and takes fewer cores while somebody is there."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack

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
    monkeypatch.setattr(courtesy, "_last_answer", float("-inf"))
    monkeypatch.setattr(courtesy, "_answers", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
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


def test_all_cores_are_taken_but_half_of_them_beside_an_answer_or_a_request(clock: Clock) -> None:
    assert courtesy.cores_to_take() == 2
    courtesy.note_request()
    assert courtesy.cores_to_take() == 1
    clock.now += courtesy.BUSY_SECONDS
    assert courtesy.cores_to_take() == 2
    with courtesy.answering():
        with courtesy.answering():
            pass
        clock.now += courtesy.ANSWERED_JUST_NOW_SECONDS
        assert courtesy.cores_to_take() == 1
    assert courtesy.cores_to_take() == 1
    clock.now += courtesy.ANSWERED_JUST_NOW_SECONDS
    assert courtesy.cores_to_take() == 2


@pytest.mark.usefixtures("clock")
def test_as_many_work_at_once_as_there_are_cores() -> None:
    met = threading.Barrier(2)
    done: list[int] = []

    def do(number: int) -> None:
        met.wait(60)  # Broken, and so raised, if one worked alone.
        done.append(number)

    courtesy.share_out(4, do)
    assert sorted(done) == [0, 1, 2, 3]


@pytest.mark.usefixtures("clock")
def test_beside_an_answer_one_works_alone() -> None:
    by: list[threading.Thread] = []
    with courtesy.answering():
        courtesy.share_out(4, lambda _: by.append(threading.current_thread()))
    assert by == [threading.current_thread()] * 4


@pytest.mark.usefixtures("clock")
def test_once_an_answer_begins_one_goes_on_alone() -> None:
    with ExitStack() as answer:
        met = threading.Barrier(2, lambda: answer.enter_context(courtesy.answering()))
        by: dict[int, threading.Thread] = {}

        def do(number: int) -> None:
            if number < 2:
                met.wait(60)
            by[number] = threading.current_thread()

        courtesy.share_out(6, do)
    assert len({by[0], by[1]}) == 2
    assert [by[number] for number in range(2, 6)] == [threading.current_thread()] * 4


@pytest.mark.usefixtures("clock")
def test_what_fails_in_any_of_them_is_raised() -> None:
    def do(number: int) -> None:
        if number == 3:
            raise LookupError(number)

    with pytest.raises(LookupError):
        courtesy.share_out(4, do)
