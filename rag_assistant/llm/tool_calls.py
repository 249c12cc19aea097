"""Put the tool calls of a streamed answer together: they come in pieces, cut in as many ways as there are providers."""

from __future__ import annotations

import json
from typing import Any


class ToolCallCollector:
    """Takes the ``tool_calls`` of deltas and messages, and gives whole calls in the OpenAI format."""

    def __init__(self) -> None:
        self._calls: list[dict[str, str]] = []
        self._by_index: dict[int, dict[str, str]] = {}

    def feed(self, pieces: Any) -> None:
        """Take the pieces of one delta; what is not a piece of a call is passed over.

        A piece continues the call with its index. One that has no index, or brings another id together with a name,
        begins a call of its own: some providers send whole calls, all with the index 0.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            function = piece.get("function")
            function = function if isinstance(function, dict) else {}
            call_id, name = _text(piece.get("id")), _text(function.get("name"))
            index = piece.get("index")
            call = self._by_index.get(index) if isinstance(index, int) else None
            if call is None or (name and call_id and call["id"] and call_id != call["id"]):
                call = {"id": "", "name": "", "arguments": ""}
                self._calls.append(call)
                if isinstance(index, int):
                    self._by_index[index] = call
            call["id"] = call["id"] or call_id
            call["name"] = call["name"] or name
            arguments = function.get("arguments")
            call["arguments"] += arguments if isinstance(arguments, str) else _as_json(arguments)

    def calls(self) -> tuple[dict[str, Any], ...]:
        """Return the calls in their order. A call without an id of its own gets one that is unique among them."""
        seen: set[str] = set()
        whole = []
        for number, call in enumerate(self._calls, 1):
            call_id = call["id"] if call["id"] and call["id"] not in seen else f"{call['id'] or 'call'}_{number}"
            seen.add(call_id)
            function = {"name": call["name"], "arguments": call["arguments"] or "{}"}
            whole.append({"id": call_id, "type": "function", "function": function})
        return tuple(whole)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_json(arguments: Any) -> str:
    """Return arguments that came as an object as the JSON text that they should be."""
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
