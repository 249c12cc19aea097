"""Memory that is given back to the system, where the C library is glibc; elsewhere nothing is done.

By itself glibc has eight arenas for each core, and each keeps what its busiest moment needed (docs/benchmarks.md).
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

# From glibc's malloc.h.
M_ARENA_MAX = -8
MAX_ARENAS = 2
GIVE_BACK_AFTER_SECONDS = 5.0
# How long what is asked to let go of memory has for it.
LET_GO_SECONDS = 0.5


_waiting = threading.Lock()


def limit_arenas() -> None:
    """Let all threads share few arenas. MALLOC_ARENA_MAX in the environment has the last word."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, MAX_ARENAS)


def give_back_soon(let_go: Callable[[], None]) -> None:
    """Give back, some seconds from now, what is not used then, once however often it was asked for meanwhile.

    ``let_go`` is called a moment before, from another thread.
    """
    if _waiting.acquire(blocking=False):
        timer = threading.Timer(GIVE_BACK_AFTER_SECONDS, _give_back_later, (let_go,))
        timer.daemon = True
        timer.start()


def _give_back_later(let_go: Callable[[], None]) -> None:
    _waiting.release()
    let_go()
    time.sleep(LET_GO_SECONDS)
    give_back()


def give_back() -> None:
    """Give back what is not used now. It takes some milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
