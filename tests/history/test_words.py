"""Which turns are left out, in words that are true."""

from typing import Any

import pytest

from rag_assistant.history.words import seen, turns_in_words

Run = dict[str, Any]


def run(first: int, last: int, turns: int | None = None, reason: str = "turn_limit") -> Run:
    return {"reason": reason, "first_turn": first, "last_turn": last, "turns": turns or last - first + 1}


@pytest.mark.parametrize(
    ("left_out", "kept", "others", "words"),
    [
        (run(3, 3), [4, 5], [], "turn 3"),
        (run(1, 4), [5], [], "turns 1 to 4"),
        (run(2, 3), [4], [], "turns 2 and 3"),
        (run(1, 4, 3), [2, 5], [], "turns 1, 3 and 4"),
        (run(1, 5, 3), [1, 6], [run(5, 5, reason="excluded")], "turns 2 to 4"),
        (run(1, 3, 1), [1, 3], [], "turn 2"),
        (run(1, 9, 5), [2, 4, 6, 8], [], "turns 1, 3, 5, 7 and 9"),
        (run(1, 11, 6), [2, 4, 6, 8, 10], [], "6 of turns 1 to 11"),
        (run(1, 9, 2), [4], [], "2 of turns 1 to 9"),
        (run(1, 2_000_000, 1_500_000), [4], [], "1,500,000 of turns 1 to 2000000"),
        (run(4, 6), [], [run(1, 9, reason="cleared")], "turns 4 to 6"),
    ],
)
def test_a_run_is_named_by_the_turns_that_it_is(left_out: Run, kept: list[int], others: list[Run], words: str) -> None:
    assert turns_in_words(left_out, kept, [left_out, *others]) == words


def test_what_is_seen_and_what_is_not_add_up() -> None:
    assert seen(4, {"turn_limit": 1, "failed": 1}) == "4 of 5 earlier turns (1 over the turn limit)"
    assert seen(1, {}) == "1 of 1 earlier turn"
