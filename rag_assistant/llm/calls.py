"""A call to a model that can be ended from outside at any time: by a person, or by a deadline.

A thread blocked on the next byte can't check a flag. So ending a call shuts its socket down, which wakes the thread at
once; the call knows why it ended.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from rag_assistant.records import ModelReply
from rag_assistant.records.errors import QUESTION_KEPT, AnswerInterrupted, AnswerStopped
from rag_assistant.runtime.bounded_http import Exchange

POLL_INTERVAL_SECONDS = 0.2


class ModelCall(Exchange):
    """One answer's call to a model, with the deadline for what it waits for.

    ``replies`` are those of all its completed requests, for token counts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._deadline: float | None = None
        self._last_moment: float | None = None
        self._if_late = ""
        self.stopped = False
        self.interrupted = False
        self.replies: list[ModelReply] = []
        self.overdue: str | None = None

    @property
    def ended(self) -> bool:
        return self.given_up or self.overdue is not None

    @property
    def given_up(self) -> bool:
        """Whether a person or the server has ended the call, so that no other request follows."""
        return self.stopped or self.interrupted

    def refuse_stopped(self, consequence: str = QUESTION_KEPT) -> None:
        """Raise AnswerStopped if a person has ended the call, AnswerInterrupted if the server is stopping."""
        if self.stopped:
            raise AnswerStopped("The answer was stopped.")
        if self.interrupted:
            raise AnswerInterrupted(f"The server stopped before the answer was complete.{consequence}")

    def stop(self) -> None:
        """End the call at a person's request."""
        self.stopped = True
        self.hang_up()

    def interrupt(self) -> None:
        """End the call because the server is stopping."""
        self.interrupted = True
        self.hang_up()

    def restart_deadline(self) -> None:
        """Restart the time limits; a person's stop remains."""
        self._last_moment = None

    def allow_more(self, seconds: float) -> None:
        """Put the end of all requests off, for time that was no part of them."""
        if self._last_moment is not None:
            self._last_moment += seconds

    def begin_request(self, seconds: float) -> None:
        """Begin one of the requests that share ``seconds``. An earlier timeout doesn't end it, a person's stop does."""
        if self._last_moment is None:
            self._last_moment = time.monotonic() + seconds
        self._deadline = None
        self.overdue = None

    def wait_for(self, seconds: float | None, if_late: str = "") -> None:
        """Set how long to wait for what comes next, and the message if it doesn't come; ``None``: no limit."""
        self._if_late = if_late
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def look(self, now: float) -> None:
        """End the call if it is past a deadline."""
        if self.ended:
            return
        if self._deadline is not None and now > self._deadline:
            self.overdue = self._if_late
        elif self._last_moment is not None and now > self._last_moment:
            self.overdue = "the answer did not end"
        if self.overdue is not None:
            self.hang_up()


class Watchdog:
    """Enforces the deadlines of all running calls, in one thread."""

    def __init__(self) -> None:
        self._calls: set[ModelCall] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watching(self, call: ModelCall) -> Iterator[None]:
        """Watch the call's deadlines inside this context."""
        with self._lock:
            self._calls.add(call)
            if self._thread is None or not self._thread.is_alive():  # Threads don't survive a fork.
                self._thread = threading.Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()
        self._wake.set()
        try:
            yield
        finally:
            with self._lock:
                self._calls.discard(call)

    def _watch(self) -> None:
        while True:
            self._wake.wait()
            with self._lock:
                calls = list(self._calls)
                if not calls:
                    self._wake.clear()
            for call in calls:
                call.look(time.monotonic())
            time.sleep(POLL_INTERVAL_SECONDS)
