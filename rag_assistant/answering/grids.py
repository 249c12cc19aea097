"""Fill tables over documents: each cell is an ordinary question about one document, of which only the result is stored.

One thread gives out cells; SQL says which process asks which, so that what is left is taken up at the next start.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from rag_assistant.answering.assistant import Assistant
from rag_assistant.answering.cell_values import options_for, result_of
from rag_assistant.answering.live import LiveTurn
from rag_assistant.answering.quoting import NEEDS_MODEL, NEEDS_THE_MODEL
from rag_assistant.answering.request import WITHOUT_PASSAGES
from rag_assistant.answering.writer import NOT_FINISHED
from rag_assistant.conversations.model_profile import PASSAGES, min_limit
from rag_assistant.conversations.viewed_history import SentHistory
from rag_assistant.history import estimate_tokens
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import ClaimedCell, Estimate, Grid, Question, Scope, errors
from rag_assistant.runtime.background import JobQueue
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.grids import MAX_ATTEMPTS, CellQueue, GridStore

log = logging.getLogger(__name__)

POLL_INTERVAL_SECONDS, MAX_POLL_SHARE, RETRY_SECONDS = 2.0, 0.05, 10.0
# The share of the server's, or a person's, answers at once and per minute that is left to people.
FREE_SHARE = 0.25
# What may pass by itself: such a cell is asked again.
MAY_PASS = ("ModelUnreachable", "ModelBusy", "ModelTimedOut", "AnswerInterrupted")


def with_estimate(grid: Grid, settings: Settings, tokens_each: float | None) -> Grid:
    """Return a table with what starting it will take; an answer takes ``tokens_each``, ``None`` without a model."""
    done = grid.cells.get("done", 0)
    left = sum(grid.cells.values()) - done or grid.outdated + grid.quoted * (tokens_each is not None)
    pace = 60 / _left_to_cells(settings.max_questions_per_minute) if grid.owner else 0
    each = grid.used_seconds / done / grid.cells_at_once if done else 0
    seconds = round(left * max(each, pace)) if each else None
    requests = 0 if tokens_each is None else left
    return replace(grid, estimate=Estimate(left, requests, round(requests * (tokens_each or 0)), seconds))


def passages_sent(settings: Settings) -> int:
    """Return how many passages a request has at most."""
    return PASSAGES if settings.max_passages is None else settings.max_passages


def _left_to_cells(limit: int | None) -> int:
    return 1_000_000 if limit is None else max(1, int(limit * (1 - FREE_SHARE)))


class GridRunner(Struct):
    """Asks queued cells, as the owner of their table: ``assistant_of`` returns a person's assistant.

    ``resting`` has until when nothing is asked for a table.
    """

    queue: CellQueue
    grids: GridStore
    assistant_of: Callable[[int | None], Assistant]
    models: LanguageModels
    process: Callable[[], str]
    settings: Callable[[], Settings]
    resting: dict[int, float] = field(default_factory=dict)
    jobs: JobQueue = field(default_factory=lambda: JobQueue("cells"))

    def __post_init__(self) -> None:
        self.jobs.offer("look", self._look)
        self.jobs.offer("poll", self._poll)

    def start(self) -> None:
        """Look for cells from now on, in a thread."""
        self.jobs.add("poll")
        self.jobs.start()

    def wake(self) -> None:
        """Look at once for cells to be asked."""
        self.jobs.add("look")

    def close(self) -> None:
        """Ask no more cells."""
        self.jobs.stop()

    def _poll(self, _job: int) -> None:
        """Take up the cells of dead processes and add those of new documents: not after each cell, as asking does.

        However many tables watch, that takes a small share of the time.
        """
        start = time.monotonic()
        self.wake()
        try:
            for grid_id in self.queue.take_up():
                self.grids.fit(grid_id)
        finally:
            pause = (time.monotonic() - start) / MAX_POLL_SHARE
            self.jobs.add("poll", delay_seconds=max(POLL_INTERVAL_SECONDS, pause))

    def _look(self, _job: int) -> None:
        while (cell := self._next()) is not None:
            with self._ending(cell):
                live = self._ask(cell)
                threading.Thread(target=self._finish, args=(cell, live), name="cell", daemon=True).start()

    def _next(self) -> ClaimedCell | None:
        """Claim the next cell, unless people need the rest of the answers at once."""
        running, limit = self.assistant_of(None).running
        if running >= max(1, limit * (1 - FREE_SHARE)):
            return None
        settings = self.settings()
        limits = settings.max_running_answers_per_person, settings.max_questions_per_minute
        at_once, per_minute = map(_left_to_cells, limits)
        passages = passages_sent(settings) if self.models.connected else None
        resting = [number for number, until in list(self.resting.items()) if until > time.monotonic()]
        return self.queue.claim(self.process(), at_once, per_minute, resting, passages)

    def _finish(self, cell: ClaimedCell, live: LiveTurn) -> None:
        with self._ending(cell):
            live.ended.wait()
            self._keep(cell, live)
            self.wake()

    @contextmanager
    def _ending(self, cell: ClaimedCell) -> Iterator[None]:
        """Store how a cell ended if it can't be asked or stored."""
        try:
            yield
        except (errors.Busy, errors.LimitReached, errors.StorageFailed) as error:
            self.resting[cell.key[0]] = time.monotonic() + (error.retry_after_seconds or RETRY_SECONDS)
            self.queue.end(cell, "queued", attempts=cell.attempts - 1, asked_at=None)
        except errors.DocumentNotFound:  # It was moved to the trash, or is no longer shared.
            self.queue.end(cell, "empty", asked_at=None)
        except errors.AssistantError as error:
            self.queue.end(cell, "failed", error=str(error))
        except Exception:
            log.exception("A cell of table %s was not answered", cell.key[0])
            self.queue.end(cell, "failed", error=NOT_FINISHED)

    def _ask(self, cell: ClaimedCell) -> LiveTurn:
        options = options_for(cell.column.type, min_limit(cell.max_tokens, self.settings().max_answer_tokens))
        question = Question(cell.column.question, scope=Scope((cell.key[1],)), on_overflow="trim", options=options)
        sent = SentHistory([{"role": "user", "content": question.text}])
        return self.assistant_of(cell.person_id).ask_stateless(question, sent)

    def _keep(self, cell: ClaimedCell, live: LiveTurn) -> None:
        turn, receipt, usage = live.turn, live.receipt or {}, live.turn.usage or {}
        tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
        if not tokens and turn.status == "completed" and turn.history is not None and not receipt.get("quotes"):
            tokens = turn.history["tokens"]["total"] + estimate_tokens(turn.answer)
        unanswered = turn.answer if turn.answer in (NEEDS_MODEL, NEEDS_THE_MODEL) else None
        error = turn.error_message or unanswered or (WITHOUT_PASSAGES if WITHOUT_PASSAGES in turn.notes else None)
        if turn.status != "completed" or error:
            again = turn.error_type in MAY_PASS and cell.attempts < MAX_ATTEMPTS
            if again:
                self.resting[cell.key[0]] = time.monotonic() + (turn.retry_after_seconds or RETRY_SECONDS)
            self.queue.end(cell, "queued" if again else "failed", tokens=tokens, error=error or NOT_FINISHED)
            return
        seconds, body = (datetime.now(UTC) - turn.created_at).total_seconds(), receipt.get("request", {})
        sent = {"answer": turn.answer} | {name: body[name] for name in ("messages", "response_format") if name in body}
        result = asdict(replace(result_of(turn, cell.column), sha256=cell.sha256, tokens=tokens or None))
        self.queue.end(cell, "done", tokens=tokens, result=result, error=None, seconds=seconds, receipt=sent)
