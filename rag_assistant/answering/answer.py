"""The path of one question, from the stored turn to the stored answer.

``answer`` is the recipe. A draft passes through it as a frozen value; ``live.turn`` is the turn as known so far, which
is what people see.
"""

import logging
from contextlib import suppress

from msgspec.structs import replace

from rag_assistant.answering import overflow
from rag_assistant.answering.coverage import with_coverage
from rag_assistant.answering.figures import note_unread, with_page_images
from rag_assistant.answering.live import LiveTurn, step_events
from rag_assistant.answering.quoting import instead_of_quotes
from rag_assistant.answering.recall import notes_about, with_recall
from rag_assistant.answering.request import BuiltRequest, Draft, SearchResult, build_request, shown_with
from rag_assistant.answering.search import search_for
from rag_assistant.answering.sending import announce, check_ending, quote_first, say, show, stream
from rag_assistant.answering.task import Dependencies, Task
from rag_assistant.answering.tools import DELETES, is_confirmation, with_results, with_thoughts
from rag_assistant.conversations.model_profile import ModelProfile, profile_for, settings_for
from rag_assistant.conversations.summary_lines import LEAD_INSTEAD, MODEL_LEAD
from rag_assistant.conversations.window import load_window, rules_for
from rag_assistant.llm.calibration import estimated_tokens
from rag_assistant.llm.endpoint import QUOTES_ENDPOINT, Endpoint
from rag_assistant.llm.failures import TAKES_NO_PICTURES
from rag_assistant.records import QUOTES, Conversation, ModelReply, ModelRequest, Turn, errors
from rag_assistant.runtime.telemetry.steps import step

log = logging.getLogger(__name__)

# How many rounds of tool calls a model may make for one answer.
MAX_TOOL_ITERATIONS = 8
# How much of a request refused as too long is sent again, at most.
SHARE_OF_REFUSED = 0.8
WITHOUT_TOOLS = "This model does not use tools, so your documents were searched for it instead."
NOT_SEEN = "The model took no pictures. Pages not seen: {pages}."
NO_TOOL_CALLED = "The model called no tool, so your documents were searched for it instead."


def answer(
    live: LiveTurn,
    conversation: Conversation,
    deps: Dependencies,
    *,
    quotes: bool = False,
    search_result: SearchResult | None = None,
) -> Turn:
    """Answer a turn in its conversation, as of when it was accepted, and return the stored turn.

    ``quotes``: with quotes, whatever model is connected. ``search_result``: what an earlier search found for it.
    """
    task = _task_of(live, deps)
    try:
        try:
            _answer(task, conversation, quotes, search_result)
        except errors.ModelError as error:
            deps.writer.flush(live)
            is_quoted = live.gap == MODEL_LEAD  # And nothing of the model is shown.
            begun = (live.length or live.turn.iterations) and not is_quoted
            # A quote can't replace a caller's own tools or schema.
            if quotes or begun or live.turn.options.needs_model or task.settings.when_model_fails != "quote":
                raise
            live.note(f"{errors.cause_alone(str(error))} Your documents are quoted instead.")
            if is_quoted:
                live.turn = replace(live.turn, model=QUOTES)
            else:
                live.lead = LEAD_INSTEAD
                _answer(task, conversation, quotes=True)
    except errors.AssistantError as error:
        return deps.writer.fail(live, error)
    except Exception:
        log.exception("%s failed", live.log_name)
        unexpected = errors.ModelError("Something went wrong on the server; see its log for details. Try again.")
        return deps.writer.fail(live, unexpected)
    with suppress(errors.StorageFailed):  # A note costs no answer.
        note_unread(task)
    return deps.writer.finish(live, "completed")


def _answer(task: Task, conversation: Conversation, quotes: bool, search_result: SearchResult | None = None) -> None:
    if task.live.turn.confirms_turn is not None:
        return say(task, reply_to_confirmation(task))
    draft = prepare(task, conversation, quotes, search_result)
    if draft.profile.endpoint.quotes:
        # Earlier turns are only searched where the documents have nothing.
        draft = build(draft, task).draft if draft.found.nothing else draft
        text = instead_of_quotes(draft, connected=task.deps.models.connected)
        if text is not None:
            return say(task, text)
    draft = with_page_images(with_coverage(draft, task), task)
    if draft.window.rules.on_overflow not in ("trim", "ask"):
        draft = overflow.make_room(build(draft, task), task)
    return _exchange(task, draft)


def _exchange(task: Task, draft: Draft) -> None:
    """Send requests and run tool calls until there is an answer or a confirmation is needed."""
    live, options, rounds = task.live, task.live.turn.options, 0
    too_long: errors.ModelError | None = None
    while True:
        may_call = bool(draft.profile.tools) and rounds < MAX_TOOL_ITERATIONS
        try:
            built = build(draft, task)
        except errors.QuestionDoesNotFit as error:
            raise too_long or error from error
        draft, request = built.draft, built.as_request(may_call)
        task.sent.append(request.as_body(draft.profile.endpoint.model))
        announce(task, built)
        if draft.profile.small_model and not live.length:
            quote_first(task, built)
        searched = search_instead(draft, task) if may_call else None
        try:
            text, held, reply = stream(task, built, request, is_held=searched is not None, may_shorten=not too_long)
        except errors.ModelError as error:
            draft = without_refused(draft, request, error, task)
            too_long = error if isinstance(error, errors.ContextTooLong) else too_long
            continue
        if live.turn.options is not options:  # Nothing but the schema was wrong with the request.
            task.deps.models.schemaless.add(draft.profile.endpoint.key)
        calls = reply.tool_calls
        if searched is not None and held.strip() and not calls:
            task.deps.models.tool_habits.learn_unused(draft.profile.endpoint)
            live.note(NO_TOOL_CALLED)
            draft = with_page_images(searched, task)
            continue
        show(task, held, is_continued=bool(text))
        if calls and "tools" in draft.profile.fields:
            live.turn = replace(live.turn, tool_calls=calls, thoughts=reply.thoughts)
            return None
        if not calls or not may_call:
            return check_ending(live, text + held, reply, request, rounds if calls else 0)
        rounds += 1
        draft = call_tools(draft, text + held, reply, task)
        if live.turn.waiting is not None:
            return None


def refuse_undecided(live: LiveTurn, conversation: Conversation, deps: Dependencies) -> SearchResult:
    """Refuse a question that would leave out turns without anyone's consent; otherwise return the search result.

    Raises OverflowDecisionNeeded with the choices and the figures; also what the search and the model raise.
    """
    task = _task_of(live, deps)
    draft = prepare(task, conversation, is_trial=True)
    overflow.refuse_undecided(build(draft, task), task)
    return draft.found


# --- prepare: model, settings, window and passages


def _task_of(live: LiveTurn, deps: Dependencies) -> Task:
    """Return a turn's task, with the model and the settings that its question names."""
    settings = settings_for(deps.settings(), live.turn.options)
    if live.turn.options.model is not None:
        deps = replace(deps, models=deps.models.trying(settings))
    return Task(live, deps, settings)


def prepare(
    task: Task,
    conversation: Conversation,
    quotes: bool = False,
    search_result: SearchResult | None = None,
    *,
    is_trial: bool = False,
) -> Draft:
    """Return the draft of an answer's first request. A trial asks no model and needs none."""
    live, deps, settings = task.live, task.deps, task.settings
    if deps.models.connected and not quotes:
        live.tell("preparing", "Waiting for the model.")
    try:
        endpoint = QUOTES_ENDPOINT if quotes else deps.models.endpoint(live.call)
    except errors.ModelError:
        if not is_trial:
            raise
        # An unreachable model is no reason to lose a question: its answer reports that.
        endpoint = deps.models.known_endpoint()
    if endpoint.key in deps.models.schemaless and (fallback := live.turn.options.fallback):
        live.turn = replace(live.turn, options=fallback)
    profile = profile_of(endpoint, conversation, task)
    rules = rules_for(conversation, settings, live.turn)
    window = load_window(deps.history, conversation, live.turn.number, rules, settings)
    live.turn = replace(live.turn, model=endpoint.model)
    pictures = deps.history.pictures(live.turn)
    draft = Draft(live.turn.question, window, profile, iterations=live.turn.iterations, pictures=pictures)
    draft = replace(draft, notes=notes_about(draft, deps))
    if profile.tools:
        return draft
    if settings.retrieval_mode == "agent" and not endpoint.quotes:
        live.note(WITHOUT_TOOLS)
    return search_documents(draft, task, search_result, may_rewrite=not is_trial)


def profile_of(endpoint: Endpoint, conversation: Conversation, task: Task, *, uses_tools: bool = True) -> ModelProfile:
    """Return the model profile for the requests of a turn."""
    endpoint = replace(endpoint, takes_tools=endpoint.takes_tools and uses_tools)
    ratio, tools = task.deps.models.calibration.ratio(endpoint), task.deps.tools.schemas
    return profile_for(endpoint, task.settings, ratio, tools, task.live.turn.options, conversation.project)


def search_documents(
    draft: Draft, task: Task, search_result: SearchResult | None = None, *, may_rewrite: bool = True
) -> Draft:
    """Return the draft with the passages found for its question."""
    draft = replace(draft, found=search_for(draft, task, search_result, may_rewrite=may_rewrite))
    task.live.turn = shown_with(task.live.turn, draft)
    return draft


def search_instead(draft: Draft, task: Task) -> Draft | None:
    """Return the draft with passages instead of tools, for a model that doesn't search by itself.

    ``None`` if it has called a tool before, or if the documents have nothing.
    """
    endpoint = draft.profile.endpoint
    if draft.iterations or task.deps.models.tool_habits.has_called(endpoint):
        return None
    draft = replace(draft, profile=profile_of(endpoint, draft.window.conversation, task, uses_tools=False))
    search_result = search_for(draft, task, may_rewrite=False)
    return replace(draft, found=search_result) if search_result.sources else None


# --- build: from the draft to a request that fits


@step("fit")
def build(draft: Draft, task: Task) -> BuiltRequest:
    """Return the request of a draft, with what is recalled from earlier turns."""
    # The previous request may have taught how the model counts.
    learned, profile = task.deps.models.calibration, draft.profile
    ratio, price = learned.ratio(profile.endpoint), learned.picture_tokens(profile.endpoint, profile.picture_tokens)
    draft = replace(draft, profile=replace(profile, token_ratio=ratio, picture_tokens=price))
    try:
        if draft.iterations:
            return build_request(draft)
        return with_recall(build_request(replace(draft, related=(), recalled=(), evidence=(), past=())), task)
    except errors.QuestionDoesNotFit:
        endpoint = draft.profile.endpoint
        if endpoint.guess is None or endpoint.guess.is_tried or endpoint.guess.is_named:
            raise
    # A guess refuses no question.
    guess, conversation = replace(endpoint.guess, is_tried=True), draft.window.conversation
    endpoint = replace(endpoint, context_tokens=None, guess=guess)
    profile = profile_of(endpoint, conversation, task, uses_tools=bool(draft.profile.tools))
    return build(replace(draft, profile=profile), task)


def without_refused(draft: Draft, request: ModelRequest, error: errors.ModelError, task: Task) -> Draft:
    """Return the draft without what its endpoint refused: a part of its length, tools, pictures, or a schema.

    Raises ``error`` if it says nothing of these, or if that was left out before.
    """
    live, endpoint, conversation = task.live, draft.profile.endpoint, draft.window.conversation
    if isinstance(error, errors.ContextTooLong) and draft.token_cap is None:
        return shortened(draft, request, error, task)
    if isinstance(error, errors.ToolsRefused) and not draft.iterations:
        live.note(WITHOUT_TOOLS)
        draft = replace(draft, profile=profile_of(endpoint, conversation, task, uses_tools=False))
        return with_page_images(search_documents(draft, task), task)
    if isinstance(error, errors.ContextTooLong | errors.ToolsRefused):
        raise error
    if draft.page_images and TAKES_NO_PICTURES.search(str(error)):
        task.deps.models.blind[endpoint.key] = task.deps.settings()
        sources = (one for one in draft.found.sources if one.n in dict(draft.page_images))
        live.note(NOT_SEEN.format(pages=", ".join(f"{one.page} ({one.document})" for one in sources)))
        return replace(draft, page_images=())
    if isinstance(error, errors.ModelRefused) and (fallback := live.turn.options.fallback):
        live.turn = replace(live.turn, options=fallback)
        return replace(draft, profile=profile_of(endpoint, conversation, task))
    raise error


def shortened(draft: Draft, request: ModelRequest, error: errors.ContextTooLong, task: Task) -> Draft:
    """Learn the endpoint's limit, and return the draft to be fitted to it."""
    live, models = task.live, task.deps.models
    estimate, endpoint = estimated_tokens(request), draft.profile.endpoint
    models.calibration.learn_refusal(endpoint, estimate, error.limit, error.prompt_tokens)
    endpoint = models.endpoint(live.call)
    profile = profile_of(endpoint, draft.window.conversation, task, uses_tools=bool(draft.profile.tools))
    log.info("%s: %s It is fitted again.", live.log_name, error)
    # Whatever is known now, a refused request isn't sent again.
    return replace(draft, profile=profile, token_cap=int(estimate * profile.token_ratio * SHARE_OF_REFUSED))


# --- tools


def call_tools(draft: Draft, text: str, reply: ModelReply, task: Task) -> Draft:
    """Run the calls after ``text``, store and show them, and return the draft. The turn waits for confirmation."""
    live, deps, calls = task.live, task.deps, reply.tool_calls
    names = ", ".join(dict.fromkeys(call["function"]["name"] for call in calls))
    live.tell("calling", f"Calling {names}.")
    results = deps.tools.run_all(calls, live.turn.scope, draft.profile.tools)
    live.call.refuse_stopped()
    turn, messages = with_results(live.turn, text, calls, results)
    deps.writer.keep_iteration(turn, messages)
    steps_before = len(turn.steps)
    live.turn = turn = replace(turn, iterations=(*turn.iterations, *messages))
    for called in step_events(turn, turn.steps[steps_before:]):
        live.add_step(called)
    for note in (result.note for result in results if result.note is not None):
        if deps.notes.propose(note, turn.id):
            live.note(f"The model proposes a note: “{note}” Accept or delete it under Notes.")
    asks = next((result.asks for result in results if result.asks is not None), None)
    if asks is not None:
        show(task, asks)
    return replace(draft, iterations=(*draft.iterations, with_thoughts(messages[0], reply), *messages[1:]))


def reply_to_confirmation(task: Task) -> str:
    """Run or drop the action that an earlier turn asked to confirm, and say so, without a model."""
    live, deps = task.live, task.deps
    live.call.refuse_stopped()
    asking = deps.turns.get(live.turn.confirms_turn or 0)
    if asking.waiting is None:
        return "You already answered that, so nothing was done."
    if is_confirmation(live.turn.question):
        return deps.tools.execute_pending(asking.waiting)
    return "Nothing was deleted." if asking.waiting["tool"] == DELETES else "Nothing was done."
