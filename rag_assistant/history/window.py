"""The window: which past turns the model sees. A turn is kept whole or not at all.

Pure: no Flask, no SQL, no network, no clock.
"""

from collections.abc import Sequence

from rag_assistant.history.turns import joined, split_turns
from rag_assistant.records import Message
from rag_assistant.records.errors import InvalidHistoryLimit


def check_history_limit(value: object, name: str = "max_history_turns") -> int | None:
    """Return ``value`` if it is a whole number of 0 or more, or ``None`` for no limit.

    Raises InvalidHistoryLimit (a ValueError), which contains ``name``, for everything else; ``True``, ``2.0`` and
    ``"5"`` are not whole numbers.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise InvalidHistoryLimit(value, name)


def turns_in_window(total: int, max_history_turns: int | None, slack: int = 0) -> int:
    """Return how many of ``total`` past turns the window keeps: the newest ones.

    Without slack that is ``max_history_turns``. With slack the window grows to ``max_history_turns + slack`` turns
    before it is cut back, so that its start moves in steps of ``slack + 1`` turns and a provider's prompt cache can
    use the prefix again in between. The start depends on ``total`` alone; never fewer than ``max_history_turns`` stay.
    """
    if max_history_turns is None or total <= max_history_turns:
        return total
    start = (total - max_history_turns) // (slack + 1) * (slack + 1)
    return total - start


def trim_history(messages: Sequence[Message], max_history_turns: int | None) -> tuple[list[Message], int]:
    """Return the messages that the model sees, and how many were dropped.

    Kept are the leading system block, the newest ``max_history_turns`` past turns in their order, and the current
    turn, which is never counted. 0 keeps no past turn, ``None`` keeps them all. The input is not changed; its message
    dicts are passed on as they are.

    Raises InvalidHistoryLimit (a ValueError) unless ``max_history_turns`` is a whole number of 0 or more, or ``None``.
    """
    limit = check_history_limit(max_history_turns)
    split = split_turns(messages)
    past = split.past[len(split.past) - turns_in_window(len(split.past), limit) :]
    trimmed = joined([split.system, *past, split.current])
    return trimmed, len(messages) - len(trimmed)
