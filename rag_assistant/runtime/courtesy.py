"""A parallel map for work in the background, which leaves a core to whoever asks."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def share_out(count: int, do: Callable[[int], object]) -> None:
    """Call ``do`` with each number below ``count``, several at once. Whatever it raises is raised."""
    if count == 1:  # A question, which should not wait for a pool of threads.
        do(0)
        return
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2), thread_name_prefix="share") as pool:
        list(pool.map(do, range(count)))
