"""One turn, top to bottom: check, accept, load, retrieve, fit, prompt, stream, keep.

A turn is a row, not a connection: ``ask`` returns when the question is committed, the answer is written by a thread of
its own, and ``follow`` shows what is committed to whoever wants to see it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from rag_assistant.choices import Choices, choices_for
from rag_assistant.collaborators import Answers, Conversations, Documents, Endpoint, Models, Retriever, Turns
from rag_assistant.errors import (
    AssistantError,
    DocumentNotFound,
    InvalidRequest,
    ModelError,
    ModelFailed,
    Overloaded,
    QuestionDoesNotFit,
)
from rag_assistant.history import FittedHistory, HistoryPolicy, count_message, estimate_tokens, fit_history
from rag_assistant.keeping import AnswerKeeper
from rag_assistant.live import LiveTurn, LiveTurns
from rag_assistant.prompt import (
    clearly_relevant,
    number_sources,
    plain_question_message,
    question_message,
    title_for,
)
from rag_assistant.records import Conversation, Event, Message, ModelReply, Question, Source, Turn, Unset
from rag_assistant.settings import Settings
from rag_assistant.turn_view import history_figures, last_event, replay, start_event, state_event

log = logging.getLogger(__name__)

BUILT_IN_SENTENCES = 5
SECONDS_BETWEEN_LOOKS_ELSEWHERE = 0.3


class Assistant:
    """Answers questions. Everything that a caller can be refused is refused by ``ask``, before anything is stored."""

    def __init__(
        self,
        *,
        conversations: Conversations,
        turns: Turns,
        answers: Answers,
        documents: Documents,
        retriever: Retriever,
        models: Models,
        settings: Callable[[], Settings],
        most_running: int,
    ) -> None:
        self._conversations = conversations
        self._turns = turns
        self._keeper = AnswerKeeper(turns, answers)
        self._documents = documents
        self._retriever = retriever
        self._models = models
        self._settings = settings
        self._live = LiveTurns(most_running)

    def ask(self, question: Question) -> Turn:
        """Commit a question and begin to answer it; return its turn.

        A known Idempotency-Key returns the turn that it gave before, with no second answer. Raises InvalidRequest,
        DocumentNotFound, ConversationNotFound, ConversationBusy, IdempotencyKeyReused, Overloaded, StorageFailed.
        """
        self._check(question)
        return self._begin(lambda: self._turns.accept(question, title_for(question.text)))

    def retry(self, turn_id: int) -> Turn:
        """Answer a failed turn once more, and return it. Raises TurnNotFound, TurnNotRetryable, Overloaded."""
        return self._begin(lambda: (self._turns.run_again(turn_id), True))

    def follow(self, turn_id: int, after: int = 0) -> Iterator[Event | None]:
        """Return the events of a turn from character ``after`` of its answer on; ``None`` is a heartbeat.

        Raises TurnNotFound at once, not at the first event.
        """
        live = self._live.get(turn_id)
        if live is not None:
            return live.follow(after)
        return self._follow_stored(self._turns.get(turn_id), after)

    def _follow_stored(self, turn: Turn, after: int) -> Iterator[Event | None]:
        """Yield the events of a turn from what is stored; one that another process answers is read again and again."""
        position = after
        while turn.status == "running":
            if turn.answer[position:]:
                yield Event("token", {"text": turn.answer[position:]}, len(turn.answer))
                position = len(turn.answer)
            else:
                yield None
            time.sleep(SECONDS_BETWEEN_LOOKS_ELSEWHERE)
            turn = self._turns.get(turn.id)
        yield from replay(turn, position)

    def wait(self, turn_id: int) -> Turn:
        """Return a turn when it has ended. Raises TurnNotFound."""
        for _event in self.follow(turn_id):
            pass
        return self._turns.get(turn_id)

    def stop(self, turn_id: int) -> Turn:
        """End a running answer, keep what is written, and return the turn; one that has ended stays as it is."""
        live = self._live.get(turn_id)
        if live is None:
            return self._turns.get(turn_id)
        live.call.stop()
        return self.wait(turn_id)

    def recover(self) -> None:
        """End the turns that a crash left running, with what was committed of them."""
        for turn in self._turns.interrupt_unfinished():
            log.warning(
                "Turn %s was interrupted by the end of the server; %s characters are kept.", turn.id, len(turn.answer)
            )

    def close(self) -> None:
        """Stop every running answer; what is written is kept."""
        for live in self._live.all():
            live.call.stop()

    # --- refuse before the first byte

    def _check(self, question: Question) -> None:
        longest = self._settings().max_question_chars
        if not question.text.strip():
            raise InvalidRequest("The question is empty; it must have at least one visible character.")
        if len(question.text) > longest:
            raise InvalidRequest(f"The question has {len(question.text)} characters; the limit is {longest}.")
        for document_id in self._documents.missing(question.document_ids):
            raise DocumentNotFound(document_id)

    def _begin(self, accept: Callable[[], tuple[Turn, bool]]) -> Turn:
        if not self._live.reserve():
            raise Overloaded(self._live.limit)
        live = LiveTurn(self._models.new_call())
        try:
            turn, new = accept()
        except BaseException:
            self._live.give_back()
            raise
        if not new:
            self._live.give_back()
            return turn
        self._live.enter(turn.id, live)
        try:
            threading.Thread(target=self._run, args=(turn, live), name=f"turn {turn.id}", daemon=True).start()
        except RuntimeError as error:
            self._live.leave(turn.id, live)
            overloaded = Overloaded(self._live.limit)
            self._keeper.fail(turn, live, overloaded)
            raise overloaded from error
        return turn

    # --- answer

    def _run(self, turn: Turn, live: LiveTurn) -> None:
        """Answer a turn and keep how it ended, whatever happens."""
        try:
            live.finish(last_event(self._answer(turn, live)))
        except Exception:
            log.exception("Turn %s could not be kept as it ended", turn.id)
            live.finish(self._keeper.last_resort(turn, live))
        finally:
            self._live.leave(turn.id, live)

    def _answer(self, turn: Turn, live: LiveTurn) -> Turn:
        """The way of one question, from the stored turn to the stored answer."""
        usage = None
        try:
            settings = self._settings()
            live.tell_state(state_event(turn, "preparing", "Waiting for the model."))
            endpoint = self._models.endpoint(live.call)
            choices = choices_for(endpoint, settings)
            turn = replace(turn, model=endpoint.model)

            live.tell_state(state_event(turn, "searching", "Searching your documents."))
            turn = replace(turn, sources=self._retrieve(turn, endpoint, choices))
            turn, fitted = self._fit(turn, endpoint, choices, settings)
            turn = self._announce(turn, fitted, endpoint, live)

            for reply in self._stream(turn, fitted, endpoint, choices, live):
                if reply.text:
                    self._keeper.commit(turn, live, reply.text)
                    live.add(reply.text)
                usage = _usage_of(reply) or usage
            if not live.text().strip():
                raise ModelFailed("The model gave an empty answer. Your question was kept; try again.")
        except AssistantError as error:
            return self._keeper.fail(turn, live, error)
        except Exception:
            log.exception("Turn %s failed", turn.id)
            hidden = ModelError("An error of the server kept it from answering; its log says more. Try again.")
            return self._keeper.fail(turn, live, hidden)
        return self._keeper.keep(turn, "completed", live.text(), usage=usage)

    def _retrieve(self, turn: Turn, endpoint: Endpoint, choices: Choices) -> tuple[Source, ...]:
        found = self._retriever.search(turn.question, choices.passages, turn.document_ids)
        return number_sources(clearly_relevant(found) if endpoint.built_in else found)

    def _fit(self, turn: Turn, endpoint: Endpoint, choices: Choices, settings: Settings) -> tuple[Turn, FittedHistory]:
        """Read the window, and no more, and fit it with instructions and question into what the model takes.

        Where the question does not fit with its passages, the worst of them go; the turn comes back with the others.
        """
        conversation = self._conversations.get(turn.conversation_id)
        limit = _history_limit(turn, conversation, settings)
        past = self._turns.window(turn, limit)
        policy = HistoryPolicy(
            max_history_turns=limit,
            token_budget=choices.request_tokens,
            merge_system_messages=settings.merge_system_messages,
            unread_turns=conversation.visible_turns - len(past),
            unread_messages=conversation.visible_messages - sum(len(earlier.messages) for earlier in past),
            turn_numbers=(*(earlier.number for earlier in past), turn.number),
        )
        before: list[Message] = [
            {"role": "system", "content": choices.instructions},
            *(message for earlier in past for message in earlier.messages),
        ]
        while True:
            try:
                return turn, fit_history([*before, self._question(turn, endpoint, bool(past))], policy)
            except QuestionDoesNotFit:
                if not turn.sources:
                    raise
                turn = replace(turn, sources=turn.sources[:-1])

    def _question(self, turn: Turn, endpoint: Endpoint, after_history: bool) -> Message:
        """Return the question with its passages, in the form that the model can make use of."""
        if not endpoint.built_in:
            return question_message(turn.question, turn.sources)
        texts = [source.text for source in turn.sources]
        sentences = self._retriever.sentences(turn.question, texts, BUILT_IN_SENTENCES)
        return plain_question_message(turn.question, sentences, after_history)

    def _announce(self, turn: Turn, fitted: FittedHistory, endpoint: Endpoint, live: LiveTurn) -> Turn:
        """Keep the receipt of what is about to be sent, tell everyone who follows, and return the turn with it."""
        question_only = count_message({"role": "user", "content": turn.question}, estimate_tokens)
        passage_tokens = fitted.receipt.tokens["question"] - question_only
        turn = replace(turn, history=history_figures(fitted.receipt, passage_tokens, endpoint.context_tokens))
        receipt = {
            "model": endpoint.model,
            "built_in": endpoint.built_in,
            "messages": fitted.messages,
            "left_out": [asdict(run) for run in fitted.receipt.left_out],
        }
        self._turns.keep_receipt(turn, receipt)
        if fitted.history_trimmed:
            log.info(
                "Turn %s: history trimmed: %s of %s turns kept, %s messages left out (%s).",
                turn.id,
                fitted.receipt.turns_kept,
                fitted.receipt.turns_total,
                fitted.receipt.messages_dropped,
                fitted.receipt.reason,
            )
        live.begin(start_event(turn))
        return turn

    def _stream(
        self, turn: Turn, fitted: FittedHistory, endpoint: Endpoint, choices: Choices, live: LiveTurn
    ) -> Iterator[ModelReply]:
        return self._models.stream(
            endpoint,
            fitted.messages,
            live.call,
            lambda sentence: live.tell_state(state_event(turn, "waiting", sentence)),
            choices.answer_tokens,
            choices.temperature,
        )


def _history_limit(turn: Turn, conversation: Conversation, settings: Settings) -> int | None:
    """Return the window in force: the request's, else the conversation's, else the settings'."""
    for said in (turn.max_history_turns, conversation.max_history_turns):
        if not isinstance(said, Unset):
            return said
    return settings.max_history_turns


def _usage_of(reply: ModelReply) -> dict[str, Any] | None:
    """Return the figures that the provider reported, with the reason why it ended."""
    if reply.finish_reason is None and reply.usage is None:
        return None
    return (reply.usage or {}) | {"finish_reason": reply.finish_reason}
