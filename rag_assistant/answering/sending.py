"""Send a request: the receipt first, then the text as it comes."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import replace

from rag_assistant.answering.live import start_event
from rag_assistant.answering.quoting import instead_of_quotes
from rag_assistant.answering.receipt import log_what_was_left_out, receipt_of
from rag_assistant.answering.request import BuiltRequest, shown_with
from rag_assistant.answering.search import quoted
from rag_assistant.conversations.summary_lines import LEAD_WANTED, MODEL_LEAD, without_quotes
from rag_assistant.history.figures import with_reading
from rag_assistant.llm.client import Retrying, collect
from rag_assistant.llm.reader import PromptProgress
from rag_assistant.llm.tool_calls import may_be_calls
from rag_assistant.records import QUOTES, ModelReply, ModelRequest, Reading, pictures_in, text_in
from rag_assistant.records.errors import AssistantError, ContextTooLong, ModelFailed
from rag_assistant.retrieval.claims import CITATION, strange_figures

if TYPE_CHECKING:
    from rag_assistant.answering.live import LiveTurn
    from rag_assistant.answering.task import Task

EMPTY_ANSWER = "The model returned an empty answer. Your question was saved; try again."
ONLY_THOUGHTS = "The model thought but wrote no answer. If max_answer_tokens is set, raise it; or try again."
ENDINGS = {
    "content_filter": "The content filter of the model's provider ended this answer.",
    "refusal": "The model refused to answer this question.",
    "length": "The answer reached the maximum length of the model server. Raise its context size, or ask for the rest.",
}
MAX_LENGTH = "The answer reached its maximum length of {n} tokens. Raise max_answer_tokens, or ask for the rest."
NO_ENDING = "The model server did not mark this answer as complete. If it breaks off, ask again."
READING_PROMPT = "The model has read {n} of {n1} tokens."
CUT = "The model server read only about {n} of {n1} tokens. Its context is probably {n2} tokens."
STRANGE_FIGURES = "In none of the passages, your question or earlier turns, so check these: {parts}."
UNCITED = "The model cited none of the passages, so compare its answer with the quotes."
REPEATED = "The model repeated itself without end, so its answer was ended."
# An answer is ended if so much of its end is something of up to that length, again and again; how often that is seen.
REPEATED_CHARS, MAX_PERIOD_CHARS, LOOK_EVERY_CHARS = 16_000, 400, 500
MAX_COMPARED_CHARS, MAX_FIGURES_NAMED = 100_000, 10
NO_ANSWER = "The model called tools {} times without giving an answer. Ask a narrower question."


def announce(task: Task, built: BuiltRequest) -> None:
    """Store the receipt before sending; tell all followers."""
    live, window = task.live, built.draft.window
    for sentence in built.notes:
        live.note(sentence)
    cut = (live.turn.history or {}).get("endpoint")
    turn = replace(shown_with(live.turn, built.draft), history=with_reading(built.figures, None, cut))
    live.receipt = receipt_of(built, task.sent)
    task.deps.writer.keep_receipt(turn, live.receipt)
    live.turn = turn
    log_what_was_left_out(live.log_name, built)
    live.begin(start_event(live.turn))
    trimming = [run for run in built.fitted.receipt.left_out if run.trimmed]
    if trimming and live.turn.on_overflow == window.rules.on_overflow != "ask":
        task.deps.history.decide(window.conversation.id, max(run.last_turn for run in trimming))


def stream(
    task: Task, built: BuiltRequest, request: ModelRequest, *, is_held: bool, may_shorten: bool
) -> tuple[str, str, ModelReply]:
    """Send a request and show its text as it arrives. Return the shown text, the held text, and the reply.

    Text is held back if ``is_held``, or while it may become a call. Raises ContextTooLong if the endpoint cut the
    request, nothing of the answer was shown, and the request ``may_shorten``.
    """
    live, deps, endpoint = task.live, task.deps, built.draft.profile.endpoint
    may_call = bool(request.tools) and request.call_tools
    shown, held, reply = "", "", ModelReply("stop")
    end, unseen = "", 0
    try:
        if endpoint.quotes:
            parts = quoted(deps.retriever, built.draft, live.call, live.lead)
        else:
            parts = deps.models.stream(endpoint, request, live.call)
        with closing(parts):
            for part in parts:
                if isinstance(part, Retrying):
                    live.tell("waiting", part.why)
                elif isinstance(part, PromptProgress):
                    sentence = READING_PROMPT.format(n=f"{part.read:,}", n1=f"{part.total:,}")
                    live.tell("reading_request", sentence, read_tokens=part.read, request_tokens=part.total)
                elif isinstance(part, ModelReply):
                    reply = part
                else:
                    held += part
                    if shown or not (is_held or (may_call and may_be_calls(held))):
                        deps.writer.write(live, held if shown else _gap(live) + held)
                        shown, held = shown + held, ""
                    end, unseen = (end + part)[-REPEATED_CHARS:], unseen + len(part)
                    if unseen >= LOOK_EVERY_CHARS and not endpoint.quotes:
                        unseen = 0
                        if repeats_itself(end):
                            live.note(REPEATED)
                            break
    except AssistantError:
        if held:
            deps.writer.write(live, held if shown else _gap(live) + held)
        raise
    if reply.reading is not None:
        if reply.reading.limit is not None and may_shorten and not shown:
            raise ContextTooLong("The model server truncated the request.")
        note_reading(live, reply.reading)
    written = () if reply.tool_calls else deps.tools.written_out(held)
    if reply.tool_calls or written:
        deps.models.tool_habits.learn_call(endpoint)
    is_call = bool(written) or (bool(reply.tool_calls) and may_be_calls(held))
    return shown, "" if is_call else held, replace(reply, tool_calls=reply.tool_calls or written)


def repeats_itself(end: str) -> bool:
    """Return whether the end of an answer is the same text again and again."""
    suffix = end[-MAX_PERIOD_CHARS // 2 :]
    period = len(end) - len(suffix) - end.rfind(suffix, 0, len(end) - 1)
    return len(end) == REPEATED_CHARS and period <= MAX_PERIOD_CHARS and end[period:] == end[:-period]


def note_reading(live: LiveTurn, reading: Reading) -> None:
    """Record how much of a request the endpoint read; if it cut the request, add a note."""
    history = live.turn.history or {}
    cut = history.get("endpoint")
    if reading.limit is not None:
        cut = to_builtins(reading)
        live.note(CUT.format(n=f"{reading.read:,}", n1=f"{reading.sent:,}", n2=f"{reading.limit:,}"))
    live.turn = replace(live.turn, history=with_reading(history, reading.read, cut))


def quote_first(task: Task, built: BuiltRequest) -> None:
    """Show quotes before the answer of a small model, which is wrong more often than they are."""
    live, draft = task.live, built.draft
    if instead_of_quotes(draft) is None and not live.turn.options.needs_model:
        show(task, collect(quoted(task.deps.retriever, draft, live.call, LEAD_WANTED))[0])
        live.gap = MODEL_LEAD


def _gap(live: LiveTurn) -> str:
    """Return the separator before the next text: after quotes, or after the text before a tool call."""
    gap, live.gap = live.gap, "\n\n"
    return gap


def say(task: Task, text: str) -> None:
    """Answer with a fixed text: no model is asked, and no passages are used."""
    live = task.live
    live.turn = replace(live.turn, model=None, sources=())
    live.begin(start_event(live.turn))
    show(task, text)


def show(task: Task, text: str, *, is_continued: bool = False) -> None:
    """Show a text after earlier text, and return once it is committed; with ``is_continued`` more may follow."""
    live, writer = task.live, task.deps.writer
    if text:
        writer.write(live, text if is_continued else _gap(live) + text)
    writer.flush(live)


def check_ending(live: LiveTurn, text: str, reply: ModelReply, request: ModelRequest, rounds: int) -> None:
    """Note why an answer ended, unless normally. Raises ModelFailed for an empty last message after ``rounds``."""
    reason = reply.finish_reason
    ending = ENDINGS.get(reason, "") if reason else NO_ENDING
    if reason == "length" and request.max_tokens is not None:
        ending = MAX_LENGTH.format(n=f"{request.max_tokens:,}")
    if not text.strip():
        why = ONLY_THOUGHTS if reply.thought else EMPTY_ANSWER
        if reason in ENDINGS and not (reply.thought and reason == "length"):
            why = ending
        raise ModelFailed(NO_ANSWER.format(rounds) if rounds else why)
    if ending:
        live.note(ending)
    if live.turn.sources and live.turn.model != QUOTES:
        is_seen = any(map(pictures_in, request.messages))  # A picture's figures are in no text.
        sent = "\n".join(map(text_in, request.messages))
        figures = [] if is_seen else strange_figures(text[:MAX_COMPARED_CHARS], sent)
        if without_quotes(live.text()) != live.text() and not CITATION.search(text):
            live.note(UNCITED)
        if figures:
            live.note(STRANGE_FIGURES.format(parts=", ".join(figures[:MAX_FIGURES_NAMED])))
