"""The window: which past turns the model sees. A turn is kept whole or not at all.

Pure: no Flask, no SQL, no network, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_assistant.errors import InvalidHistoryLimit
from rag_assistant.history.turns import joined, split_turns
from rag_assistant.records import Message


def check_history_limit(value: object, name: str = "max_history_turns") -> int | None:
    """Return ``value`` if it is a whole number of 0 or more, or ``None`` for no limit.

    Raises InvalidHistoryLimit (a ValueError), which tells ``name``, for everything else; ``True``, ``2.0`` and ``"5"``
    are not whole numbers.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise InvalidHistoryLimit(value, name)


def trim_history(messages: Sequence[Message], max_history_turns: int | None) -> tuple[list[Message], int]:
    """Return the messages that the model sees, and how many were dropped.

    Kept are the leading system block, the newest ``max_history_turns`` past turns in their order, and the current
    turn, which is never counted. 0 keeps no past turn, ``None`` keeps them all. The input is not changed; its message
    dicts are passed on as they are.

    Raises InvalidHistoryLimit (a ValueError) unless ``max_history_turns`` is a whole number of 0 or more, or ``None``.
    """
    limit = check_history_limit(max_history_turns)
    split = split_turns(messages)
    past = split.past if limit is None else split.past[max(0, len(split.past) - limit) :]
    kept = joined([split.system, *past, split.current])
    return kept, len(messages) - len(kept)
