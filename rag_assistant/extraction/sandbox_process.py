"""Run one of our modules on a file in a separate process, and return its output: a hostile file breaks only that.

The process restricts itself (sandbox.py) before it opens the file; its output is limited here.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from rag_assistant.records.errors import ExtractionCancelled, ExtractionFailed
from rag_assistant.runtime.supervised_process import plain_environment

PROGRAM = "rag_assistant.extraction.sandbox"
FAILED_CLEANLY, MAX_FAILURE_BYTES = 3, 4_000
BYTES_AT_ONCE = 1 << 16
POLL_INTERVAL_SECONDS = 0.1
GRACEFUL_TIMEOUT_SECONDS = 5.0
TOO_MUCH_MEMORY = "Reading this file takes more memory than is allowed."


class Limits(Struct, frozen=True):
    """The resources of a process, and the maximum size of its output; with ``lines``, of each of that many lines.

    Its priority is from 0, the usual one, to 19. ``cancelled`` is polled several times a second.
    """

    memory_mb: int
    timeout_seconds: float
    max_output_bytes: int
    cancelled: Callable[[], bool] = lambda: False
    niceness: int = 0
    lines: int = 0


class Failure(Struct, frozen=True):
    """Why a process could not read a file, which its last line says, and the cause for the log."""

    sentence: str
    cause: str


def confined(module: str, file: Path | IO[bytes], arguments: Sequence[str], limits: Limits) -> Generator[bytes]:
    """Yield what the ``work`` of a ``module`` yields for a file, which may be open, and some arguments, in any pieces.

    Raises ExtractionCancelled, and ExtractionFailed if it does, takes too long or yields too much.
    """
    end = b""
    with _started(module, file, arguments, limits) as process:
        for piece in _pieces(process, limits):
            yield piece
            end = (end + piece)[-MAX_FAILURE_BYTES:]
    _raise_for_end(process.returncode, limits.timeout_seconds, end)


@contextmanager
def _started(
    module: str, file: Path | IO[bytes], arguments: Sequence[str], limits: Limits
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module, and clean up after it."""
    path, opened = (str(file), None) if isinstance(file, Path) else ("", file)
    cpu_seconds = int(max(1, limits.lines) * limits.timeout_seconds) + 1
    resources = map(str, (limits.memory_mb, cpu_seconds, limits.niceness))
    process = subprocess.Popen(
        [sys.executable, "-m", PROGRAM, module, *resources, path, *arguments],
        stdin=opened or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=plain_environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        yield process
    except BaseException:
        _end(process, 0.0)
        raise
    _end(process, GRACEFUL_TIMEOUT_SECONDS)


def _raise_for_end(status: int, timeout_seconds: float, end: bytes) -> None:
    """Raise ExtractionFailed with the meaning of a process's exit status, unless it is 0; ``end`` ends its output."""
    if status == FAILED_CLEANLY:
        try:
            failure = decode(end.rpartition(b"\n")[2], type=Failure)
        except MsgspecError as error:
            raise ExtractionFailed("Reading this file failed: the result made no sense.") from error
        raise ExtractionFailed(failure.sentence) from RuntimeError(failure.cause)
    if -status == signal.SIGXCPU:
        raise ExtractionFailed(f"Reading this file took longer than {timeout_seconds:g} seconds.")
    if -status == signal.SIGABRT:
        raise ExtractionFailed(f"{TOO_MUCH_MEMORY} It may be damaged.")
    if -status == signal.SIGKILL:
        raise ExtractionFailed(
            "The process reading this file was killed, which happens when the machine runs out of memory or time."
        )
    if status < 0:
        raise ExtractionFailed("The parser crashed on this file: it is damaged or malicious.")
    if status:
        raise ExtractionFailed("Reading this file failed: it is damaged, or it needs more memory or time than allowed.")


def _pieces(process: subprocess.Popen[bytes], limits: Limits) -> Iterator[bytes]:
    """Yield the output of a process. Raises ExtractionFailed if it, or a line of it, takes too long or is too large."""
    assert process.stdout is not None  # noqa: S101 - it was opened above, which the type checker cannot know
    deadline = time.monotonic() + limits.timeout_seconds
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if limits.cancelled():
                raise ExtractionCancelled
            if time.monotonic() > deadline:
                raise ExtractionFailed(f"Reading this file took longer than {limits.timeout_seconds:g} seconds.")
            if not selector.select(POLL_INTERVAL_SECONDS):
                continue
            piece = os.read(process.stdout.fileno(), BYTES_AT_ONCE)
            if not piece:
                return
            size += len(piece)
            if size > limits.max_output_bytes:
                raise ExtractionFailed("This file has more text than can be stored. Split it.")
            yield piece
            if limits.lines and b"\n" in piece:
                deadline, size = time.monotonic() + limits.timeout_seconds, 0


def _end(process: subprocess.Popen[bytes], timeout_seconds: float) -> None:
    """Kill the process with its children, and reap it; it may exit by itself within the timeout."""
    until = time.monotonic() + timeout_seconds
    # It isn't reaped until its group is killed, so that its id can't be reused by then.
    options = os.WEXITED | os.WNOWAIT | os.WNOHANG
    while time.monotonic() < until and os.waitid(os.P_PID, process.pid, options) is None:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
