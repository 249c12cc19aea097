"""What the processes that this one starts were called with, as whoever looks at the machine sees it."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# A process of ours loads modules for longer than this, and to look takes milliseconds.
POLL_INTERVAL_SECONDS = 0.1


class Processes:
    """Notes the command line and the environment of every process that this one has started meanwhile."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[str, str]] = {}
        self._done = threading.Event()
        self._before = set(descendants())
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(POLL_INTERVAL_SECONDS):
            for number in set(descendants()) - self._before:
                try:
                    folder = Path("/proc", str(number))
                    command, environment = (folder.joinpath(name).read_bytes() for name in ("cmdline", "environ"))
                except OSError:
                    continue
                # Between fork and exec it is still a copy of this one.
                if command and command != Path("/proc/self/cmdline").read_bytes():
                    shown = command.decode(errors="replace").replace("\0", " ")
                    self.seen[shown] = shown, environment.decode(errors="replace")

    def close(self) -> None:
        self._done.set()
        self._thread.join()


def descendants() -> Iterator[int]:
    """Yield the processes that this one, or one of those, has started."""
    waiting = [os.getpid()]
    while waiting:
        number = waiting.pop()
        with suppress(OSError):  # It may end at any moment.
            for task in Path(f"/proc/{number}/task").iterdir():
                children = [int(one) for one in (task / "children").read_text().split()]
                yield from children
                waiting += children
