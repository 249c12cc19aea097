"""Questions, from the first check to the last event: refuse, accept, answer in a thread of its own, let people follow.

A turn is a row, not a connection: ``ask`` returns when the question is committed, the answer is written by a thread of
its own, and ``follow`` shows what is committed to whoever wants to see it.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from copy import copy as shallow_copy
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rag_assistant.answering.observing import observed
from rag_assistant.answering.runner import Runner
from rag_assistant.answering.stream import HEARTBEAT_INTERVAL_SECONDS, LiveTurn, LiveTurns
from rag_assistant.answering.tools import said_yes
from rag_assistant.answering.turn_events import last_event, replay
from rag_assistant.answering.unkept import unkept_turn, without_store
from rag_assistant.conversations.pictures import check_pictures
from rag_assistant.conversations.prompts import mark_cited, title_for
from rag_assistant.conversations.scope import check_scope
from rag_assistant.conversations.window import rules_for
from rag_assistant.records import Conversation, Event, Question, Turn, Unset
from rag_assistant.records.errors import ConversationBusy, InvalidRequest, NothingWaits, Overloaded
from rag_assistant.records.validation import INVALID_CHARACTER, storable

if TYPE_CHECKING:
    from rag_assistant.answering.dependencies import Dependencies
    from rag_assistant.conversations.viewed_history import SentHistory
    from rag_assistant.storage.documents.documents import DocumentStore
    from rag_assistant.storage.signals import Signals

log = logging.getLogger(__name__)

MAX_QUESTION_CHARS = 8000
# Who follows for somebody who may be signed out meanwhile looks up so often.
WATCH_INTERVAL_SECONDS = 2.0
# How long to wait for another process to end its answer; if it has died, its lease has run out by then.
STOP_TIMEOUT_SECONDS = 20.0
# How long the end of the server waits for all answers together to be kept.
CLOSE_TIMEOUT_SECONDS = 5.0


class Assistant:
    """Answers questions. Everything that a caller can be refused is refused by ``ask``, before anything is stored."""

    def __init__(self, documents: DocumentStore, max_running: int, deps: Dependencies, signals: Signals) -> None:
        self._documents = documents
        self._live = LiveTurns(max_running)
        # A turn is committed a moment before it is entered as live; who holds this sees both or neither.
        self._beginning = threading.Lock()
        self._deps = deps
        self._signals = signals
        # Below every id that a database gives.
        self._unkept_ids = itertools.count(-1, -1)
        self._conversations = deps.conversations
        self._turns = deps.turns
        self._sees_all_turns = True
        self._take_question: Callable[[], None] = lambda: None

    def over(self, documents: DocumentStore, deps: Dependencies, take_question: Callable[[], None]) -> Assistant:
        """Return the same assistant for somebody who sees less: of the running turns, too.

        ``take_question`` may refuse what is about to be answered.
        """
        theirs = shallow_copy(self)
        theirs._documents, theirs._deps = documents, deps
        theirs._conversations, theirs._turns = deps.conversations, deps.turns
        theirs._sees_all_turns = False
        theirs._take_question = take_question
        return theirs

    def ask(self, question: Question) -> Turn:
        """Commit a question and begin to answer it; return its turn.

        A known Idempotency-Key returns the turn that it gave before, with no second answer. Raises InvalidRequest,
        DocumentNotFound, ConversationNotFound, ConversationBusy, IdempotencyKeyReused, NothingWaits,
        OverflowDecisionNeeded, Overloaded, StorageFailed.
        """
        known = self._turns.known(question)
        if known is not None:
            return known
        self._check(question)
        question = self._with_what_it_confirms(question)
        return self._begin(
            lambda: self._turns.accept(question, title_for(question.text)), lambda: self._refuse_undecided(question)
        )

    def ask_unkept(self, question: Question, sent: SentHistory) -> LiveTurn:
        """Begin to answer a question behind the turns that came along with it; keep nothing, and return who follows it.

        Raises InvalidRequest, DocumentNotFound, OverflowDecisionNeeded, Overloaded.
        """
        self._check(question)
        deps, turn = without_store(self._deps, sent), unkept_turn(next(self._unkept_ids), question, sent.conversation)
        live = self._reserved()
        try:
            if rules_for(sent.conversation, deps.settings(), turn).on_overflow == "ask":
                Runner(turn, live, deps).refuse_undecided(sent.conversation)
            self._live.enter(turn.id, live)
        except BaseException:
            self._live.give_back()
            raise
        runner = Runner(turn, live, deps)
        self._start(turn, live, deps, lambda: runner.answer(sent.conversation))
        return live

    def retry(self, turn_id: int, quotes: bool = False) -> Turn:
        """Answer a failed turn once more, by the model or with ``quotes``, and return it.

        Raises TurnNotFound, TurnNotRetryable, Overloaded.
        """
        return self._begin(lambda: self._turns.retry(turn_id), quotes=quotes)

    def regenerate(self, turn_id: int) -> Turn:
        """Regenerate the last answer of a conversation, and return its turn; the one that it has is kept.

        Raises TurnNotFound, TurnNotRegenerable, ConversationBusy, Overloaded.
        """
        return self._begin(lambda: self._turns.regenerate(turn_id))

    def follow(self, turn_id: int, after: int = 0) -> Iterator[Event | None]:
        """Return the events of a turn from character ``after`` of its answer on; ``None`` is a heartbeat.

        Raises TurnNotFound at once, not at the first event.
        """
        live = self._live_turn(turn_id)
        if live is not None:
            return self.follow_live(live, after)
        self._turns.get(turn_id)
        return self._follow_stored(turn_id, after)

    def follow_live(self, live: LiveTurn, after: int = 0) -> Iterator[Event | None]:
        """Return the events of a turn that is answered here, as ``follow`` does."""
        seconds = HEARTBEAT_INTERVAL_SECONDS if self._sees_all_turns else WATCH_INTERVAL_SECONDS
        return live.follow(after, seconds)

    def _follow_stored(self, turn_id: int, after: int) -> Iterator[Event | None]:
        """Yield the events of a turn from what is stored; one that another process answers is read at each news of it.

        It ends when that process dies, too: another one ends its turns.
        """
        position = after
        with self._signals.awaiting(turn_id) as wait:
            while (turn := self._turns.get(turn_id)).status == "running":
                if turn.answer[position:]:
                    yield Event("token", {"text": turn.answer[position:]}, len(turn.answer))
                    position = len(turn.answer)
                else:
                    yield None
                wait()
        yield from replay(turn, position)

    def wait(self, turn_id: int) -> Turn:
        """Return a turn when it has ended. Raises TurnNotFound."""
        for _event in self.follow(turn_id):
            pass
        return self._turns.get(turn_id)

    def stop(self, turn_id: int) -> Turn:
        """End a running answer, keep what is written, and return the turn; one that has ended stays as it is.

        One that another process answers is ended there; it is ``running`` still if that process does not answer.
        """
        live = self._live_turn(turn_id)
        if live is not None:
            live.stop()
            return self.wait(turn_id)
        if self._turns.request_stop(turn_id):
            self._signals.tell_stop(turn_id)
            end = time.monotonic() + STOP_TIMEOUT_SECONDS
            for _event in self.follow(turn_id):
                if time.monotonic() > end:
                    break
        return self._turns.get(turn_id)

    def stop_here(self, turn_id: int) -> None:
        """End an answer that this process writes, because a person said so through another one."""
        with self._beginning:
            live = self._live.get(turn_id)
        if live is not None:
            live.stop()

    def look_for_stops(self) -> None:
        """End the answers of this process that were stopped through another one."""
        if self._live.all():
            for turn_id in self._turns.stops_requested():
                self.stop_here(turn_id)

    def recover(self) -> None:
        """Take over what processes left when they died: their turns, and what else they did with conversations."""
        self._conversations.clear_operations()
        self.take_over()

    def take_over(self) -> None:
        """End the turns whose process has died, with what was committed of them."""
        for turn in self._turns.interrupt_unfinished(mark_cited):
            log.warning(
                "Turn %s was interrupted by the end of the server; %s characters are kept.", turn.id, len(turn.answer)
            )

    def give_up_running(self) -> None:
        """Interrupt every running answer: this process was taken for dead, and others end its turns."""
        for live in self._live.all():
            live.call.interrupt()

    def close(self) -> None:
        """Interrupt every running answer, and wait a little until what is written is kept."""
        running = self._live.all()
        self.give_up_running()
        end = time.monotonic() + CLOSE_TIMEOUT_SECONDS
        for live in running:
            live.ended.wait(max(0.0, end - time.monotonic()))
        self._deps.writer.close()

    # --- refuse before the first byte

    def _check(self, question: Question) -> None:
        if storable(question.text) != question.text:
            raise InvalidRequest(f"The question {INVALID_CHARACTER}")
        if not question.text.strip():
            raise InvalidRequest("The question is empty; it must have at least one visible character.")
        if len(question.text) > MAX_QUESTION_CHARS:
            raise InvalidRequest(
                f"The question has {len(question.text)} characters; the limit is {MAX_QUESTION_CHARS}."
            )
        models = self._deps.models
        check_pictures(question.images, taken=self._deps.settings().model_images and models.connected)
        if not isinstance(question.scope, Unset):
            check_scope(self._documents, question.scope)

    def _with_what_it_confirms(self, question: Question) -> Question:
        """Return the question with the turn whose "shall I?" it answers: named by the caller, or the one just before.

        Raises NothingWaits if the named turn asks nothing, and InvalidRequest for an answer that is neither yes nor no.
        """
        if question.conversation_id is None or question.edits_turn is not None:
            if question.confirms_turn is not None:
                raise InvalidRequest("confirms_turn needs the conversation_id of that turn, and no edits_turn.")
            return question
        said = said_yes(question.text)
        if question.confirms_turn is not None:
            asked = self._turns.get(question.confirms_turn)
            if asked.waiting is None or asked.conversation_id != question.conversation_id:
                raise NothingWaits(question.confirms_turn)
            if said is None:
                raise InvalidRequest(f'Turn {asked.number} asks for a yes or a no; the answer is "{question.text}".')
        elif said is not None:
            last = self._turns.page(question.conversation_id, 1)
            if last and last[0].waiting is not None:
                return replace(question, confirms_turn=last[0].id)
        return question

    def _refuse_undecided(self, question: Question) -> None:
        """Refuse a question that would leave turns out, where a person wants to decide that. Nothing is stored.

        Raises OverflowDecisionNeeded, ConversationNotFound, ConversationBusy.
        """
        # What the branch of an edited question leaves out was decided when the question was asked at first.
        if question.conversation_id is None or question.confirms_turn is not None or question.edits_turn is not None:
            return
        conversation = self._conversations.get(question.conversation_id)
        # Pictures are found by what is stored of them, and nothing is.
        turn = unkept_turn(0, replace(question, images=()), conversation)
        if rules_for(conversation, self._deps.settings(), turn).on_overflow == "ask":
            if any(last.status == "running" for last in self._turns.page(conversation.id, 1)):
                raise ConversationBusy(conversation.id)
            Runner(turn, LiveTurn(self._deps.models.new_call()), self._deps).refuse_undecided(conversation)

    @property
    def running(self) -> tuple[int, int]:
        """How many answers are being written here, and how many may be."""
        return len(self._live.all()), self._live.limit

    def _live_turn(self, turn_id: int) -> LiveTurn | None:
        """Return a turn that is answered here. Raises TurnNotFound."""
        if not self._sees_all_turns:
            self._turns.get(turn_id)
        live = self._live.get(turn_id)
        if live is None and self._turns.get(turn_id).status == "running":
            with self._beginning:
                live = self._live.get(turn_id)
        return live

    def _begin(
        self,
        accept: Callable[[], tuple[Turn, Conversation | None]],
        refuse: Callable[[], None] = lambda: None,
        *,
        quotes: bool = False,
    ) -> Turn:
        """Let ``refuse`` look at what would be accepted, accept it, and begin to answer it in its conversation.

        ``accept`` gives no conversation with a turn that was accepted before.
        """
        live = self._reserved(asks_model=not quotes)
        try:
            refuse()
            with self._beginning:
                turn, conversation = accept()
                if conversation is not None:
                    self._live.enter(turn.id, live)
        except BaseException:
            self._live.give_back()
            raise
        if conversation is None:
            self._live.give_back()
            return turn
        runner = Runner(turn, live, self._deps, quotes)
        self._start(turn, live, self._deps, lambda: runner.answer(conversation))
        return turn

    def _reserved(self, *, asks_model: bool = True) -> LiveTurn:
        """Return who will follow a turn, with a place for it. Raises Overloaded, and what limits raise."""
        if asks_model and self._deps.models.connected:
            self._deps.models.refuse_beyond_limits()
        self._take_question()
        if not self._live.reserve():
            raise Overloaded(self._live.limit)
        return LiveTurn(self._deps.models.new_call())

    def _start(self, turn: Turn, live: LiveTurn, deps: Dependencies, answer: Callable[[], Turn]) -> None:
        """Answer a turn in a thread of its own. Raises Overloaded if there is none."""
        try:
            # What the request knows of itself, its answer knows.
            run, watched = copy_context().run, lambda: observed(deps.observer, turn, live, answer)
            threading.Thread(
                target=run, args=(self._conclude, turn, live, deps, watched), name=f"turn {turn.id}", daemon=True
            ).start()
        except RuntimeError as error:
            overloaded = Overloaded(self._live.limit)
            self._conclude(turn, live, deps, lambda: deps.writer.fail(turn, live, overloaded))
            raise overloaded from error

    def _conclude(self, turn: Turn, live: LiveTurn, deps: Dependencies, answer: Callable[[], Turn]) -> None:
        """Answer a turn, keep how it ended, whatever happens, and tell all who follow."""
        kept = True
        try:
            live.finish(last_event(answer()))
        except Exception:
            log.exception("Turn %s could not be kept as it ended", turn.id)
            kept = deps.writer.last_resort(turn, live)
        finally:
            self._live.leave(turn.id, live, kept=kept)
            self._signals.tell_text({turn.id})
