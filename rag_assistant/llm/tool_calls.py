"""Assemble the tool calls of a streamed answer: each provider splits them differently."""

import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from rag_assistant.records import THOUGHTS
from rag_assistant.records.errors import AnswerTooLong
from rag_assistant.records.validation import storable

# How a call written as text may begin, and what may surround it.
OPENINGS = tuple(f"{wrapped}{bare}" for wrapped in ("", "```json", "```", "<tool_call>") for bare in ('{"', '[{"'))
MAX_OPENING_CHARS = 40
MAX_WRITTEN_CHARS = 4000
# More than any model means: an endless stream of calls would keep us busy.
MAX_CALLS = 100
MAX_ARGUMENTS_CHARS = 200_000
WRAPPING = re.compile(r"```(?:json|tool_call)?|</?tool_call>")


class ToolCallCollector:
    """Takes the ``tool_calls`` of deltas and messages, and returns whole calls in the OpenAI format."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[int, dict[str, Any]] = {}
        self._argument_chars = 0

    def feed(self, pieces: Any) -> None:
        """Add the pieces of one delta; anything else is ignored. Raises AnswerTooLong.

        A piece continues the call with its index. One that names a tool begins a new call if it has no index, another
        id, or the arguments of that call are complete: some providers send whole calls, all with index 0. One with only
        arguments continues the last call if its index is new.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            function = piece.get("function")
            function = function if isinstance(function, dict) else {}
            call_id, name = _text(piece.get("id")), _text(function.get("name"))
            index = piece.get("index")
            call = self._by_index.get(index) if isinstance(index, int) else None
            if call is None and not name and not call_id and self._calls:
                call = self._calls[-1]
            if call is None or (name and _is_another(call, call_id)):
                call = {"id": "", "name": "", "arguments": "", "thoughts": {}}
                self._calls.append(call)
                if len(self._calls) > MAX_CALLS:
                    raise AnswerTooLong(f"The model called more than {MAX_CALLS} tools at once. Try again.")
                if isinstance(index, int):
                    self._by_index[index] = call
            call["id"] = call["id"] or call_id
            # A name may come in pieces, or whole each time.
            call["name"] = name if name.startswith(call["name"]) else call["name"] + name
            thoughts = thoughts_in(piece)
            call["thoughts"] |= thoughts
            arguments = function.get("arguments")
            text = "" if arguments is None else arguments
            text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            self._argument_chars += len(text) + len(str(thoughts))
            if self._argument_chars > MAX_ARGUMENTS_CHARS:
                raise AnswerTooLong(f"The model called tools with more than {MAX_ARGUMENTS_CHARS:,} characters.")
            call["arguments"] += text

    def calls(self) -> tuple[dict[str, Any], ...]:
        """Return the calls in order. Calls without an id get a unique one."""
        seen: set[str] = set()
        whole = []
        for call in self._calls:
            call_id = storable(call["id"])
            if not call_id or call_id in seen:
                call_id = secrets.token_hex(5)[:9]  # Nine letters and digits: the only form that Mistral accepts.
            seen.add(call_id)
            name = storable(call["name"]).removeprefix("functions.").partition("<|")[0]
            function = {"name": name, "arguments": _plain_arguments(storable(call["arguments"]))}
            whole.append(call["thoughts"] | {"id": call_id, "type": "function", "function": function})
        return tuple(whole)


def thoughts_in(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a provider wants back of a message or a call while tools run."""
    return {name: part[name] for name in THOUGHTS if part.get(name)}


def may_be_calls(text: str) -> bool:
    """Return whether an incomplete text may become tool calls: JSON, perhaps in a code fence."""
    begun = "".join(text[:MAX_OPENING_CHARS].split())
    looks_so = any(begun.startswith(opening) or opening.startswith(begun) for opening in OPENINGS)
    return looks_so and len(text) <= MAX_WRITTEN_CHARS


def calls_in_text(text: str) -> tuple[dict[str, Any], ...]:
    """Return the tool calls a text consists of, in the OpenAI format; none if it is anything else.

    Small models write calls as text: ``{"name": ..., "arguments": {...}}``, one or a list.
    """
    bare = WRAPPING.sub("", text).strip()
    try:
        given = json.loads(bare if bare.startswith("[") else f"[{bare}]")
    except (ValueError, RecursionError):
        return ()
    collector = ToolCallCollector()
    for one in given:
        inner = one.get("function") if isinstance(one, dict) else None
        call = inner if isinstance(inner, dict) else one
        arguments = call.get("arguments", call.get("parameters")) if isinstance(call, dict) else None
        if not isinstance(arguments, dict) or not _text(call.get("name")):
            return ()
        collector.feed([{"function": {"name": call["name"], "arguments": arguments}}])
    return collector.calls()


def _is_another(call: dict[str, Any], call_id: str) -> bool:
    """Return whether a piece that names a tool begins another call than the one with its index."""
    if call_id and call["id"]:
        return bool(call_id != call["id"])
    try:
        json.loads(call["arguments"])
    except (ValueError, RecursionError):
        return False
    return True


def _plain_arguments(arguments: str) -> str:
    """Return arguments as the text of a JSON object, also if that is in a code fence or was encoded twice."""
    for text in (arguments, WRAPPING.sub("", arguments)):
        try:
            meant = json.loads(text)
            meant, text = (json.loads(meant), meant) if isinstance(meant, str) else (meant, text)
        except (ValueError, RecursionError):
            continue
        if isinstance(meant, dict):
            return text
    return arguments or "{}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
