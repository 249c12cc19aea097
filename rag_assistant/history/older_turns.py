"""The distant past of a long list: turns certainly outside the window are only counted.

Pure: no Flask, no SQL, no network, no clock.
"""

from collections.abc import Sequence

from rag_assistant.history.turns import length_of_system_block
from rag_assistant.records import Message

MIN_LIST_LENGTH = 100


def older_turns(messages: Sequence[Message], newest_turns: int) -> tuple[int, int, int] | None:
    """Return (begin, end, turns): ``messages[begin:end]`` are that many whole turns, before the newest ones.

    At least ``newest_turns`` past turns follow ``end``. ``None`` if the list is short, or if the part can't be counted
    by its roles alone: then it must be repaired first.
    """
    if len(messages) < MIN_LIST_LENGTH:
        return None
    begin = length_of_system_block(messages)
    end = _boundary(messages, begin, newest_turns + 1)
    if end is None:
        return None
    turns = _count_turns(messages, begin, end)
    return None if turns is None else (begin, end, turns)


def _boundary(messages: Sequence[Message], begin: int, boundaries: int) -> int | None:
    """Return where a turn begins after which ``boundaries`` - 1 turns are certainly completed.

    Certain is a question between an answer without calls and another answer (or the end): whatever is repaired around
    it, a turn ends and another one begins there.
    """
    count = 0
    for index in range(len(messages) - 1, begin, -1):
        message, before = messages[index], messages[index - 1]
        if message["role"] != "user" or before["role"] != "assistant" or before.get("tool_calls") or "meta" in message:
            continue
        if index + 1 < len(messages) and messages[index + 1]["role"] != "assistant":
            continue
        count += 1
        if count == boundaries:
            return index
    return None


def _count_turns(messages: Sequence[Message], begin: int, end: int) -> int | None:
    """Return how many turns a part has, ``None`` if anything in it is irregular."""
    turns, open_calls, before = 0, 0, ""
    for index in range(begin, end):
        message = messages[index]
        role = message["role"]
        if role == "tool":
            if not open_calls:
                return None
            open_calls -= 1
        elif open_calls or "meta" in message:
            return None
        elif role == "assistant":
            calls = message.get("tool_calls")
            open_calls = len(calls) if calls else 0
        elif role == "user":
            turns += before != "user"
        else:
            return None
        before = role
    return turns or None
