"""An adapter's description of its library, so that all of them can be run in the same way.

Knows no library and nothing of the project: the adapters are run by an interpreter that has only the libraries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """One size of window in the three units that libraries use: earlier turns, not counting the system message."""

    turns: int
    messages: int
    tokens: int

    @property
    def with_question(self) -> int:
        """Return the limit in messages for a library that counts the current question too."""
        return self.messages + 1


@dataclass(frozen=True, slots=True)
class Rival:
    """A library's way to trim a history, as its documentation says.

    ``load`` turns messages into what the library works on, ``cut`` is the documented call, ``back`` turns its result
    into messages again; ``load`` and ``cut`` may be coroutines. ``timed`` is the part of ``cut`` whose time is taken,
    ``None`` if there is no such part. ``applied`` says when the library cuts: before each call of the model, once
    when a question arrives (what the tools add is sent whole), or when an answer is complete (the next question is
    added whole). With ``system_apart`` the library gets the system message separately and cannot lose it.
    """

    name: str
    package: str
    documented_as: str
    window: Callable[[Limit], str]
    applied: Literal["call", "question", "answer"]
    system_apart: bool
    tells_caller: str
    tells_model: str
    load: Callable[[list[Message], Limit], Any]
    cut: Callable[[Any], Any]
    back: Callable[[Any], list[Message]]
    timed: Callable[[Any], Any] | None


def calls_of(message: Message) -> list[dict[str, Any]]:
    """Return the tool calls of a message, an empty list for one without."""
    return list(message.get("tool_calls") or ())


def assistant(text: str | None, calls: Sequence[tuple[str, str, str]] = ()) -> Message:
    """Return an assistant message; each call is its id, the function's name and the arguments as JSON."""
    message: Message = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    return message


def tool_result(call_id: str | None, text: str) -> Message:
    """Return the message with the result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def names_of_calls(messages: Sequence[Message]) -> dict[str, str]:
    """Return the function's name for each call id; some libraries ask for it with the result."""
    return {call["id"]: call["function"]["name"] for message in messages for call in calls_of(message)}


def results_together(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the messages one by one, but consecutive results in one list, as some libraries store them."""
    groups: list[list[Message]] = []
    for message in messages:
        if message["role"] == "tool" and groups and groups[-1][0]["role"] == "tool":
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups
