"""Put the tool calls of a streamed answer together: they come in pieces, cut in as many ways as there are providers."""

from __future__ import annotations

import json
import secrets
from typing import Any

from rag_assistant.validation import storable


class ToolCallCollector:
    """Takes the ``tool_calls`` of deltas and messages, and gives whole calls in the OpenAI format."""

    def __init__(self) -> None:
        self._calls: list[dict[str, str]] = []
        self._by_index: dict[int, dict[str, str]] = {}

    def feed(self, pieces: Any) -> None:
        """Take the pieces of one delta; what is not a piece of a call is passed over.

        A piece continues the call with its index. One that names a tool begins a call of its own if it has no index,
        another id, or comes when the arguments of that call are whole: some providers send whole calls, all with the
        index 0.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            function = piece.get("function")
            function = function if isinstance(function, dict) else {}
            call_id, name = _text(piece.get("id")), _text(function.get("name"))
            index = piece.get("index")
            call = self._by_index.get(index) if isinstance(index, int) else None
            if call is None or (name and _is_another(call, call_id)):
                call = {"id": "", "name": "", "arguments": ""}
                self._calls.append(call)
                if isinstance(index, int):
                    self._by_index[index] = call
            call["id"] = call["id"] or call_id
            call["name"] = call["name"] or name
            arguments = function.get("arguments")
            call["arguments"] += arguments if isinstance(arguments, str) else _as_json(arguments)

    def calls(self) -> tuple[dict[str, Any], ...]:
        """Return the calls in their order. A call without an id of its own gets one that no other call has."""
        seen: set[str] = set()
        whole = []
        for call in self._calls:
            call_id = storable(call["id"])
            if not call_id or call_id in seen:
                call_id = secrets.token_hex(5)[:9]  # Nine letters and digits: the one form that Mistral takes, too.
            seen.add(call_id)
            function = {"name": storable(call["name"]), "arguments": storable(call["arguments"]) or "{}"}
            whole.append({"id": call_id, "type": "function", "function": function})
        return tuple(whole)


def _is_another(call: dict[str, str], call_id: str) -> bool:
    """Tell whether a piece that names a tool begins another call than the one with its index."""
    if call_id and call["id"]:
        return call_id != call["id"]
    try:
        json.loads(call["arguments"])
    except (ValueError, RecursionError):
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_json(arguments: Any) -> str:
    """Return arguments that came as an object as the JSON text that they should be."""
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
