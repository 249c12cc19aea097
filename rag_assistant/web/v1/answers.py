"""Answers in OpenAI's protocol: whole, or as a stream that begins when the figures are known; what its views share, and
our additions: what was left out, as a field and as headers, and the sources.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from typing import Any

from flask import Response, jsonify, url_for
from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.history import estimate_tokens
from rag_assistant.records import QUOTES, Event, Question
from rag_assistant.retrieval.claims import CITATION, cited_numbers
from rag_assistant.web.api.events import HEADERS, collect
from rag_assistant.web.api.turns import readers, while_let_in
from rag_assistant.web.errors import answer_with_error
from rag_assistant.web.routing import services
from rag_assistant.web.v1.reading import Sent

TOLD = ("notice", "history", "search", "support", "sources", "notes", "waiting")
FINISHED = {"length": "length", "content_filter": "content_filter"}
CLEARED, SUMMARISED = "clear_tool_uses_20250919", "compaction"


class About(Struct, frozen=True):
    """What a view knows of an answer besides its events.

    ``id`` is its own, without a prefix; ``link`` gives the address of a source; ``ignored`` are request fields without
    effect; ``stored``: its turn and conversation can be requested. ``manages_context``: the request said how to make
    room.
    """

    id: str
    model: str
    created: int
    link: Callable[[Mapping[str, Any]], str]
    ignored: tuple[str, ...] = ()
    stored: bool = False
    manages_context: bool = False


def extension(data: Mapping[str, Any], about: About) -> dict[str, Any]:
    """Return our additional fields, from an event of the answer."""
    fields = {name: data[name] for name in TOLD if name in data}
    if "model" in data:
        fields["answered_by"] = data["model"]
    if about.manages_context and (history := data.get("history")):
        summarised, cleared = history["left_out"].get("summarised"), history["iterations_dropped"]
        edits = [{"type": SUMMARISED, "summarised_turns": summarised}] if summarised else []
        edits += [{"type": CLEARED, "cleared_iterations": cleared}] if cleared else []
        fields["context_management"] = {"applied_edits": edits}
    ids = {name: data.get(name) if about.stored else None for name in ("conversation_id", "turn_id")}
    return {
        "history_trimmed": data.get("history_trimmed", False),
        "rag_assistant": fields | ids | {"ignored": list(about.ignored)},
    }


def headers_of(data: Mapping[str, Any], about: About) -> dict[str, str]:
    """Return the most important figures as headers."""
    headers = {"X-History-Trimmed": "true" if data.get("history_trimmed") else "false"}
    if history := data.get("history"):
        headers["X-History-Turns-Kept"] = str(history["turns_kept"])
        headers["X-History-Turns-Dropped"] = str(history["turns_dropped"])
    if about.stored and "turn_id" in data:
        headers["X-Conversation-Id"] = str(data["conversation_id"])
        headers["X-Turn-Id"] = str(data["turn_id"])
    return headers


def citations_of(data: Mapping[str, Any], about: About) -> list[dict[str, Any]]:
    """Return the answer's citations as OpenAI's url_citation."""
    sources = {source["n"]: source for source in data["sources"]}
    return [
        {
            "start_index": match.start(),
            "end_index": match.end(),
            "url": about.link(sources[number]),
            "title": sources[number]["document"],
        }
        for match in CITATION.finditer(data["answer"])
        for number in cited_numbers(match)
        if number in sources
    ]


def tokens_of(data: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the tokens of prompt (0 without a model) and answer, and cached ones: as counted, or estimated."""
    usage, history = data.get("usage") or {}, data.get("history") or {}
    if data.get("model") in (None, QUOTES):
        history = {}
    prompt = usage.get("prompt_tokens", history.get("tokens", {}).get("total", 0))
    return prompt, usage.get("completion_tokens", estimate_tokens(data["answer"])), usage.get("cached_tokens", 0)


def finish_reason_of(data: Mapping[str, Any]) -> str:
    """Return why an answer ended, in OpenAI's words."""
    if data.get("tool_calls"):
        return "tool_calls"
    return FINISHED.get((data.get("usage") or {}).get("finish_reason", ""), "stop")


class Asked(Struct, frozen=True):
    """A question with the messages sent along, which a stored one doesn't use, and what is known of its answer."""

    question: Question
    sent: Sent
    about: About


def whole(incoming: Asked, shape: Callable[[Mapping[str, Any], About], Mapping[str, Any]]) -> Response:
    """Return the whole answer in a ``shape``. One that failed or broke off is an error."""
    with readers().place() as leaving:
        events, facts = _begin(incoming, leaving)
        data = collect(events)
    if "error" in data:
        return answer_with_error(data)
    response = jsonify(shape(data, facts))
    response.headers.update(headers_of(data, facts))
    return response


def streamed(incoming: Asked, frames: Callable[[Iterable[Event | None], About], Iterator[bytes]]) -> Response:
    """Return a stream of ``frames``.

    It begins when the figures for its headers are known, or after a while without them; earlier failures are errors.
    """
    with readers().place() as leaving:
        events, facts = _begin(incoming, leaving)
        begun: list[Event | None] = []
        for event in events:  # Up to the first with content, or to a heartbeat.
            begun.append(event)
            if event is None or event.name != "state":
                break
        first = begun[-1]
        if first is not None and first.name == "error":
            return answer_with_error(first.data)
        response = Response(frames(chain(begun, events), facts), headers=HEADERS)
        response.headers.update(headers_of(first.data, facts) if first is not None else {})
        response.call_on_close(leaving.pop_all().close)
        return response


def _begin(incoming: Asked, leaving: ExitStack) -> tuple[Iterator[Event | None], About]:
    """Return the events of a started answer, and what is known of it; ``leaving`` ends it."""
    assistant = services().assistant
    if incoming.about.stored:
        turn = assistant.ask(incoming.question)
        events, own_id = assistant.follow(turn.id), str(turn.id)
    else:
        # Nobody reconnects to an answer that isn't stored: it ends with its client.
        live = assistant.ask_stateless(incoming.question, incoming.sent.history)
        leaving.callback(live.call.stop)
        events, own_id = assistant.follow_live(live), f"x{uuid.uuid4().hex}"
    return while_let_in(events), replace(incoming.about, id=own_id)


def about(
    model: str, ignored: Iterable[str] = (), *, own_id: str = "", stored: bool, manages_context: bool = False
) -> About:
    """Return what the views know of an answer besides its events; its id may be unknown before it is asked for."""
    root = url_for("document_pages.documents", _external=True)

    def link(source: Mapping[str, Any]) -> str:
        return f"{root}/{source['document_id']}?start={source['start']}&end={source['end']}"

    return About(own_id, model, int(time.time()), link, tuple(ignored), stored, manages_context)
