"""Coroutines in tests: the shared thread already has an event loop, that of the browser tests."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import anyio


def run_apart(talk: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine in a thread of its own."""
    with ThreadPoolExecutor(1) as own_thread:
        own_thread.submit(anyio.run, talk).result()
