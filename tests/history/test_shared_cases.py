"""Cases collected from the test suites of other libraries, told in neutral form."""

from typing import Any

import pytest

from rag_assistant.history import (
    HistoryPolicy,
    fit_history,
    keep_last_iterations,
    repair_messages,
    split_turns,
    trim_history,
)
from rag_assistant.history.repair import MISSING_RESULT
from tests.shared_data import shared_json


def cases(op: str) -> list[dict[str, Any]]:
    return [case for case in shared_json("history_cases/cases.json") if case["params"]["op"] == op]


def test_every_window_case() -> None:
    seen = cases("window")
    assert len(seen) >= 20
    for case in seen:
        messages, limit, expected = case["messages"], case["params"]["max_history_turns"], case["expect"]
        if "error" in expected:
            with pytest.raises(ValueError, match="max_history_turns"):
                trim_history(messages, limit)
            continue
        kept, dropped = trim_history(messages, limit)
        assert kept == [messages[i] for i in expected["kept"]], case["id"]
        assert dropped == len(messages) - len(expected["kept"]), case["id"]
        fitted = fit_history(messages, HistoryPolicy(max_history_turns=limit))
        assert fitted.history_trimmed is expected["history_trimmed"], case["id"]
        assert fitted.receipt.turns_dropped == expected["dropped_turns"], case["id"]
        assert (fitted.notice is not None) is expected["notice"], case["id"]


def test_every_repair_case() -> None:
    seen = cases("repair")
    assert len(seen) >= 5
    for case in seen:
        mended = repair_messages(case["messages"])
        roles = []
        for message in mended:
            if message["role"] == "tool":
                synthetic = message["content"] == MISSING_RESULT
                roles.append((f"tool(synth:{message['tool_call_id']})", "tool") if synthetic else ("tool",))
            else:
                roles.append(("assistant+calls" if message.get("tool_calls") else message["role"],))
        wanted = [role.split("(")[0] if "synth" not in role else role for role in case["expect"]["roles"]]
        assert len(roles) == len(wanted), case["id"]
        assert all(want in got for got, want in zip(roles, wanted, strict=True)), case["id"]


def test_the_window_slides_by_one_turn() -> None:
    (case,) = (case for case in cases("window_start_series") if case["params"]["policy"] == "sliding")
    starts = []
    for turns in range(case["params"]["turns"]):
        past = [{"role": role, "content": str(n)} for n in range(turns) for role in ("user", "assistant")]
        _, dropped = trim_history([*past, {"role": "user", "content": "now"}], case["params"]["max_history_turns"])
        starts.append(dropped // 2)
    assert starts == case["expect"]["starts"]


def test_every_iteration_case() -> None:
    seen = cases("tool_iterations")
    assert len(seen) >= 7
    for case in seen:
        split = split_turns(case["messages"])
        kept = keep_last_iterations(split.current, case["params"]["keep_last_iterations"])
        sent = [*split.system, *(message for turn in split.past for message in turn), *kept.messages]
        assert sent == [case["messages"][i] for i in case["expect"]["kept"]], case["id"]
        assert kept.iterations_dropped == case["expect"]["dropped_iterations"], case["id"]
