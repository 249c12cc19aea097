"""The way of one question, from the stored turn to the stored answer: look, make room, fit, send, call tools, keep.

``Answering`` is one such way. It reads from top to bottom in ``answer``; what surrounds it (who may ask, threads, who
follows) is in assistant.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rag_assistant.answering.progress import Collaborators, Progress
from rag_assistant.answering.receipt import add_usage, log_what_was_left_out, receipt_of
from rag_assistant.answering.request import as_request, estimated_tokens, figures_of, fit_request
from rag_assistant.answering.search import search_documents
from rag_assistant.answering.stream import LiveTurn
from rag_assistant.answering.tools import said_yes, with_results
from rag_assistant.conversations.compaction import Compaction, Summariser, first_kept_after_compaction
from rag_assistant.conversations.model_profile import choices_for
from rag_assistant.conversations.window import moved_between, rules_for
from rag_assistant.errors import (
    AnswerStopped,
    AssistantError,
    ContextTooLong,
    HistoryChanged,
    ModelError,
    ModelFailed,
    NothingToSummarise,
    OverflowDecisionNeeded,
    QuestionDoesNotFit,
    SummaryRejected,
    ToolsRefused,
)
from rag_assistant.history import OPTIONS, FittedHistory
from rag_assistant.presenters.history import figures_in_words, sentence_about
from rag_assistant.presenters.turns import start_event, state_event, step_events, steps_of
from rag_assistant.records import ModelReply, ModelRequest, Turn

log = logging.getLogger(__name__)

# How much of a request that was refused as too long is sent again, at most.
SHARE_OF_REFUSED = 0.8
WITHOUT_TOOLS = "This model takes no tools: the documents were searched for it instead."
BEYOND_THE_DOCUMENTS = (
    "Nothing in your documents was found for this question. The small built-in model knows nothing beyond them: ask in "
    "other words, add a document, or connect a better model."
)
WITHOUT_SUMMARY = "The summary of older turns did not fit and was left out. Shorten it, or undo it."


class Answering:
    """Answers one turn. ``live`` is who follows it."""

    def __init__(self, turn: Turn, live: LiveTurn, collaborators: Collaborators) -> None:
        self._asked = turn
        self._live = live
        self._with = collaborators
        self._refused: ContextTooLong | None = None

    def answer(self) -> Turn:
        """Answer the turn and keep how it ended."""
        progress: Progress | None = None
        try:
            if self._asked.confirms_turn is not None:
                return self._carry_out(self._asked.confirms_turn)
            progress = self._look(may_ask_model=True)
            if self._is_beyond(progress):
                return self._say(progress.turn, BEYOND_THE_DOCUMENTS)
            self._make_room(progress)
            self._converse(progress)
            if not self._live.text().strip():
                raise ModelFailed("The model gave an empty answer. Your question was kept; try again.")
        except AssistantError as error:
            return self._fail(progress, error)
        except Exception:
            log.exception("Turn %s failed", self._asked.id)
            return self._fail(
                progress, ModelError("An error of the server kept it from answering; its log says more. Try again.")
            )
        return self._with.keeper.keep(progress.turn, "completed", self._live.text(), usage=progress.usage or None)

    def refuse_to_leave_out(self) -> None:
        """Refuse a question that would leave out turns which nobody has agreed to leave out.

        Raises OverflowDecisionNeeded with the choices and the figures; also what the search and the model raise.
        """
        progress = self._look(may_ask_model=False)
        fitted = fit_request(progress, self._with)
        decided = progress.conversation.decided_until
        undecided = [run for run in fitted.receipt.left_out if run.trimmed and run.last_turn > decided]
        if not undecided:
            return
        sentence = sentence_about(undecided, fitted.receipt)
        # The built-in model cannot summarise: what cannot be done is not offered.
        options = {name: does for name, does in OPTIONS.items() if name != "compact" or not progress.endpoint.built_in}
        raise OverflowDecisionNeeded(
            f"{sentence} Say with on_overflow what to do: {', '.join(options)}.",
            {
                "sentence": sentence,
                "figures": figures_in_words(fitted, progress.endpoint.context_tokens),
                "options": options,
                "history": figures_of(progress, fitted, self._with.models.ratio(progress.endpoint)),
            },
        )

    # --- look: who answers, by which rules, with which passages

    def _look(self, may_ask_model: bool) -> Progress:
        turn, live, settings = self._asked, self._live, self._with.settings()
        live.tell_state(state_event(turn, "preparing", "Waiting for the model."))
        endpoint = self._with.models.endpoint(live.call)
        conversation = self._with.conversations.get(turn.conversation_id)
        progress = Progress(
            turn=replace(turn, model=endpoint.model),
            live=live,
            settings=settings,
            conversation=conversation,
            endpoint=endpoint,
            choices=choices_for(endpoint, settings),
            rules=rules_for(conversation, settings, turn),
        )
        if not progress.choices.agent:
            if settings.retrieval == "agent":
                progress.note(WITHOUT_TOOLS)
            search_documents(progress, self._with, may_ask_model)
        return progress

    def _is_beyond(self, progress: Progress) -> bool:
        """Tell whether the built-in model is asked for something of which the documents say nothing.

        It is too small to know anything by itself, and would make something up.
        """
        search = progress.turn.search
        return progress.endpoint.built_in and search is not None and search["found"] == 0

    # --- make room: what was decided for the case that turns would be left out; at most once for an answer

    def _make_room(self, progress: Progress) -> None:
        decision = progress.rules.on_overflow
        if decision in ("trim", "ask"):
            return
        fitted = fit_request(progress, self._with)
        if not fitted.history_trimmed:
            return
        if decision == "continue":
            progress.rules = replace(progress.rules, max_history_turns=None, strategy="window")
            progress.choices = replace(progress.choices, request_tokens=progress.choices.most_tokens)
            progress.note("All earlier turns were sent this once, as far as the model takes them.")
        elif decision == "reset":
            self._begin_afresh(progress)
        else:
            self._compact(progress, fitted)
        progress.past = None
        progress.recalled, progress.has_recalled = (), False

    def _begin_afresh(self, progress: Progress) -> None:
        before = progress.conversation
        progress.conversation = self._with.history.begin_afresh(before.id, "reset", progress.turn.number)
        progress.moved = moved_between(before, progress.conversation, "cleared")
        progress.note("The model began afresh with this question: it saw none of the earlier turns. You can undo that.")

    def _compact(self, progress: Progress, fitted: FittedHistory) -> None:
        before = progress.conversation
        ratio = self._with.models.ratio(progress.endpoint)
        by = Summariser(progress.endpoint, progress.choices, ratio, self._live.call)
        try:
            progress.conversation = Compaction(self._with.conversations, self._with.history, self._with.models).compact(
                before,
                first_kept_after_compaction(fitted, progress.turn.number),
                by,
                lambda sentence: progress.say("compacting", sentence),
                progress.turn.number,
            )
        except (ModelError, SummaryRejected, NothingToSummarise, HistoryChanged) as error:
            progress.note(f"The older turns could not be summarised, so they were left out. {error}")
            return
        finally:
            self._live.call.start_over()
        progress.moved = moved_between(before, progress.conversation, "summarised")
        progress.note("Older turns were summarised for this question. You can read, edit and undo the summary.")

    # --- converse: send, call tools, send again

    def _converse(self, progress: Progress) -> None:
        rounds = 0
        while True:
            may_call = progress.choices.agent and rounds < progress.settings.max_tool_iterations
            try:
                calls = self._send(progress, may_call)
            except ContextTooLong as error:
                self._make_shorter(progress, error)
                continue
            except ToolsRefused as refusal:
                self._do_without_tools(progress, refusal)
                continue
            if not calls or not may_call:
                return
            rounds += 1
            self._call_tools(progress, calls)
            if progress.turn.waiting is not None:
                return

    def _send(self, progress: Progress, may_call: bool) -> tuple[dict[str, Any], ...]:
        """Send one request, keep and show the text as it comes, and return the tools that the model calls."""
        try:
            fitted = fit_request(progress, self._with)
        except QuestionDoesNotFit as error:
            raise self._refused or error from error
        request = as_request(progress, fitted, self._with.tools.schemas, may_call)
        self._announce(progress, fitted, request)
        calls: tuple[dict[str, Any], ...] = ()
        gap = "\n\n" if self._live.length else ""
        for reply in self._stream(progress, request):
            if reply.text:
                self._show(progress, gap + reply.text)
                gap = ""
            calls = reply.tool_calls or calls
            self._take_usage(progress, reply, request)
        if progress.choices.agent and calls and not may_call and not self._live.text().strip():
            raise ModelFailed(
                f"The model called tools {progress.settings.max_tool_iterations} times and gave no answer. "
                "Raise max_tool_iterations, or ask more narrowly."
            )
        return calls

    def _stream(self, progress: Progress, request: ModelRequest) -> Iterator[ModelReply]:
        return self._with.models.stream(
            progress.endpoint, request, self._live.call, lambda sentence: progress.say("waiting", sentence)
        )

    def _announce(self, progress: Progress, fitted: FittedHistory, request: ModelRequest) -> None:
        """Keep the receipt of what is about to be sent; tell everyone who follows."""
        first = not progress.requests
        summary_lost = progress.conversation.summary is not None and not fitted.receipt.summary_sent
        if summary_lost and WITHOUT_SUMMARY not in progress.turn.notes:
            progress.note(WITHOUT_SUMMARY)
        progress.turn = replace(
            progress.turn, history=figures_of(progress, fitted, self._with.models.ratio(progress.endpoint))
        )
        progress.requests.append(request.as_body(progress.endpoint.model))
        self._with.turns.keep_receipt(progress.turn, receipt_of(progress, fitted))
        log_what_was_left_out(progress, fitted)
        if first:
            self._live.begin(start_event(progress.turn))
        trimming = [run for run in fitted.receipt.left_out if run.trimmed]
        if progress.turn.on_overflow not in (None, "ask") and trimming:
            self._with.history.decide(progress.conversation.id, max(run.last_turn for run in trimming))

    def _take_usage(self, progress: Progress, reply: ModelReply, request: ModelRequest) -> None:
        add_usage(progress.usage, reply)
        counted = (reply.usage or {}).get("prompt_tokens")
        if isinstance(counted, int):
            self._with.models.learn(progress.endpoint, estimated_tokens(request), counted)

    # --- when the endpoint cannot do what was asked

    def _make_shorter(self, progress: Progress, error: ContextTooLong) -> None:
        """Take to heart what the endpoint takes, so that the request is fitted once more; a second refusal is final."""
        if self._refused is not None or not progress.requests:
            raise error
        self._refused = error
        estimate = estimated_tokens(ModelRequest.from_body(progress.requests[-1]))
        self._with.models.learn_refusal(progress.endpoint, estimate, error.limit, error.prompt_tokens)
        progress.endpoint = self._with.models.endpoint(self._live.call)
        progress.choices = choices_for(progress.endpoint, progress.settings)
        # Whatever is known now, what was refused is not sent again.
        progress.token_cap = int(estimate * self._with.models.ratio(progress.endpoint) * SHARE_OF_REFUSED)
        log.info("Turn %s: %s It is fitted again.", progress.turn.id, error)

    def _do_without_tools(self, progress: Progress, refusal: ToolsRefused) -> None:
        """Go on as if the documents were always searched: the endpoint takes no tools.

        Raises the refusal where it took them before.
        """
        if progress.iterations:
            raise refusal
        progress.note(WITHOUT_TOOLS)
        progress.endpoint = self._with.models.endpoint(self._live.call)
        progress.choices = choices_for(progress.endpoint, progress.settings)
        search_documents(progress, self._with, may_ask_model=True)

    # --- tools

    def _call_tools(self, progress: Progress, calls: tuple[dict[str, Any], ...]) -> None:
        """Run what the model calls, keep the iteration, and show it. What needs a person's word ends the answer."""
        names = ", ".join(dict.fromkeys(call["function"]["name"] for call in calls))
        progress.say("calling", f"Calling {names}.")
        results = self._with.tools.run_all(calls, progress.turn.scope)
        if self._live.call.stopped:
            raise AnswerStopped("The answer was stopped.")
        turn, said = with_results(progress.turn, calls, results)
        self._with.turns.keep_iteration(turn.id, said)
        before = len(steps_of(turn.iterations))
        progress.turn = turn = replace(turn, iterations=(*turn.iterations, *said))
        progress.iterations += said
        for step in step_events(turn, steps_of(turn.iterations)[before:]):
            self._live.add_step(step)
        asks = next((result.asks for result in results if result.asks is not None), None)
        if asks is not None:
            self._show(progress, ("\n\n" if self._live.length else "") + asks)

    def _carry_out(self, asking_turn: int) -> Turn:
        """Do, or leave, what an earlier turn asked a person about; no model is needed for that."""
        turn = self._asked
        asked = self._with.turns.get(asking_turn)
        if asked.waiting is None:
            text = "That was answered before. Nothing was done."
        elif said_yes(turn.question):
            text = self._with.tools.carry_out(asked.waiting)
        else:
            text = "Nothing was deleted."
        return self._say(turn, text)

    def _say(self, turn: Turn, text: str) -> Turn:
        """Answer with a text of ours: no model is asked."""
        turn = replace(turn, model=None)
        self._live.begin(start_event(turn))
        self._with.keeper.commit(turn, self._live, text)
        self._live.add(text)
        return self._with.keeper.keep(turn, "completed", text)

    # --- keep and show

    def _show(self, progress: Progress, text: str) -> None:
        """Keep text of the answer, then show it."""
        self._with.keeper.commit(progress.turn, self._live, text)
        self._live.add(text)

    def _fail(self, progress: Progress | None, error: AssistantError) -> Turn:
        return self._with.keeper.fail(progress.turn if progress else self._asked, self._live, error)
