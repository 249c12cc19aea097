"""Our additions to OpenAI's answers: what was left out, as a field and as headers; and the sources. Pure."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from rag_assistant.history import estimate_tokens
from rag_assistant.llm.tool_calls import thoughts_in
from rag_assistant.records import QUOTES, Message
from rag_assistant.retrieval.claims import CITATION, cited_numbers

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


def packed_thoughts(data: Mapping[str, Any]) -> str:
    """Return what a provider wants back with an answer's calls as an opaque text, empty if that is nothing."""
    calls = [thoughts_in(call) for call in data.get("tool_calls", ())]
    thoughts = data.get("thoughts", {})
    return base64.b64encode(msgspec.json.encode([thoughts, calls])).decode() if thoughts or any(calls) else ""


def with_packed_thoughts(message: Message, packed: str) -> Message | None:
    """Return a message of calls with the thoughts in such a text; ``None`` if another server made it."""
    try:
        thoughts, calls = msgspec.json.decode(
            base64.b64decode(packed), type=tuple[dict[str, Any], list[dict[str, Any]]]
        )
    except (ValueError, RecursionError):
        return None
    if len(calls) != len(message.get("tool_calls") or ()):
        return None
    whole = [thoughts_in(carried) | call for carried, call in zip(calls, message["tool_calls"], strict=True)]
    return thoughts_in(thoughts) | message | {"tool_calls": whole}


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
