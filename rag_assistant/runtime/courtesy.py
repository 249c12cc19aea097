"""Work in the background steps aside for requests: the interpreter runs one thread at a time.

How often threads take turns is set for the same reason. A request needs its turn again after each look into the
database, and waited 5 ms for it, which is Python's choice, beside any thread that reckons.
"""

from __future__ import annotations

import sys
import threading
import time

SWITCH_INTERVAL_SECONDS = 0.0005
# So long after a request began, others may be under way.
BUSY_SECONDS = 0.1
MIN_REST_SECONDS = 0.003
MAX_REST_SECONDS = 1.0
# How many times as long as the work since the last rest: work without a rest takes a core, of which there may be two.
REST_FACTOR = 3

_last_request = float("-inf")
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
