"""The way of one question, from the stored turn to the stored answer: look, make room, fit, send, call tools, keep.

``Answering`` is one such way. It reads from top to bottom in ``answer``; what surrounds it (who may ask, threads, who
follows) is in assistant.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Any

import orjson

from rag_assistant.choices import choices_for
from rag_assistant.collaborators import Conversations, History, Models, Retriever, ToolRunner, Turns
from rag_assistant.compaction import Compaction, Summariser, first_kept_after_compaction
from rag_assistant.errors import (
    AnswerStopped,
    AssistantError,
    ContextTooLong,
    ModelError,
    ModelFailed,
    NothingToSummarise,
    OverflowDecisionNeeded,
    QuestionDoesNotFit,
    SummaryRejected,
    ToolsRefused,
)
from rag_assistant.history import (
    OPTIONS,
    FittedHistory,
    count_message,
    estimate_tokens,
    fit_history,
)
from rag_assistant.keeping import AnswerKeeper
from rag_assistant.live import LiveTurn
from rag_assistant.past import Moved, Past, moved_between, read_past, rules_for
from rag_assistant.prompt import (
    clearly_relevant,
    number_sources,
    passages_text,
    plain_question_message,
    question_message,
)
from rag_assistant.records import Message, ModelReply, ModelRequest, RecalledTurn, Turn
from rag_assistant.retrieval.words import query_words
from rag_assistant.settings import Settings
from rag_assistant.tools import said_yes
from rag_assistant.turn_view import history_figures, start_event, state_event, step_events, steps_of

log = logging.getLogger(__name__)

BUILT_IN_SENTENCES = 5
PASSAGES_TEXT = "<passages>\n{}\n</passages>"
# How much of a request is sent again where the model refused it as too long and did not say what it takes.
SHARE_OF_REFUSED = 0.7


@dataclass(frozen=True, slots=True)
class Collaborators:
    """Whom an answer needs."""

    conversations: Conversations
    turns: Turns
    history: History
    retriever: Retriever
    tools: ToolRunner
    models: Models
    keeper: AnswerKeeper
    settings: Callable[[], Settings]


class Answering:
    """Answers one turn. ``live`` is who follows it."""

    def __init__(self, turn: Turn, live: LiveTurn, collaborators: Collaborators) -> None:
        self._turn = turn
        self._live = live
        self._with = collaborators
        self._settings: Settings = collaborators.settings()
        self._past: Past | None = None
        self._moved: Moved | None = None
        self._recalled: tuple[RecalledTurn, ...] = ()
        self._iterations: list[Message] = []
        self._iterations_kept = 0
        self._earlier_requests: list[dict[str, Any]] = []
        self._request: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._token_cap: int | None = None
        self._refitted = False

    def answer(self) -> Turn:
        """Answer the turn and keep how it ended."""
        try:
            if self._turn.confirms_turn is not None:
                return self._carry_out(self._turn.confirms_turn)
            self._look()
            self._make_room()
            self._converse()
            if not self._live.text().strip():
                raise ModelFailed("The model gave an empty answer. Your question was kept; try again.")
        except AssistantError as error:
            return self._with.keeper.fail(self._turn, self._live, error)
        except Exception:
            log.exception("Turn %s failed", self._turn.id)
            hidden = ModelError("An error of the server kept it from answering; its log says more. Try again.")
            return self._with.keeper.fail(self._turn, self._live, hidden)
        return self._with.keeper.keep(self._turn, "completed", self._live.text(), usage=self._usage or None)

    def refuse_to_leave_out(self) -> None:
        """Refuse a question that would leave out turns which nobody has agreed to leave out.

        Raises OverflowDecisionNeeded with the choices and the figures; also what the search and the model raise.
        """
        self._look()
        if self._rules.on_overflow != "ask":
            return
        fitted = self._fit()
        undecided = [
            run for run in fitted.receipt.left_out if run.trimmed and run.last_turn > self._conversation.decided_until
        ]
        if not undecided:
            return
        turns = sum(run.turns for run in undecided)
        places = f"{undecided[0].first_turn} to {undecided[-1].last_turn}"
        raise OverflowDecisionNeeded(
            f"This question would leave out {turns} earlier {'turn' if turns == 1 else 'turns'}, between turn "
            f"{places.replace(' to ', ' and turn ')}. Say with on_overflow what to do: {', '.join(OPTIONS)}.",
            {"options": OPTIONS, "history": self._figures(fitted)},
        )

    # --- look: who answers, by which rules, with which passages

    def _look(self) -> None:
        self._say("preparing", "Waiting for the model.")
        self._endpoint = self._with.models.endpoint(self._live.call)
        self._conversation = self._with.conversations.get(self._turn.conversation_id)
        self._rules = rules_for(self._conversation, self._settings, self._turn)
        wanted = self._settings.retrieval == "agent"
        self._agent = wanted and self._endpoint.takes_tools
        self._turn = replace(self._turn, model=self._endpoint.model)
        self._choices = choices_for(self._endpoint, self._settings, agent=self._agent)
        if wanted and not self._agent:
            self._note("This model takes no tools: the documents were searched for it instead.")
        if not self._agent:
            self._retrieve()

    def _retrieve(self) -> None:
        self._say("searching", "Searching your documents.")
        found = self._with.retriever.search(self._turn.question, self._choices.passages, self._turn.document_ids)
        passages = clearly_relevant(found) if self._endpoint.built_in else found
        self._turn = replace(self._turn, sources=number_sources(passages))

    # --- make room: what happens where turns would be left out

    def _make_room(self) -> None:
        """Do what was decided for the case that turns would be left out: at most once for an answer."""
        decision = self._rules.on_overflow
        if decision == "continue":
            before = self._fit()
            if before.history_trimmed:
                self._rules = replace(self._rules, max_history_turns=None, strategy="window")
                self._choices = replace(self._choices, request_tokens=self._choices.most_tokens)
                self._past = None
                self._note("All earlier turns were sent this once, as far as the model takes them.")
        elif decision in ("compact", "reset"):
            fitted = self._fit()
            if fitted.history_trimmed:
                self._begin_afresh() if decision == "reset" else self._compact(fitted)

    def _begin_afresh(self) -> None:
        before = self._conversation
        self._conversation = self._with.history.begin_afresh(before.id, "reset", self._turn.number)
        self._moved = moved_between(before, self._conversation, "cleared")
        self._past = None
        self._note("The model began afresh with this question: it saw none of the earlier turns. You can undo that.")

    def _compact(self, fitted: FittedHistory) -> None:
        before = self._conversation
        keep_from = first_kept_after_compaction(fitted, self._turn.number)
        by = Summariser(self._endpoint, self._choices, self._live.call)
        try:
            self._conversation = Compaction(self._with.history, self._with.models).compact(
                before, keep_from, by, lambda sentence: self._say("compacting", sentence), self._turn.number
            )
        except AnswerStopped:
            raise
        except (ModelError, SummaryRejected, NothingToSummarise) as error:
            self._note(f"The older turns could not be summarised, so they were left out. {error}")
            return
        self._moved = moved_between(before, self._conversation, "summarised")
        self._past = None
        self._note("Older turns were summarised for this question. You can read, edit and undo the summary.")

    # --- fit: exactly what the model sees

    def _fit(self) -> FittedHistory:
        """Fit the window, and no more, with instructions and question into what the model takes.

        Where the question does not fit with what stands beside it, recalled turns go first, then the worst passages.
        """
        if self._past is None:
            self._past = read_past(
                self._with.history, self._conversation, self._turn.number, self._rules, self._settings, self._moved
            )
        while True:
            try:
                fitted = self._fitted()
                if self._recall(fitted):
                    fitted = self._fitted()
                return fitted
            except QuestionDoesNotFit:
                if self._recalled:
                    self._recalled = self._recalled[:-1]
                elif self._turn.sources and not self._iterations:
                    self._turn = replace(self._turn, sources=self._turn.sources[:-1])
                else:
                    raise

    def _fitted(self) -> FittedHistory:
        if self._past is None:
            raise RuntimeError("The past is read before it is fitted.")
        ratio = self._with.models.ratio(self._endpoint)
        count = estimate_tokens if ratio == 1.0 else lambda text: ceil(estimate_tokens(text) * ratio)
        budgets = [budget for budget in (self._choices.request_tokens, self._token_cap) if budget is not None]
        policy = replace(
            self._past.policy,
            count_tokens=count,
            token_budget=min(budgets, default=None),
            reserved_tokens=count(orjson.dumps(self._with.tools.schemas).decode()) if self._agent else 0,
        )
        system: Message = {"role": "system", "content": self._choices.instructions}
        return fit_history([system, *self._past.messages, self._question(), *self._iterations], policy)

    def _recall(self, fitted: FittedHistory) -> bool:
        """Find those of the left-out turns that the question is about, once; tell whether there are any."""
        wanted = self._settings.history_recall
        left_out = any(
            run.reason in ("turn_limit", "token_limit", "filtered", "summarised") for run in fitted.receipt.left_out
        )
        if not wanted or self._recalled or self._iterations or not left_out:
            return False
        self._recalled = tuple(
            self._with.history.recall(
                self._conversation,
                query_words(self._turn.question),
                self._turn.number,
                fitted.receipt.kept_turns,
                wanted,
            )
        )
        return bool(self._recalled)

    def _question(self) -> Message:
        """Return the question with what stands beside it, in the form that the model can make use of."""
        sources = () if self._iterations else self._turn.sources
        if not self._endpoint.built_in:
            return question_message(self._turn.question, () if self._agent else self._turn.sources, self._recalled)
        texts = [source.text for source in sources]
        sentences = self._with.retriever.sentences(self._turn.question, texts, BUILT_IN_SENTENCES)
        return plain_question_message(self._turn.question, sentences, bool(self._past and self._past.messages))

    # --- converse: send, call tools, send again

    def _converse(self) -> None:
        rounds = 0
        while True:
            may_call = self._agent and rounds < self._settings.max_tool_iterations
            try:
                calls = self._send(self._fit(), may_call)
            except ContextTooLong as error:
                self._make_shorter(error)
                continue
            except ToolsRefused:
                self._do_without_tools()
                continue
            if not calls or not may_call:
                return
            rounds += 1
            self._call_tools(calls)
            if self._turn.waiting is not None:
                return

    def _send(self, fitted: FittedHistory, may_call: bool) -> tuple[dict[str, Any], ...]:
        """Send one request, show and keep the text as it comes, and return the tools that the model calls."""
        request = ModelRequest(
            messages=tuple(fitted.messages),
            max_tokens=self._choices.answer_tokens,
            temperature=self._choices.temperature,
            tools=self._with.tools.schemas if self._agent else (),
            call_tools=may_call,
        )
        self._announce(fitted, request)
        calls: tuple[dict[str, Any], ...] = ()
        before = self._live.length
        for reply in self._stream(request):
            if reply.text:
                gap = "\n\n" if before and self._live.length == before else ""
                self._with.keeper.commit(self._turn, self._live, gap + reply.text)
                self._live.add(gap + reply.text)
            calls = reply.tool_calls or calls
            self._take_usage(reply, request)
        if self._agent and calls and not may_call and not self._live.text().strip():
            raise ModelFailed(
                f"The model called tools {self._settings.max_tool_iterations} times and gave no answer. "
                "Raise max_tool_iterations, or ask more narrowly."
            )
        return calls

    def _stream(self, request: ModelRequest) -> Iterator[ModelReply]:
        return self._with.models.stream(
            self._endpoint, request, self._live.call, lambda sentence: self._say("waiting", sentence)
        )

    def _announce(self, fitted: FittedHistory, request: ModelRequest) -> None:
        """Keep the receipt of what is about to be sent; tell everyone who follows."""
        self._turn = replace(self._turn, history=self._figures(fitted))
        if self._request is not None:
            self._earlier_requests.append(self._request)
        self._request = request.as_body(self._endpoint.model)
        receipt = fitted.receipt
        history = fitted.messages[: len(fitted.messages) - len(self._iterations) - 1]
        self._with.turns.keep_receipt(
            self._turn,
            {
                "built_in": self._endpoint.built_in,
                "request": self._request,
                "earlier_requests": self._earlier_requests,
                "left_out": [asdict(run) for run in receipt.left_out],
                "kept_turns": list(receipt.kept_turns),
                "explanation": receipt.explanation,
                "results_shortened": receipt.results_shortened,
                "results_cut": receipt.results_cut,
                "iterations_kept": receipt.iterations_kept,
                "iterations_dropped": receipt.iterations_dropped,
                "recalled_turns": [turn.number for turn in self._recalled],
                "prefix_messages": len(history),
                "prefix_sha256": sha256(orjson.dumps(history)).hexdigest(),
            },
        )
        self._log(fitted)
        if len(self._earlier_requests) == 0:
            self._live.begin(start_event(self._turn))
        trimming = [run for run in receipt.left_out if run.trimmed]
        if self._turn.on_overflow is not None and trimming:
            self._with.history.decide(self._conversation.id, max(run.last_turn for run in trimming))

    def _log(self, fitted: FittedHistory) -> None:
        receipt = fitted.receipt
        if fitted.history_trimmed:
            log.info(
                "Turn %s: history trimmed: %s of %s turns kept, %s messages left out (%s).",
                self._turn.id,
                receipt.turns_kept,
                receipt.turns_total,
                receipt.messages_dropped,
                receipt.reason,
            )
        if receipt.iterations_dropped:
            total = 1 + len(self._iterations)
            log.info(
                "Turn %s: keeping %s of %s messages, %s iterations, %s left out.",
                self._turn.id,
                total - receipt.iteration_messages_dropped,
                total,
                receipt.iterations_kept,
                receipt.iteration_messages_dropped,
            )

    def _figures(self, fitted: FittedHistory) -> dict[str, Any]:
        ratio = self._with.models.ratio(self._endpoint)
        question_only = ceil(count_message({"role": "user", "content": self._turn.question}, estimate_tokens) * ratio)
        passages = max(0, fitted.receipt.tokens["question"] - question_only)
        recalled = [turn.number for turn in self._recalled]
        return history_figures(fitted, passages, self._endpoint.context_tokens, recalled)

    def _take_usage(self, reply: ModelReply, request: ModelRequest) -> None:
        """Add up what the provider reports of each request, and learn from it how the model counts."""
        if reply.finish_reason is not None:
            self._usage["finish_reason"] = reply.finish_reason
        if reply.usage is None:
            return
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            if isinstance(reply.usage.get(name), int):
                self._usage[name] = self._usage.get(name, 0) + reply.usage[name]
        cached = (reply.usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if isinstance(cached, int):
            self._usage["cached_tokens"] = self._usage.get("cached_tokens", 0) + cached
        self._usage["requests"] = self._usage.get("requests", 0) + 1
        counted = reply.usage.get("prompt_tokens")
        if isinstance(counted, int):
            self._with.models.learn(self._endpoint, estimated_tokens(request), counted)

    # --- when the endpoint cannot do what was asked

    def _make_shorter(self, error: ContextTooLong) -> None:
        """Take to heart what the endpoint takes, so that the request is fitted once more; a second refusal is final."""
        if self._refitted or self._request is None or self._turn.history is None:
            raise error
        self._refitted = True
        sent = self._turn.history["tokens"]["total"]
        if error.prompt_tokens is not None:
            self._with.models.learn(
                self._endpoint, ceil(sent / self._with.models.ratio(self._endpoint)), error.prompt_tokens
            )
        self._endpoint = self._with.models.endpoint(self._live.call)
        self._choices = choices_for(self._endpoint, self._settings, agent=self._agent)
        if error.limit is None:
            self._token_cap = int(sent * SHARE_OF_REFUSED)
        log.info("Turn %s: %s It is fitted again.", self._turn.id, error)

    def _do_without_tools(self) -> None:
        """Go on as if the documents were always searched: the endpoint takes no tools."""
        self._note("This model takes no tools: the documents were searched for it instead.")
        self._agent = False
        self._choices = choices_for(self._endpoint, self._settings)
        self._retrieve()

    # --- tools

    def _call_tools(self, calls: tuple[dict[str, Any], ...]) -> None:
        """Run what the model calls, keep the iteration, and show it. What needs a person's word ends the answer."""
        names = ", ".join(dict.fromkeys(call["function"]["name"] for call in calls))
        self._say("calling", f"Calling {names}.")
        results = self._with.tools.run_all(calls, self._turn.document_ids)
        if self._live.call.stopped:
            raise AnswerStopped("The answer was stopped.")
        said: list[Message] = [{"role": "assistant", "content": None, "tool_calls": list(calls)}]
        asks = None
        for call, result in zip(calls, results, strict=True):
            new = number_sources(result.passages, len(self._turn.sources) + 1)
            self._turn = replace(self._turn, sources=self._turn.sources + new)
            passages = PASSAGES_TEXT.format(passages_text(new)) if new else ""
            text = "\n".join(part for part in (result.text, passages) if part)
            said.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            if result.asks is not None:
                asks = result.asks
                waiting = {"call_id": call["id"], "tool": call["function"]["name"], "arguments": result.arguments}
                self._turn = replace(self._turn, waiting=waiting)
        before = len(steps_of(self._turn.iterations))
        self._with.turns.keep_iteration(self._turn.id, said)
        self._iterations += said
        self._turn = replace(self._turn, iterations=(*self._turn.iterations, *said))
        for step in step_events(self._turn, steps_of(self._turn.iterations)[before:]):
            self._live.add_step(step)
        if asks is not None:
            gap = "\n\n" if self._live.length else ""
            self._with.keeper.commit(self._turn, self._live, gap + asks)
            self._live.add(gap + asks)

    def _carry_out(self, asking_turn: int) -> Turn:
        """Do, or leave, what an earlier turn asked a person about; no model is needed for that."""
        asked = self._with.turns.get(asking_turn)
        self._say("calling", "Doing what you said.")
        if asked.waiting is None:
            text = "That was answered before. Nothing was done."
        elif said_yes(self._turn.question):
            text = self._with.tools.carry_out(asked.waiting)
        else:
            text = "Nothing was deleted."
        self._live.begin(start_event(self._turn))
        self._with.keeper.commit(self._turn, self._live, text)
        self._live.add(text)
        return self._with.keeper.keep(self._turn, "completed", text)

    # --- tell

    def _say(self, state: str, sentence: str) -> None:
        self._live.tell_state(state_event(self._turn, state, sentence))

    def _note(self, sentence: str) -> None:
        self._turn = replace(self._turn, notes=(*self._turn.notes, sentence))


def estimated_tokens(request: ModelRequest) -> int:
    """Return our own estimate of a request, as it is before any correction."""
    schemas = estimate_tokens(orjson.dumps(request.tools).decode()) if request.tools else 0
    return schemas + sum(count_message(message, estimate_tokens) for message in request.messages)
