"""Keep what is answered: each piece of text before it is shown, and how a turn ended, whatever keeps us from it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rag_assistant.answering.receipt import receipt_of, usage_of
from rag_assistant.conversations.prompts import mark_cited, note_citations
from rag_assistant.llm.pump import TextSink
from rag_assistant.presenters.turn_events import last_event
from rag_assistant.presenters.turns import error_data
from rag_assistant.records import Event, Message, Turn, TurnStatus
from rag_assistant.records.errors import AnswerStopped, AssistantError, StorageDamaged, StorageFailed

if TYPE_CHECKING:
    from rag_assistant.answering.request import BuiltRequest
    from rag_assistant.answering.stream import LiveTurn
    from rag_assistant.storage.conversations.answer_log import AnswerLog
    from rag_assistant.storage.conversations.turns import TurnStore

log = logging.getLogger(__name__)

RETRY_INTERVAL_SECONDS = 1.0
COMMIT_TIMEOUT_SECONDS = 30.0
KEEP_TIMEOUT_SECONDS = 300.0
LAST_RESORT_INTERVAL_SECONDS = 10.0


class AnswerWriter:
    """Writes answers, their receipts and how they end: whatever is kept of an answer goes through here."""

    def __init__(self, turns: TurnStore, answers: AnswerLog) -> None:
        self._turns = turns
        self._answers = answers
        self._closing = threading.Event()

    def commit(self, turn: Turn, live: LiveTurn, text: str) -> None:
        """Commit text before it is shown. Where the database is busy or full, try again for a while.

        Raises StorageFailed.
        """
        end = time.monotonic() + COMMIT_TIMEOUT_SECONDS
        while True:
            try:
                self._answers.append(turn.id, live.length, text)
                return
            except StorageFailed as error:
                if isinstance(error, StorageDamaged) or live.call.given_up or time.monotonic() > end:
                    raise
                time.sleep(RETRY_INTERVAL_SECONDS)

    def begin_commit(self, turn: Turn, live: LiveTurn, text: str) -> Callable[[], None]:
        """Put text into the next commit, which many answers share, and return what commits that.

        It tries once. Raises StorageFailed.
        """
        return self._answers.add(turn.id, live.length, text)

    def keep_receipt(self, turn: Turn, built: BuiltRequest, sent: Sequence[dict[str, Any]]) -> None:
        """Keep what is about to be sent to the model, before it is sent; see ``receipt_of``."""
        recalled = [one.as_past() for one in built.draft.recalled]
        self._turns.keep_receipt(turn, receipt_of(built, sent), built.draft.window.turns, recalled)

    def keep_iteration(self, turn: Turn, messages: Sequence[Message]) -> None:
        """Keep one tool iteration: the calls, and all their results."""
        self._turns.keep_iteration(turn.id, messages)

    def keep(self, turn: Turn, live: LiveTurn, status: TurnStatus, error: tuple[str, str] | None = None) -> Turn:
        """Keep the end of a turn with all that is known of it. While the disk is full or busy, try again for a while.

        Raises StorageFailed.
        """
        text = live.text()
        turn = replace(turn, sources=mark_cited(turn, text), notes=note_citations(turn, text))
        end = time.monotonic() + KEEP_TIMEOUT_SECONDS
        while True:
            try:
                return self._turns.finish(turn, status, text, usage=usage_of(live.call.replies), error=error)
            except StorageFailed as error:
                if isinstance(error, StorageDamaged) or time.monotonic() > end:
                    raise
                if self._closing.wait(RETRY_INTERVAL_SECONDS):
                    raise

    def fail(self, turn: Turn, live: LiveTurn, error: AssistantError) -> Turn:
        """Keep a turn that did not come to its end: with what is written, if anything is. Raises StorageFailed."""
        status: TurnStatus = "stopped" if isinstance(error, AnswerStopped) else _status_of(live.text())
        log.info("Turn %s %s: %s", turn.id, status, error)
        named = None if status == "stopped" else (type(error).__name__, str(error))
        # What it wanted to ask a person was not shown, or not whole: nothing waits.
        turn = replace(turn, waiting=None, retry_after_seconds=error.retry_after_seconds)
        return self.keep(turn, live, status, named)

    def last_resort(self, turn: Turn, live: LiveTurn) -> bool:
        """Keep a turn with what is committed of it and nothing else, so that its conversation goes on.

        Nobody waits longer than for the first try; after that it goes on until it works, unless the database is
        damaged. Returns whether it is kept; the next start keeps what even this could not.
        """
        lost = StorageFailed("The end of the answer could not be stored; what was shown is kept.")
        while True:
            try:
                kept = self._turns.interrupt(turn.id, mark_cited, (type(lost).__name__, str(lost)))
                live.finish(last_event(kept))
                return True
            except Exception as error:
                log.exception("Turn %s could not be kept at all", turn.id)
                told = error if isinstance(error, StorageDamaged) else lost
                live.finish(Event("error", {"status": "failed", "error": error_data(told)}))
                if told is error or self._closing.wait(LAST_RESORT_INTERVAL_SECONDS):
                    return False

    def close(self) -> None:
        """Give up what cannot be kept now; the next start keeps what is committed."""
        self._closing.set()


class ShownText(TextSink):
    """The text that answers a request: committed, then shown. ``held`` is what is not shown yet.

    Nothing is shown as long as ``holds_back`` says so of the text; once some of it is shown, so is the rest.
    """

    def __init__(self, writer: AnswerWriter, turn: Turn, live: LiveTurn, holds_back: Callable[[str], bool]) -> None:
        super().__init__()
        self._writer = writer
        self._turn = turn
        self._live = live
        self._holds_back = holds_back
        self._gap = "\n\n" if live.length else ""
        self._shown: list[str] = []
        self._commit: Callable[[], None] | None = None
        self.held = ""

    @property
    def shown(self) -> str:
        """The text that is shown."""
        return "".join(self._shown)

    def take(self, text: str) -> None:
        """Take text, and put it into the next commit if it may be shown."""
        self._pieces.append(text)
        self.held += text
        if self.held and (self._shown or not self._holds_back(self.held)):
            self._commit = self._writer.begin_commit(self._turn, self._live, self._gap + self.held)

    def settle(self) -> None:
        """Show what may be shown, once it is committed. Raises StorageFailed."""
        if self._commit is not None:
            self._commit()
            self._tell()

    def settle_patiently(self) -> None:
        """Do the same, and try for a while. Raises StorageFailed."""
        try:
            self.settle()
        except StorageFailed:
            self.show_held()

    def show_held(self) -> None:
        """Commit what is not shown yet, and show it; try for a while. Raises StorageFailed."""
        if self.held:
            self._writer.commit(self._turn, self._live, self._gap + self.held)
            self._tell()

    def _tell(self) -> None:
        self._commit = None
        self._live.add(self._gap + self.held)
        self._shown.append(self.held)
        self.held = self._gap = ""


def _status_of(text: str) -> TurnStatus:
    return "interrupted" if text.strip() else "failed"
