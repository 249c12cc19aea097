"""Coroutines in tests: the browser of other tests keeps a loop in the thread that all share, which takes no second."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import anyio


def run_apart(talk: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine to its end in a thread of its own."""
    with ThreadPoolExecutor(1) as own_thread:
        own_thread.submit(anyio.run, talk).result()
