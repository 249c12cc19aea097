"""Work in the background steps aside for requests: the interpreter runs one thread at a time, and cores are few.

How often threads take turns is set for the same reason. A request needs its turn again after each look into the
database, and waited 5 ms for it, which is Python's choice, beside any thread that reckons.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

SWITCH_INTERVAL_SECONDS = 0.0005
# So long after a request began, others may be under way.
BUSY_SECONDS = 0.1
MIN_REST_SECONDS = 0.003
MAX_REST_SECONDS = 1.0
# How many times as long as the work since the last rest: work without a rest takes a core, of which there may be two.
REST_FACTOR = 3
# After an answer, the next question is likely.
ANSWERED_JUST_NOW_SECONDS = 5.0

_last_request = _last_answer = float("-inf")
_answers = 0
_counting = threading.Lock()
_rested = threading.local()


def take_turns_often() -> None:
    """Let the threads of this process take turns more often."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)


def note_request() -> None:
    """Note that a request begins."""
    global _last_request
    _last_request = time.monotonic()


def step_aside() -> None:
    """Rest if a request began just now, three times as long as this thread has reckoned since it last came here."""
    worked = time.thread_time() - getattr(_rested, "at", 0.0)
    if time.monotonic() - _last_request < BUSY_SECONDS:
        time.sleep(min(max(MIN_REST_SECONDS, REST_FACTOR * worked), MAX_REST_SECONDS))
    _rested.at = time.thread_time()


@contextmanager
def answering() -> Iterator[None]:
    """Note that an answer is written for as long as this is open."""
    global _answers, _last_answer
    with _counting:
        _answers += 1
    try:
        yield
    finally:
        with _counting:
            _answers -= 1
            _last_answer = time.monotonic()


def cores_to_take() -> int:
    """Return how many cores work in the background may take: all, or half of them while somebody is there."""
    cores, now = os.cpu_count() or 1, time.monotonic()
    is_quiet = not _answers and now - _last_answer >= ANSWERED_JUST_NOW_SECONDS and now - _last_request >= BUSY_SECONDS
    return cores if is_quiet else max(1, cores // 2)


def share_out(count: int, do: Callable[[int], object]) -> None:
    """Call ``do`` with each number below ``count``, this thread and others at once, as many as may take a core.

    When fewer may, the others end with the number they are at. Whatever ``do`` raises is raised.
    """
    if count == 1:  # A question, which should not wait for a pool of threads.
        do(0)
        return
    numbers = iter(range(count))

    def work(place: int) -> None:
        for number in numbers:
            do(number)
            if place >= cores_to_take():
                return

    with ThreadPoolExecutor(thread_name_prefix="shared out") as pool:
        others = [pool.submit(work, place) for place in range(1, min(count, cores_to_take()))]
        work(0)
    for other in others:
        other.result()
