"""The worked examples on the page about the window are what the window does."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.history import HistoryPolicy, fit_history
from rag_assistant.records import Message

PAGE = Path(__file__).resolve().parents[2] / "docs" / "history.md"
ROW = re.compile(r"^\| (\d+) \| `(.*?)` \|(.*?)\|(.*?)\|(.*?)\|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text())


def conversation(turns: int) -> list[Message]:
    past = [
        Message(role=role, content=f"{said} {n}")
        for n in range(1, turns + 1)
        for role, said in (("user", "Question"), ("assistant", "Answer"))
    ]
    return [*past, {"role": "user", "content": "And now?"}]


def in_runs(numbers: Iterable[int]) -> str:
    """Return numbers as the page writes them: 1, 3-7."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def test_there_are_some() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize(("turns", "given", "seen", "left_out", "told"), ROWS)
def test_a_worked_example_is_what_the_window_does(turns: str, given: str, seen: str, left_out: str, told: str) -> None:
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(given).items()
    }
    fitted = fit_history(conversation(int(turns)), HistoryPolicy(**named))
    runs = [f"{in_runs(range(run.first_turn, run.last_turn + 1))} `{run.reason}`" for run in fitted.receipt.left_out]
    assert in_runs(fitted.receipt.kept_turns) == seen.strip()
    assert ", ".join(runs) == left_out.strip()
    assert (fitted.notice or "") == told.strip().strip("`")
    assert fitted.history_trimmed is bool(told.strip())
