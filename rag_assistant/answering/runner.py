"""The way of one question, from the stored turn to the stored answer: prepare, make room, send, call tools, keep.

``Runner`` is one such way. It reads from top to bottom in ``answer``; what surrounds it (who may ask, threads, who
follows) is in assistant.py.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rag_assistant.answering.quoting import instead_of_quotes, note_of_failure
from rag_assistant.answering.recall import with_recall
from rag_assistant.answering.receipt import log_what_was_left_out
from rag_assistant.answering.request import BuiltRequest, Draft, build_request
from rag_assistant.answering.tools import DELETES, said_yes, with_results
from rag_assistant.answering.turn_events import start_event, state_event, step_events
from rag_assistant.conversations.model_profile import ModelProfile, profile_for, settings_for
from rag_assistant.conversations.window import load_window, rules_for
from rag_assistant.llm.calibration import estimated_tokens
from rag_assistant.llm.client import Part, Retrying
from rag_assistant.llm.endpoint import QUOTES_ENDPOINT
from rag_assistant.llm.tool_calls import may_be_calls
from rag_assistant.records import ModelReply, ModelRequest
from rag_assistant.records.errors import (
    AssistantError,
    ContextTooLong,
    ModelError,
    ModelFailed,
    QuestionDoesNotFit,
    ToolsRefused,
)
from rag_assistant.runtime.telemetry.steps import measured

if TYPE_CHECKING:
    from rag_assistant.answering.dependencies import Dependencies
    from rag_assistant.answering.stream import LiveTurn
    from rag_assistant.llm.endpoint import Endpoint
    from rag_assistant.records import Conversation, Turn

log = logging.getLogger(__name__)

# How many rounds of tool calls a model may make for one answer.
MAX_TOOL_ITERATIONS = 8
# How much of a request that was refused as too long is sent again, at most.
SHARE_OF_REFUSED = 0.8
WITHOUT_TOOLS = "This model does not use tools, so your documents were searched for it instead."
NO_TOOL_CALLED = "The model called no tool, so your documents were searched for it instead."
EMPTY_ANSWER = "The model returned an empty answer. Your question was saved; try again."
ONLY_THOUGHTS = "The model thought but wrote no answer. If max_answer_tokens is set, raise it; or try again."
NO_ANSWER = "The model called tools {} times without giving an answer. Ask a narrower question."


ToolCalls = tuple[dict[str, Any], ...]


class _NoToolCalled(Exception):
    """The model answered without calling a tool, and a search has found something."""


class Runner:
    """Answers one turn. ``live`` is who follows it; ``quotes``: with quotes, whatever model is connected.

    Four fields change on the way: the turn as it will be stored, the draft of the next request, the bodies of the
    requests that were sent, and whether quotes answer. Everything else is passed on as a value.
    """

    def __init__(self, turn: Turn, live: LiveTurn, deps: Dependencies, quotes: bool = False) -> None:
        self._live = live
        self._deps = deps
        self._settings = settings_for(deps.settings(), turn.options)
        self._quotes = quotes
        self._turn = turn
        self._draft: Draft
        self._sent: list[dict[str, Any]] = []

    def answer(self, conversation: Conversation) -> Turn:
        """Answer the turn in its conversation, as that was when the turn was accepted, and keep how it ended."""
        try:
            if self._turn.confirms_turn is not None:
                return self._carry_out(self._turn.confirms_turn)
            self._prepare(conversation)
            if self._draft.profile.endpoint.quotes and (text := self._instead_of_quotes()) is not None:
                return self._say(text)
            self._make_room()
            self._converse()
        except AssistantError as error:
            if self._may_quote_instead(error):
                self._quotes = True
                self._note(note_of_failure(error))
                return self.answer(conversation)
            return self._deps.writer.fail(self._turn, self._live, error)
        except Exception:
            log.exception("Turn %s failed", self._turn.id)
            unexpected = ModelError("Something went wrong on the server; see its log for details. Try again.")
            return self._deps.writer.fail(self._turn, self._live, unexpected)
        return self._deps.writer.keep(self._turn, self._live, "completed")

    def _instead_of_quotes(self) -> str | None:
        # What was said before is only looked for where the documents have nothing.
        return instead_of_quotes(self._build().draft if self._draft.found.nothing else self._draft)

    def _may_quote_instead(self, error: AssistantError) -> bool:
        """Tell whether quotes take the place of a model that failed before its first word and its first tool."""
        wanted = self._settings.when_model_fails == "quote" and not self._quotes
        begun = self._live.length or self._turn.iterations
        return wanted and isinstance(error, ModelError) and not begun

    def refuse_undecided(self, conversation: Conversation) -> None:
        """Refuse a question that would leave out turns which nobody has agreed to leave out.

        Raises OverflowDecisionNeeded with the choices and the figures; also what the search and the model raise.
        """
        self._prepare(conversation, is_trial=True)
        self._deps.overflow.refuse_undecided(self._build(), self._turn.number, self._settings)

    # --- prepare: who answers, by which rules, with which window and which passages

    def _prepare(self, conversation: Conversation, is_trial: bool = False) -> None:
        if self._deps.models.connected and not self._quotes:
            self._tell("preparing", "Waiting for the model.")
        profile = self._profile(is_trial)
        rules = rules_for(conversation, self._settings, self._turn)
        window = load_window(self._deps.history, conversation, self._turn.number, rules, self._settings)
        self._turn = replace(self._turn, model=profile.endpoint.model)
        self._draft = Draft(self._turn.question, window, profile, pictures=self._deps.history.pictures(self._turn))
        if not profile.tools:
            if self._settings.retrieval_mode == "agent" and not profile.endpoint.quotes:
                self._note(WITHOUT_TOOLS)
            self._search(is_trial)

    def _profile(self, is_trial: bool = False, without_tools: bool = False) -> ModelProfile:
        endpoint = QUOTES_ENDPOINT if self._quotes else self._endpoint(is_trial)
        if without_tools:
            endpoint = replace(endpoint, takes_tools=False)
        ratio, tools = self._deps.models.calibration.ratio(endpoint), self._deps.tools.schemas
        return profile_for(endpoint, self._settings, ratio, tools, self._turn.options.instructions)

    def _endpoint(self, is_trial: bool) -> Endpoint:
        models = self._deps.models
        try:
            return models.endpoint(self._live.call)
        except ModelError:
            if not is_trial:
                raise
            return models.known_endpoint()  # One that is down is no reason to lose a question: its answer tells that.

    def _search(self, is_trial: bool = False) -> None:
        call = None if is_trial else self._live.call
        draft = self._draft
        found = self._deps.search.find(self._turn, draft.window, draft.profile, self._settings, self._tell, call)
        self._take(replace(draft, found=found))

    # --- make room: what was decided for the case that turns would be left out

    def _make_room(self) -> None:
        if self._draft.window.rules.on_overflow in ("trim", "ask"):
            return
        draft, note = self._deps.overflow.make_room(
            self._build(),
            self._turn.number,
            self._settings,
            self._live.call,
            lambda sentence: self._tell("compacting", sentence),
        )
        self._take(draft)
        if note is not None:
            self._note(note)

    # --- build: from the draft to a request that fits

    @measured("fit")
    def _build(self) -> BuiltRequest:
        """Return the request of the draft, with what of earlier turns comes back for the question."""
        draft = self._draft
        if draft.iterations:
            built = build_request(draft)
        else:
            built = build_request(replace(draft, related=(), recalled=(), evidence=()))
            built = with_recall(built, self._turn, self._deps.history, self._deps.search, self._settings)
        self._take(built.draft)
        return built

    def _take(self, draft: Draft) -> None:
        """Go on with a draft; what it found is what the turn shows as its sources."""
        self._draft = draft
        if not draft.profile.tools:
            self._turn = replace(self._turn, sources=draft.sources, search=draft.found.search)

    # --- converse: send, call tools, send again

    def _converse(self) -> None:
        rounds, refused = 0, None
        while True:
            may_call = bool(self._draft.profile.tools) and rounds < MAX_TOOL_ITERATIONS
            try:
                text, calls = self._send(may_call)
            except QuestionDoesNotFit as error:
                raise refused or error from error
            except ContextTooLong as error:
                if refused is not None or not self._sent:
                    raise
                refused = error
                self._make_shorter(error)
                continue
            except ToolsRefused:
                if self._draft.iterations:  # It took them before.
                    raise
                self._note(WITHOUT_TOOLS)
                self._draft = replace(self._draft, profile=self._profile(without_tools=True))
                self._search()
                continue
            except _NoToolCalled:
                self._note(NO_TOOL_CALLED)
                continue
            if not calls or not may_call:
                if not text.strip():  # What it said before a call is no answer.
                    thought = self._live.call.replies and self._live.call.replies[-1].thought
                    empty = ONLY_THOUGHTS if thought else EMPTY_ANSWER
                    raise ModelFailed(NO_ANSWER.format(rounds) if calls and rounds else empty)
                return
            rounds += 1
            self._call_tools(text, calls)
            if self._turn.waiting is not None:
                return

    def _send(self, may_call: bool) -> tuple[str, ToolCalls]:
        """Send one request, keep and show the text as it comes, and return it with the tools that the model calls."""
        endpoint = self._draft.profile.endpoint
        # How the model counts may have been learnt from the request before.
        profile = replace(self._draft.profile, token_ratio=self._deps.models.calibration.ratio(endpoint))
        self._take(replace(self._draft, profile=profile))
        built = self._build()
        request = built.as_request(may_call)
        self._announce(built, request)
        searched = self._searched_instead() if may_call else None

        text, reply = "", ModelReply()  # Text is held until it is clear that it may be shown.
        shown = ""
        gap = "\n\n" if self._live.length else ""
        try:
            with closing(self._parts_of(built, request)) as parts:
                for part in parts:
                    if isinstance(part, Retrying):
                        self._tell("waiting", part.why)
                    elif isinstance(part, ModelReply):
                        reply = part
                    else:
                        text += part
                        if shown or not (searched is not None or (may_call and may_be_calls(text))):
                            self._write(gap + text)
                            shown, text, gap = shown + text, "", ""
            self._learn(reply, request)
            text, calls = self._told_apart(text, reply.tool_calls)
            if searched is not None and text.strip() and not calls:
                text = ""
                self._take(searched)
                self._deps.models.tool_habits.learn_unused(endpoint)
                raise _NoToolCalled
        finally:
            if text:
                self._write(gap + text)
        self._deps.writer.flush(self._live)
        return shown + text, calls

    def _told_apart(self, text: str, calls: ToolCalls) -> tuple[str, ToolCalls]:
        """Return what of a text is said, and the tools that are called, in it or beside it."""
        written = () if calls else self._deps.tools.written_out(text)
        if calls or written:
            self._deps.models.tool_habits.learn_call(self._draft.profile.endpoint)
        return "" if written or (calls and may_be_calls(text)) else text, calls or written

    def _parts_of(self, built: BuiltRequest, request: ModelRequest) -> Generator[Part]:
        """Yield what comes of a request: of a model, or of the documents."""
        endpoint = built.draft.profile.endpoint
        if endpoint.quotes:
            yield from self._deps.search.quoted(built.draft, self._live.call, model_failed=self._quotes)
        else:
            yield from self._deps.models.stream(endpoint, request, self._live.call)

    def _announce(self, built: BuiltRequest, request: ModelRequest) -> None:
        """Keep the receipt of what is about to be sent; tell everyone who follows."""
        window = built.draft.window
        for sentence in built.notes:
            self._note(sentence)
        self._turn = replace(self._turn, history=built.figures)
        self._sent.append(request.as_body(built.draft.profile.endpoint.model))
        self._deps.writer.keep_receipt(self._turn, built, self._sent)
        log_what_was_left_out(self._turn.id, built)
        self._live.begin(start_event(self._turn))
        trimming = [run for run in built.fitted.receipt.left_out if run.trimmed]
        if trimming and self._turn.on_overflow == window.rules.on_overflow != "ask":
            self._deps.history.decide(window.conversation.id, max(run.last_turn for run in trimming))

    def _learn(self, reply: ModelReply, request: ModelRequest) -> None:
        counted = (reply.usage or {}).get("prompt_tokens")
        if isinstance(counted, int):
            self._deps.models.calibration.learn(self._draft.profile.endpoint, estimated_tokens(request), counted)

    # --- when the endpoint cannot do what was asked

    def _make_shorter(self, error: ContextTooLong) -> None:
        """Learn what the endpoint takes, so that the request is fitted once more."""
        estimate = estimated_tokens(ModelRequest.from_body(self._sent[-1]))
        calibration = self._deps.models.calibration
        calibration.learn_refusal(self._draft.profile.endpoint, estimate, error.limit, error.prompt_tokens)
        profile = self._profile(without_tools=not self._draft.profile.tools)
        # Whatever is known now, what was refused is not sent again.
        cap = int(estimate * profile.token_ratio * SHARE_OF_REFUSED)
        self._take(replace(self._draft, profile=profile, token_cap=cap))
        log.info("Turn %s: %s It is fitted again.", self._turn.id, error)

    def _searched_instead(self) -> Draft | None:
        """Return the draft with passages in the place of tools, for a model that may not look them up by itself.

        ``None`` for one that has called a tool before, and where the documents have nothing.
        """
        if self._draft.iterations or self._deps.models.tool_habits.has_called(self._draft.profile.endpoint):
            return None
        profile = self._profile(without_tools=True)
        found = self._deps.search.find(self._turn, self._draft.window, profile, self._settings, self._tell, None)
        return replace(self._draft, profile=profile, found=found) if found.sources else None

    # --- tools

    def _call_tools(self, text: str, calls: ToolCalls) -> None:
        """Run what the model calls after saying ``text``, keep the iteration, and show it.

        What needs a person's word ends the answer.
        """
        names = ", ".join(dict.fromkeys(call["function"]["name"] for call in calls))
        self._tell("calling", f"Calling {names}.")
        results = self._deps.tools.run_all(calls, self._turn.scope)
        self._live.call.refuse_stopped()
        turn, messages = with_results(self._turn, text, calls, results)
        self._deps.writer.keep_iteration(turn, messages)
        steps_before = len(turn.steps)
        self._turn = turn = replace(turn, iterations=(*turn.iterations, *messages))
        self._draft = replace(self._draft, iterations=(*self._draft.iterations, *messages))
        for step in step_events(turn, turn.steps[steps_before:]):
            self._live.add_step(step)
        asks = next((result.asks for result in results if result.asks is not None), None)
        if asks is not None:
            self._show(("\n\n" if self._live.length else "") + asks)

    def _carry_out(self, asking_turn: int) -> Turn:
        """Do, or leave, what an earlier turn asked a person about; no model is needed for that."""
        self._live.call.refuse_stopped()
        asked = self._deps.turns.get(asking_turn)
        if asked.waiting is None:
            return self._say("You already answered that, so nothing was done.")
        if said_yes(self._turn.question):
            return self._say(self._deps.tools.carry_out(asked.waiting))
        return self._say("Nothing was deleted." if asked.waiting["tool"] == DELETES else "Nothing was done.")

    # --- tell, keep and show

    def _say(self, text: str) -> Turn:
        """Answer with a text of ours: no model is asked, and nothing of what was found is used."""
        self._turn = replace(self._turn, model=None, sources=())
        self._live.begin(start_event(self._turn))
        self._show(text)
        return self._deps.writer.keep(self._turn, self._live, "completed")

    def _show(self, text: str) -> None:
        """Keep text of the answer, then show it."""
        self._write(text)
        self._deps.writer.flush(self._live)

    def _write(self, text: str) -> None:
        self._deps.writer.write(self._turn, self._live, text)

    def _tell(self, state: str, sentence: str) -> None:
        """Tell who follows what is awaited."""
        self._live.tell_state(state_event(self._turn, state, sentence))

    def _note(self, sentence: str) -> None:
        """Put a sentence about how the answer came about beside it, once."""
        if sentence not in self._turn.notes:
            self._turn = replace(self._turn, notes=(*self._turn.notes, sentence))
