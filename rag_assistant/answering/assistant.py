"""The life of a question: refuse or accept it, answer it in its own thread, and stream it to followers.

A turn is a row, not a connection: ``ask`` returns when the question is committed, a separate thread writes the answer,
and ``follow`` yields what is committed to any number of readers.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import partial

from msgspec.structs import replace

from rag_assistant.accounts.limits import PersonalLimits
from rag_assistant.answering.answer import answer, refuse_undecided
from rag_assistant.answering.live import (
    HEARTBEAT_INTERVAL_SECONDS,
    LiveTurn,
    LiveTurns,
    last_event,
    stateless_turn,
    stored_events,
)
from rag_assistant.answering.request import SearchResult
from rag_assistant.answering.task import Dependencies
from rag_assistant.answering.tools import is_confirmation
from rag_assistant.answering.writer import unchecked, with_citation_checks
from rag_assistant.conversations.pictures import check_pictures
from rag_assistant.conversations.prompts import title_for
from rag_assistant.conversations.summary_lines import LEAD_INSTEAD, LEAD_WANTED
from rag_assistant.conversations.viewed_history import SentHistory
from rag_assistant.conversations.window import rules_for
from rag_assistant.records import Conversation, Event, Question, Turn, Unset, errors
from rag_assistant.records.validation import INVALID_CHARACTER, storable
from rag_assistant.runtime.telemetry.metrics import Metrics
from rag_assistant.runtime.telemetry.steps import step, watching
from rag_assistant.runtime.telemetry.steps import turn_id as current_turn_id
from rag_assistant.storage.processes import Signals

log = logging.getLogger(__name__)

MAX_QUESTION_CHARS = 8000
# How often to check that a follower's person is still signed in.
WATCH_INTERVAL_SECONDS = 2.0
# How long to wait for another process to end its answer; if it has died, its lease has expired by then.
STOP_TIMEOUT_SECONDS = 20.0
# How long a shutdown waits for all answers together to be stored.
CLOSE_TIMEOUT_SECONDS = 5.0


class Assistant:
    """Answers questions. ``ask`` refuses whatever can be refused before anything is stored.

    With a person's ``limits``, only that person's turns are accessible, also among the shared ``live`` ones.
    """

    def __init__(
        self, live: LiveTurns, deps: Dependencies, signals: Signals, limits: PersonalLimits | None = None
    ) -> None:
        self._live = live
        self._deps = deps
        self._turns = deps.turns
        self._signals = signals
        self._limits = limits

    def ask(self, question: Question) -> Turn:
        """Commit a question and start answering it; return its turn.

        A known Idempotency-Key returns its earlier turn, without a second answer. Raises InvalidRequest,
        DocumentNotFound, ConversationNotFound, ConversationBusy, IdempotencyKeyReused, NothingWaits,
        OverflowDecisionNeeded, Overloaded, StorageFailed.
        """
        earlier = self._turns.by_idempotency_key(question)
        if earlier is not None:
            return earlier
        self._check(question)
        question = self._with_what_it_confirms(question)
        return self._begin(partial(self._turns.accept, question, title_for(question.text)), question)

    def ask_stateless(self, question: Question, sent: SentHistory) -> LiveTurn:
        """Start answering a question after the turns sent along; store nothing, and return the live turn.

        Raises InvalidRequest, DocumentNotFound, OverflowDecisionNeeded, Overloaded.
        """
        self._check(question)
        deps, conversation = self._deps, sent.conversation
        deps = replace(deps, history=sent, tools=deps.tools.without_confirmations(), writer=deps.stateless)
        turn_id = next(self._live.stateless_ids)
        turn = replace(stateless_turn(turn_id, question, conversation), iterations=sent.iterations)
        live, search_result = LiveTurn(turn), None
        with self.reserved() as (live.place, unused):
            if rules_for(conversation, deps.settings(), turn).on_overflow == "ask":
                search_result = refuse_undecided(live, conversation, deps)
            self._live.enter(turn.id, live)
            unused.pop_all()
        self._start(live, deps, partial(answer, live, conversation, deps, search_result=search_result))
        return live

    def retry(self, turn_id: int, quotes: bool = False) -> Turn:
        """Answer a failed turn again, by the model or ``quotes``. Raises TurnNotFound, TurnNotRetryable, Overloaded."""
        return self._begin(partial(self._turns.retry, turn_id), quotes=quotes, lead=LEAD_INSTEAD)

    def regenerate(self, turn_id: int, quotes: bool = False) -> Turn:
        """Regenerate the last answer of a conversation, by the model or ``quotes``; the current answer is kept.

        Raises TurnNotFound, TurnNotRegenerable, ConversationBusy, Overloaded.
        """
        return self._begin(partial(self._turns.regenerate, turn_id), quotes=quotes, lead=LEAD_WANTED)

    def follow(self, turn_id: int, after: int = 0) -> Iterator[Event | None]:
        """Return a turn's events from character ``after`` on; ``None`` is a heartbeat. Raises TurnNotFound at once."""
        live = self._live_turn(turn_id)
        if live is not None:
            return self.follow_live(live, after)
        self._turns.get(turn_id)
        return self._follow_stored(turn_id, after)

    def follow_live(self, live: LiveTurn, after: int = 0) -> Iterator[Event | None]:
        """Return the events of a turn answered here; see ``follow``."""
        return live.follow(after, HEARTBEAT_INTERVAL_SECONDS if self._limits is None else WATCH_INTERVAL_SECONDS)

    def _follow_stored(self, turn_id: int, after: int) -> Iterator[Event | None]:
        """Yield a stored turn's events, read again at each signal until its process, or a survivor, has ended it."""
        position = after
        with self._signals.awaiting(turn_id) as wait:
            while (turn := self._turns.get(turn_id)).status == "running":
                if turn.answer[position:]:
                    yield Event("token", {"text": turn.answer[position:]}, len(turn.answer))
                    position = len(turn.answer)
                else:
                    yield None
                wait()
        yield from stored_events(turn, position)

    def wait(self, turn_id: int) -> Turn:
        """Return a turn when it has ended. Raises TurnNotFound."""
        for _event in self.follow(turn_id):
            pass
        return self._turns.get(turn_id)

    def stop(self, turn_id: int) -> Turn:
        """Stop a running answer, keep its text, and return the turn; a finished one is unchanged.

        Another process's answer is stopped there; it is still ``running`` if that process doesn't respond.
        """
        live = self._live_turn(turn_id)
        if live is not None:
            live.call.stop()
            return self.wait(turn_id)
        if self._turns.request_stop(turn_id):
            self._signals.tell_stop(turn_id)
            end = time.monotonic() + STOP_TIMEOUT_SECONDS
            for _event in self.follow(turn_id):
                if time.monotonic() > end:
                    break
        return self._turns.get(turn_id)

    def stop_here(self, turn_id: int) -> None:
        """Stop an answer of this process at a person's request through another one."""
        with self._live.beginning:
            live = self._live.get(turn_id)
        if live is not None:
            live.call.stop()

    def look_for_stops(self) -> None:
        """Stop the answers of this process that were stopped through another one."""
        if self._live.all():
            for turn_id in self._turns.stops_requested():
                self.stop_here(turn_id)

    def recover(self) -> None:
        """Take over the turns and other work of processes that died."""
        self._deps.conversations.clear_operations()
        self.take_over()

    def take_over(self) -> None:
        """End the turns of dead processes with what was committed of them."""
        ended = self._turns.interrupt_unfinished(unchecked)
        for turn in ended:
            log.warning(
                "Turn %s was interrupted by the end of the server; %s characters are kept.", turn.id, len(turn.answer)
            )
        if any(turn.sources for turn in ended):
            threading.Thread(target=self._check_citations, args=(ended,), name="citation checks", daemon=True).start()

    def _check_citations(self, ended: Sequence[Turn]) -> None:
        """Compare interrupted answers with their sources; one that can't be keeps its note that it wasn't."""
        for turn_id in (turn.id for turn in ended if turn.sources):
            try:
                turn = self._turns.get(turn_id)
                checked = with_citation_checks(turn, turn.answer)
                self._turns.keep_checks(turn, checked.sources, checked.notes)
            except errors.AssistantError as error:
                log.warning("Turn %s was not compared with its sources: %s", turn_id, error)

    def give_up_running(self) -> None:
        """Interrupt every running answer: this process was declared dead, and others end its turns."""
        for live in self._live.all():
            live.call.interrupt()

    def close(self) -> None:
        """Interrupt every running answer, and wait briefly until its text is stored."""
        running = self._live.all()
        self.give_up_running()
        end = time.monotonic() + CLOSE_TIMEOUT_SECONDS
        for live in running:
            live.ended.wait(max(0.0, end - time.monotonic()))
        self._deps.writer.close()

    # --- refuse before the first byte

    def _check(self, question: Question) -> None:
        if storable(question.text) != question.text:
            raise errors.InvalidRequest(f"The question {INVALID_CHARACTER}")
        if not question.text.strip():
            raise errors.InvalidRequest("The question is empty; it must have at least one visible character.")
        if len(question.text) > MAX_QUESTION_CHARS:
            raise errors.InvalidRequest(
                f"The question has {len(question.text)} characters; the limit is {MAX_QUESTION_CHARS}."
            )
        model, offered = question.options.model, self._deps.settings().models_offered
        if model not in (None, *offered):
            raise errors.InvalidRequest(
                f'The model "{model}" is not offered here. Offered: {", ".join(offered) or "none"}.'
            )
        check_pictures(question.images, taken=self._deps.settings().model_images and self._deps.models.connected)
        if not isinstance(question.scope, Unset):
            self._deps.documents.check_scope(question.scope)

    def _with_what_it_confirms(self, question: Question) -> Question:
        """Return the question with the turn whose confirmation it answers: named by the caller, or the one before.

        Raises NothingWaits if the named turn awaits none, and InvalidRequest for an answer that is neither yes nor no.
        """
        if question.conversation_id is None or question.edits_turn is not None:
            if question.confirms_turn is not None:
                raise errors.InvalidRequest("confirms_turn needs the conversation_id of that turn, and no edits_turn.")
            return question
        confirmation = is_confirmation(question.text)
        if question.confirms_turn is not None:
            asking = self._turns.get(question.confirms_turn)
            if asking.waiting is None or asking.conversation_id != question.conversation_id:
                raise errors.NothingWaits(question.confirms_turn)
            if confirmation is None:
                raise errors.InvalidRequest(
                    f'Turn {asking.number} asks for yes or no; the answer was "{question.text}".'
                )
        elif confirmation is not None:
            last = self._turns.page(question.conversation_id, 1)
            if last and last[0].waiting is not None:
                return replace(question, confirms_turn=last[0].id)
        return question

    def _refuse_undecided(self, question: Question) -> SearchResult | None:
        """Refuse a question that would leave turns out if a person wants to decide that. Nothing is stored.

        Return the search result, if there was a search. Raises OverflowDecisionNeeded, ConversationNotFound,
        ConversationBusy.
        """
        # For an edited question's branch, that was decided when it was first asked.
        if question.conversation_id is None or question.confirms_turn is not None or question.edits_turn is not None:
            return None
        conversation = self._deps.conversations.get(question.conversation_id)
        # Pictures are loaded from what is stored, and nothing is.
        turn = stateless_turn(0, replace(question, images=()), conversation)
        if rules_for(conversation, self._deps.settings(), turn).on_overflow != "ask":
            return None
        if any(last.status == "running" for last in self._turns.page(conversation.id, 1)):
            raise errors.ConversationBusy(conversation.id)
        return refuse_undecided(LiveTurn(turn), conversation, self._deps)

    @property
    def running(self) -> tuple[int, int]:
        """Return how many answers this process is writing, and the limit."""
        return len(self._live.all()), self._live.limit

    def _live_turn(self, turn_id: int) -> LiveTurn | None:
        """Return a turn that is answered here. Raises TurnNotFound."""
        if self._limits is not None:
            self._turns.get(turn_id)
        live = self._live.get(turn_id)
        if live is None and self._turns.get(turn_id).status == "running":
            with self._live.beginning:
                live = self._live.get(turn_id)
        return live

    def _begin(
        self,
        accept: Callable[[], tuple[Turn, Conversation | None]],
        question: Question | None = None,
        *,
        quotes: bool = False,
        lead: str = "",
    ) -> Turn:
        """Accept a turn, unless its ``question`` is refused, and answer it, if ``accept`` returns its conversation."""
        deps = self._deps
        with self.reserved(asks_model=not quotes) as (place, unused):
            search_result = None if question is None else self._refuse_undecided(question)
            with self._live.beginning:
                turn, conversation = accept()
                if conversation is None:
                    return turn
                live = LiveTurn(turn)
                live.place, live.lead = place, lead if quotes and deps.models.connected else ""
                self._live.enter(turn.id, live)
                unused.pop_all()
        self._start(live, deps, partial(answer, live, conversation, deps, quotes=quotes, search_result=search_result))
        return turn

    @contextmanager
    def reserved(self, *, asks_model: bool = True) -> Iterator[tuple[int | None, ExitStack]]:
        """Reserve a place for a turn; give its number for the person's limits, and what releases it if it is unused.

        Raises Overloaded, UnderMaintenance, and what the limits raise.
        """
        if self._deps.settings().maintenance:
            raise errors.UnderMaintenance
        if asks_model and self._deps.models.connected:
            self._deps.models.refuse_beyond_limits()
        place = self._limits.take_question() if self._limits is not None else None
        with ExitStack() as unused:
            unused.callback(self._release, place)
            self._live.reserve()
            unused.callback(self._live.release)
            yield place, unused

    def _release(self, place: int | None) -> None:
        if self._limits is not None and place is not None:
            self._limits.release_question(place)

    def _start(self, live: LiveTurn, deps: Dependencies, answering: Callable[[], Turn]) -> None:
        """Answer a turn in its own thread. Raises Overloaded if there is none."""
        try:
            # The answer inherits the request's context.
            run = partial(copy_context().run, self._run, live, deps, answering)
            threading.Thread(target=run, name=f"turn {live.turn.id}", daemon=True).start()
        except RuntimeError as error:
            overloaded = errors.Overloaded(self._live.limit)
            self._run(live, deps, lambda: deps.writer.fail(live, overloaded))
            raise overloaded from error

    def _run(self, live: LiveTurn, deps: Dependencies, answering: Callable[[], Turn]) -> None:
        """Answer a turn, store its end whatever happens, and tell its followers."""
        stored, turn_id = True, live.turn.id
        try:
            try:
                with measured(deps.metrics, live):
                    live.turn = turn = answering()
                    note_ending(deps.metrics, turn, live)
            finally:
                self._release(live.place)  # Whoever sees the end may ask again at once.
            live.finish(last_event(turn))
        except Exception:
            log.exception("Turn %s could not be kept as it ended", turn_id)
            stored = deps.writer.last_resort(live)
        finally:
            self._live.leave(turn_id, live, stored=stored)
            self._signals.tell_end(turn_id)


@contextmanager
def measured(metrics: Metrics, live: LiveTurn) -> Iterator[None]:
    """Measure an answer; an exception counts as an interrupted turn."""
    current_turn_id.set(live.turn.id)
    watching.set(metrics.note_step)
    with step("turn"):
        try:
            yield
        except Exception as error:
            metrics.turns.labels("interrupted", type(error).__name__).inc()
            raise


def note_ending(metrics: Metrics, turn: Turn, live: LiveTurn) -> None:
    """Record how a turn ended, and its cost."""
    history = turn.history or {}
    metrics.turns.labels(turn.status, turn.error_type or "").inc()
    if history.get("turns_dropped") or history.get("endpoint"):
        metrics.trims.labels(history["reason"]).inc()
    if live.first_text_seconds is not None:
        metrics.first_text.observe(live.first_text_seconds)
