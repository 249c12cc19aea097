"""Take an erased turn out of what is kept of later requests: in its place stands how long it was.

Where it cannot be told which part of a request came from that turn, every part that may have goes.
Pure: no Flask, no SQL, no network, no clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rag_assistant.history.turns import SYSTEM_ROLES
from rag_assistant.records import EXCHANGES, Message, pictures_in, text_in, with_pictures

Receipt = dict[str, Any]

RECALLED = re.compile(r"(?<=<earlier>\n).*?(?=\n</earlier>)", re.DOTALL)


def marker(text: str) -> str:
    """Return what stands in the place of an erased text."""
    return f"[Erased: {len(text):,} characters]"


def receipt_without(receipt: Receipt, number: int, limit: int | None) -> Receipt:
    """Return the receipt of a later turn without what it holds of turn ``number``, named in ``erased_turns``.

    One that holds nothing of it comes back as it is. ``limit`` is the window that applied to that later turn, ``None``
    where there was none or it is not known.
    """
    changed = dict(receipt)
    if "request" in receipt:
        changed["request"] = _request_without(receipt["request"], receipt, number)
    elif "messages" in receipt:  # The shape of older receipts.
        changed |= _request_without(receipt, receipt, number)
    if receipt.get("earlier_requests"):
        changed["earlier_requests"] = [_request_without(one, receipt, number) for one in receipt["earlier_requests"]]
    if may_lean_on(number, receipt.get("kept_turns", ()), limit):
        changed["search"] = search_without(receipt.get("search"))
        changed["rewrite"] = _rewrite_without(receipt.get("rewrite"))
    if all(changed[name] == receipt.get(name) for name in changed):
        return receipt
    changed.pop("prefix_sha256", None)
    return changed | {"erased_turns": sorted({*receipt.get("erased_turns", ()), number})}


def may_lean_on(number: int, kept_turns: Sequence[int], limit: int | None) -> bool:
    """Tell whether turn ``number`` may be one of the exchanges with which a later question was searched."""
    newer = sum(kept > number for kept in kept_turns)
    return newer < EXCHANGES and (number in kept_turns or limit is None or newer < limit)


def search_without(search: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return how documents were searched, without the words that came from earlier exchanges."""
    if search is None:
        return None
    from_earlier = ("leans_on", "query") if search.get("by") == "model" else ("leans_on",)
    return {name: marker(value) if name in from_earlier and value else value for name, value in search.items()}


def _request_without(request: Mapping[str, Any], receipt: Receipt, number: int) -> dict[str, Any]:
    messages: list[Message] = list(request["messages"])
    first = next((n for n, one in enumerate(messages) if one["role"] not in SYSTEM_ROLES), len(messages))
    asked = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=len(messages))
    for begin, end in _places_of(messages, first, asked, receipt, number):
        messages[begin:end] = map(_erased, messages[begin:end])
    # An earlier request of the same answer may have recalled more turns than the last one, which alone lists them.
    messages[asked:] = [_with_content(one, lambda text: _recalled_without(text, number)) for one in messages[asked:]]
    return {**request, "messages": messages}


def _places_of(
    messages: Sequence[Message], first: int, asked: int, receipt: Receipt, number: int
) -> list[tuple[int, int]]:
    """Return where a turn, or a summary made of it, stands among the messages from ``first`` to ``asked``."""
    starts = [n for n in range(first, asked) if n == first or _begins(messages, n)]
    groups = list(pairwise([*starts, asked]))
    summarised = [run for run in receipt.get("left_out", ()) if run["reason"] == "summarised"]
    in_summary = any(run["first_turn"] <= number <= run["last_turn"] for run in summarised)
    # A summary stands in front of the turns that were kept.
    numbers = [number if in_summary else 0] * bool(summarised) + list(receipt.get("kept_turns", ()))
    if len(numbers) != len(groups):
        return groups
    return [group for group, one in zip(groups, numbers, strict=True) if one == number]


def _begins(messages: Sequence[Message], n: int) -> bool:
    return bool(messages[n]["role"] == "user" and messages[n - 1]["role"] != "user")


def _erased(message: Message) -> Message:
    """Return a message of which only its form is left, so that the request stays a valid one."""
    kept: Message = {name: message[name] for name in ("role", "tool_call_id") if name in message}
    if message.get("tool_calls"):
        kept["tool_calls"] = [
            {**call, "function": {"name": call["function"]["name"], "arguments": "{}"}}
            for call in message["tool_calls"]
        ]
    text = text_in(message)
    return kept | {"content": marker(text) if text else message.get("content")}


def _rewrite_without(rewrite: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if rewrite is None:
        return None
    messages = [_with_content(one, marker) if one["role"] == "user" else one for one in rewrite["request"]["messages"]]
    answer = rewrite.get("answer")
    return {
        **rewrite,
        "request": {**rewrite["request"], "messages": messages},
        "answer": marker(answer) if answer else answer,
    }


def _recalled_without(text: str, number: int) -> str:
    """Return a question beside which nothing is quoted of a turn: if it is, all quotations go with it."""
    quoted = f"(turn {number})\n"
    return RECALLED.sub(lambda found: marker(found[0]) if quoted in found[0] else found[0], text, count=1)


def _with_content(message: Message, change: Callable[[str], str]) -> Message:
    text = text_in(message)
    return with_pictures({**message, "content": change(text)}, pictures_in(message)) if text else message
