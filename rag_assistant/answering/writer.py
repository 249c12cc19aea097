"""Store answers: each piece of text before it is shown, and how a turn ended, whatever goes wrong."""

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from msgspec.structs import replace

from rag_assistant.answering.live import LiveTurn, last_event
from rag_assistant.answering.receipt import usage_of
from rag_assistant.conversations.prompts import check_sources, mark_cited, note_citations
from rag_assistant.records import Event, Message, Source, Turn, TurnStatus, errors
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.conversations.turns import TurnStore

log = logging.getLogger(__name__)

# After each commit, text is collected for a tick, too short to be noticed, and committed together. A commit takes .8 ms
# of CPU, and a model writes some 100 tokens a second.
TICK_SECONDS = 0.04
RETRY_INTERVAL_SECONDS = 0.5
COMMIT_TIMEOUT_SECONDS = 30.0
KEEP_TIMEOUT_SECONDS = 300.0
LAST_RESORT_INTERVAL_SECONDS = 10.0
# How much of an answer is compared with its sources, and for how many seconds of CPU.
MAX_CHECKED_CHARS, MAX_CHECK_SECONDS = 100_000, 2.0
CHECKED_IN_PART = "Only a part of this long answer was compared with its sources."
NOT_CHECKED = "This answer was interrupted, and not compared with its sources."
NOT_FINISHED = "Something went wrong on the server; see its log for details. Try again."

# Text to be committed, in pieces.
Texts = dict["LiveTurn", list[str]]


class AnswerWriter:
    """Writes answers, their receipts and their endings: everything stored of an answer passes through here."""

    def __init__(self, turns: TurnStore, answers: AnswerLog) -> None:
        self._turns = turns
        self._answers = answers
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._pending: Texts = {}
        self._committing: Texts = {}
        self._is_awaited = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, live: LiveTurn, text: str) -> None:
        """Add text to the next commit, after which it is shown. Raises if an earlier commit failed."""
        with self._changed:
            if live.failure is not None:
                raise live.failure
            self._pending.setdefault(live, []).append(text)
            if self._thread is None or not self._thread.is_alive():  # Threads don't survive a fork.
                self._thread = threading.Thread(target=self._commit_all, name="answer text", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        if live.first_text_seconds is None:  # The first word isn't delayed by a tick.
            self._is_awaited.set()

    def flush(self, live: LiveTurn) -> None:
        """Wait until all text of an answer is committed and shown. Raises StorageFailed, AnswerTakenOver."""
        self._is_awaited.set()
        with self._changed:
            while live in self._pending or live in self._committing:
                self._changed.wait()
        if live.failure is not None:
            raise live.failure

    def _commit_all(self) -> None:
        """Repeatedly commit the new text of all answers in one transaction, then show it."""
        while True:
            with self._changed:
                while not self._pending:
                    self._changed.wait()
                self._committing, self._pending = self._pending, {}
                self._is_awaited.clear()
            try:
                self._commit(self._committing)
            except Exception as error:
                log.exception("The text of answers could not be committed")
                _fail(self._committing, error)
            with self._changed:
                self._committing = {}
                self._changed.notify_all()
            self._is_awaited.wait(TICK_SECONDS)

    def _commit(self, texts: Texts) -> None:
        """Commit some texts and show them; if the database is busy or full, retry for a while."""
        end = time.monotonic() + COMMIT_TIMEOUT_SECONDS
        while texts:
            pieces = [(live.turn.id, live.length, "".join(text)) for live, text in texts.items()]
            try:
                refused = self._answers.append_all(pieces)
            except errors.StorageFailed as error:
                is_over = isinstance(error, errors.StorageDamaged) or time.monotonic() > end
                given_up = {live: text for live, text in texts.items() if is_over or live.call.given_up}
                _fail(given_up, error)
                texts = {live: text for live, text in texts.items() if live not in given_up}
                time.sleep(RETRY_INTERVAL_SECONDS if texts else 0)
                continue
            for live, (turn_id, _, text) in zip(texts, pieces, strict=True):
                if turn_id in refused:
                    live.failure = errors.AnswerTakenOver()
                else:
                    live.add(text)
            return

    def keep_receipt(self, turn: Turn, receipt: dict[str, Any]) -> None:
        """Store the receipt of a request before it is sent."""
        self._turns.keep_receipt(turn, receipt)

    def keep_iteration(self, turn: Turn, messages: Sequence[Message]) -> None:
        """Store one tool iteration: the calls and all their results."""
        self._turns.keep_iteration(turn.id, messages)

    def finish(self, live: LiveTurn, status: TurnStatus, error: tuple[str, str] | None = None) -> Turn:
        """Store the end of a turn, retrying for a while if the disk is full or busy. Raises StorageFailed."""
        text = live.text()
        turn = replace(with_citation_checks(live.turn, text), unseen=not live.followers)
        end = time.monotonic() + KEEP_TIMEOUT_SECONDS
        while True:
            try:
                return self._turns.finish(turn, status, text, usage=usage_of(live.call.replies), error=error)
            except errors.StorageFailed as failure:
                is_over = isinstance(failure, errors.StorageDamaged) or time.monotonic() > end
                if is_over or self._closing.wait(RETRY_INTERVAL_SECONDS):
                    raise

    def fail(self, live: LiveTurn, error: errors.AssistantError) -> Turn:
        """Store a turn that failed, with the text so far. Raises StorageFailed."""
        with suppress(errors.AssistantError):
            self.flush(live)
        status: TurnStatus = "interrupted" if live.text().strip() else "failed"
        if isinstance(error, errors.AnswerStopped):
            status = "stopped"
        # An endpoint's words may repeat the question, and of an unstored one nothing stays, in the log either.
        log.info("%s %s: %s", live.log_name, status, error if live.turn.id > 0 else type(error).__name__)
        named = None if status == "stopped" else (type(error).__name__, str(error))
        # Its confirmation request wasn't shown, or not completely: nothing is pending.
        live.turn = replace(live.turn, waiting=None, retry_after_seconds=error.retry_after_seconds)
        return self.finish(live, status, named)

    def last_resort(self, live: LiveTurn) -> bool:
        """Store only what is committed of a turn, so that its conversation can continue.

        Only the first attempt is waited for; then it is retried until it works, unless the database is damaged. Returns
        whether it is stored; the next start stores the rest.
        """
        lost = errors.StorageFailed("The end of the answer could not be stored; the text shown was saved.")
        while True:
            try:
                turn = self._turns.interrupt(live.turn.id, unchecked, (type(lost).__name__, str(lost)))
                live.finish(last_event(turn))
                return True
            except Exception as error:
                log.exception("Turn %s could not be kept at all", live.turn.id)
                reason = error if isinstance(error, errors.StorageDamaged) else lost
                live.finish(Event("error", {"status": "failed", "error": reason.as_dict()}))
                if reason is error or self._closing.wait(LAST_RESORT_INTERVAL_SECONDS):
                    return False

    def close(self) -> None:
        """Give up what can't be stored now; the next start stores what is committed."""
        self._closing.set()


class StatelessWriter(AnswerWriter):
    """Shows and ends answers as usual, and stores nothing of them."""

    def _commit(self, texts: Texts) -> None:
        """Show some texts, a tick's together: each write to a socket costs more than its words."""
        for live, text in texts.items():
            live.add("".join(text))

    def keep_receipt(self, turn: Turn, receipt: dict[str, Any]) -> None:
        """Do nothing."""

    def keep_iteration(self, turn: Turn, messages: Sequence[Message]) -> None:
        """Do nothing."""

    def finish(self, live: LiveTurn, status: TurnStatus, error: tuple[str, str] | None = None) -> Turn:
        error_type, message = error or (None, None)
        return replace(
            with_citation_checks(live.turn, live.text()),
            status=status,
            answer=live.text(),
            usage=usage_of(live.call.replies),
            error_type=error_type,
            error_message=message and errors.cause_alone(message),
            finished_at=datetime.now(UTC),
        )

    def last_resort(self, live: LiveTurn) -> bool:
        """Tell followers that the turn is over: nothing of it was to be stored."""
        live.finish(Event("error", {"status": "failed", "error": errors.ModelError(NOT_FINISHED).as_dict()}))
        return True


def with_citation_checks(turn: Turn, text: str) -> Turn:
    """Return a turn with its citations and doubts about them; if that takes too long, of a part, with a note."""
    turn = replace(turn, notes=tuple(note for note in turn.notes if note != NOT_CHECKED))
    end = time.thread_time() + MAX_CHECK_SECONDS
    marked = replace(turn, sources=mark_cited(turn, text))
    checked = check_sources(marked, text[:MAX_CHECKED_CHARS], lambda: time.thread_time() > end)
    is_part = bool(checked) and (len(text) > MAX_CHECKED_CHARS or time.thread_time() > end)
    notes = (*note_citations(turn, text), *([CHECKED_IN_PART] if is_part else []))
    return replace(turn, sources=checked, notes=notes, search=turn.search and _rested_on(turn.search, checked))


def _rested_on(search: dict[str, Any], sources: Sequence[Source]) -> dict[str, Any]:
    """Return a search without disagreements of passages that an answer with citations doesn't rest on."""
    cited = {one.n for one in sources if one.cited}
    if not cited or "disagreements" not in search:
        return search
    of_cited = [one for one in search["disagreements"] if cited & set(chain(*one["passages"]))]
    others = {name: part for name, part in search.items() if name != "disagreements"}
    return others | ({"disagreements": of_cited} if of_cited else {})


def unchecked(turn: Turn, text: str) -> Turn:
    """Return a turn with its citations, and a note that they weren't checked."""
    return replace(turn, sources=mark_cited(turn, text), notes=(*turn.notes, *([NOT_CHECKED] if turn.sources else [])))


def _fail(texts: Texts, error: Exception) -> None:
    """Mark the answers of some texts as impossible to commit."""
    unexpected = errors.StorageFailed("The text of the answer could not be stored; see the server log.")
    for live in texts:
        live.failure = error if isinstance(error, errors.AssistantError) else unexpected
