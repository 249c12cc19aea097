"""Remove an erased turn from later requests; a marker with its length replaces it.

If it is unclear which part of a request came from that turn, every possible part is removed. Pure: no Flask, no SQL, no
network, no clock.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rag_assistant.history.turns import length_of_system_block
from rag_assistant.records import EXCHANGES, MAX_INT32, Message, pictures_in, text_in, with_pictures

Receipt = dict[str, Any]
Run = tuple[int, int]
# The id of a conversation, and the number of a turn in it.
Place = tuple[int, int]

RECALLED = re.compile(r"(?<=<earlier>\n)(?:(?!<earlier>).)*?(?=\n</earlier>)", re.DOTALL)
# Notes don't say which turn they come from.
NOTES = re.compile(r"(?<=<notes>\n)(?:(?!<notes>).)*?(?=\n</notes>)", re.DOTALL)
PASSAGE = re.compile(
    r"(?P<head>^\[[0-9]+\] \(earlier conversation (?P<conversation>[0-9]+), turn (?P<turn>[0-9]+), [^\n]*\n)"
    r"(?P<text>(?:(?!^\[[0-9]+\] \().)*?)(?=\n\n\[[0-9]+\] \(|\n</passages>)",
    re.DOTALL | re.MULTILINE,
)


def marker(text: str) -> str:
    """Return the marker for an erased text."""
    return f"[Erased: {len(text):,} characters]"


def receipt_without(receipt: Receipt, number: int, limit: int | None) -> Receipt:
    """Return a later turn's receipt without content of turn ``number``, which is added to ``erased_turns``.

    A receipt without such content is returned unchanged. ``limit`` is the window that applied to that later turn,
    ``None`` if there was none or it is unknown.
    """
    changed = dict(receipt)
    if "request" in receipt:
        changed["request"] = _request_without(receipt["request"], receipt, number)
    if receipt.get("earlier_requests"):
        changed["earlier_requests"] = [_request_without(one, receipt, number) for one in receipt["earlier_requests"]]
    if may_lean_on(number, receipt.get("kept_turns", ()), limit):
        changed["search"] = search_without(receipt.get("search"))
        changed["rewrite"] = receipt.get("rewrite") and _aside_without(receipt["rewrite"])
        if receipt.get("reading") and receipt["search"]["by"] == "model":  # It asked the rewritten question.
            changed["reading"] = [_aside_without(one) for one in receipt["reading"]]
    if all(changed[name] == receipt.get(name) for name in changed):
        return receipt
    changed.pop("prefix_sha256", None)
    return changed | {"erased_turns": sorted({*receipt.get("erased_turns", ()), number})}


def receipt_without_elsewhere(receipt: Receipt, places: Collection[Place]) -> Receipt:
    """Return a receipt without content of other conversations' turns, and with ``erased_elsewhere`` set."""

    def without(match: re.Match[str]) -> str:
        erased = (int(match["conversation"]), int(match["turn"])) in places
        return match["head"] + marker(match["text"]) if erased else match[0]

    def request(one: Mapping[str, Any]) -> dict[str, Any]:
        def erased(text: str) -> str:
            return NOTES.sub(lambda match: marker(match[0]), PASSAGE.sub(without, text), count=1)

        return {**one, "messages": [_with_content(message, erased) for message in one["messages"]]}

    earlier = [request(one) for one in receipt.get("earlier_requests", ())]
    return receipt | {"request": request(receipt["request"]), "earlier_requests": earlier, "erased_elsewhere": True}


def sources_without(sources: Sequence[Any] | None, places: Collection[Place]) -> Sequence[Any] | None:
    """Return an answer's sources, as JSON, without the text of other conversations' turns."""
    return sources and [
        one | {"text": marker(one["text"]), "offered": []}
        if (one.get("conversation_id"), one.get("turn")) in places
        else one
        for one in sources
    ]


def may_lean_on(number: int, kept_turns: Sequence[int], limit: int | None) -> bool:
    """Return whether a later question may have been searched with turn ``number``."""
    newer = sum(turn > number for turn in kept_turns)
    return newer < EXCHANGES and (number in kept_turns or limit is None or newer < limit)


def search_without(search: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the search record without words from earlier exchanges."""
    if search is None:
        return None
    from_earlier = ("follow_up_context", "query") if search.get("by") == "model" else ("follow_up_context",)
    return {name: marker(value) if name in from_earlier and value else value for name, value in search.items()}


def _request_without(request: Mapping[str, Any], receipt: Receipt, number: int) -> dict[str, Any]:
    messages: list[Message] = list(request["messages"])
    position = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=len(messages))
    for begin, end, runs in _groups_of(messages, position, receipt):
        if any(first <= number <= last for first, last in runs):
            messages[begin:end] = map(_erased, messages[begin:end])
    # An earlier request of the same answer may have recalled more turns than the last one, the only one that lists
    # them. If one of the quotations beside a question is from the turn, none stays.
    quoted = f"(turn {number})\n"

    def unquoted(text: str) -> str:
        return RECALLED.sub(lambda match: marker(match[0]) if quoted in match[0] else match[0], text, count=1)

    messages[position:] = [_with_content(one, unquoted) for one in messages[position:]]
    return {**request, "messages": messages}


def _groups_of(messages: Sequence[Message], position: int, receipt: Receipt) -> list[tuple[int, int, Sequence[Run]]]:
    """Return where the earlier turns, and a summary, begin and end, with the turns each may contain.

    If they can't be told apart, each may contain any.
    """
    first = length_of_system_block(messages)
    roles = [one["role"] for one in messages]
    starts = [n for n in range(first, position) if n == first or (roles[n] == "user" and roles[n - 1] != "user")]
    groups = list(pairwise([*starts, position]))
    summarised = [run for run in receipt.get("left_out", ()) if run["reason"] == "summarised"]
    # A summary precedes the turns that were kept.
    made_of: list[Sequence[Run]] = [[(run["first_turn"], run["last_turn"]) for run in summarised]] * bool(summarised)
    made_of += [[(one, one)] for one in receipt.get("kept_turns", ())]
    if len(made_of) != len(groups):
        made_of = [[(1, MAX_INT32)]] * len(groups)
    return [(begin, end, runs) for (begin, end), runs in zip(groups, made_of, strict=True)]


def _erased(message: Message) -> Message:
    """Return a message with its content erased, so that the request stays valid."""
    erased: Message = {name: message[name] for name in ("role", "tool_call_id") if name in message}
    if message.get("tool_calls"):
        erased["tool_calls"] = [
            {name: call[name] for name in ("id", "type") if name in call}
            | {"function": {"name": call["function"]["name"], "arguments": "{}"}}
            for call in message["tool_calls"]
        ]
    text = text_in(message)
    return erased | {"content": marker(text) if text else message.get("content")}


def _aside_without(aside: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request before the answer, and the model's reply to it, without their content."""
    messages = [_with_content(one, marker) if one["role"] == "user" else one for one in aside["request"]["messages"]]
    answer = aside.get("answer")
    return {
        **aside,
        "request": {**aside["request"], "messages": messages},
        "answer": marker(answer) if answer else answer,
    }


def _with_content(message: Message, change: Callable[[str], str]) -> Message:
    text = text_in(message)
    return with_pictures({**message, "content": change(text)}, pictures_in(message)) if text else message
