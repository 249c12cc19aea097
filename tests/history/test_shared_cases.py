"""Cases collected from the test suites of other libraries, told in neutral form: every one is run, or named below."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from rag_assistant.history import (
    HistoryPolicy,
    HistorySummary,
    analyse_history,
    checked_summary,
    estimate_tokens,
    fit_history,
    keep_last_iterations,
    left_out,
    repair_messages,
    split_turns,
    trim_history,
    turns_in_window,
)
from rag_assistant.history.budget import TOKENS_PER_MESSAGE, CountTokens
from rag_assistant.history.turns import MISSING_RESULT
from rag_assistant.records import Message, text_in
from rag_assistant.records.errors import QuestionDoesNotFit, SummaryRejected
from tests.history.conversations import user, without_notice
from tests.testkit.shared_data import shared_json

WINDOW = tuple(f"W{n:02}" for n in range(1, 21))
REPAIR = ("R01", "R02", "R03", "R04", "R05")
ITERATIONS = ("T01", "T02", "T03", "T04", "T05", "T06", "T07")
BUDGET = ("B01", "B02", "B03", "B06", "B07", "B08")
BUDGET_REFUSED = ("B04", "B05")
COUNT = ("B09",)
SUMMARY_MADE = ("S01", "S05")
SUMMARY_REFUSED = ("S02", "S03", "S04")
NOTHING_TO_SUMMARISE = ("S06",)
RESET = ("O01",)
CONFIRMED = ("C01",)
PENDING = ("C02",)
START_OF_WINDOW = ("K01", "K02")
LABELS = ("F01", "F02", "F03", "F04", "F05", "F07")
SMART = ("F06", "F08")
# These are about requests and stored rows, not about messages: the tests of storage and web have them.
ELSEWHERE = {
    "P01": "tests/web: a second question gets 409 while the first one runs",
    "P02": "tests/web and tests/storage: the same Idempotency-Key gives the same turn, with one call of the model",
}
GROUPS = (
    WINDOW, REPAIR, ITERATIONS, BUDGET, BUDGET_REFUSED, COUNT, SUMMARY_MADE, SUMMARY_REFUSED, NOTHING_TO_SUMMARISE,
    RESET, CONFIRMED, PENDING, START_OF_WINDOW, LABELS, SMART, tuple(ELSEWHERE),
)  # fmt: skip

DIFFERENCES = {
    "C01": "A finished confirmation takes both whole turns along, the one that asked and the one that answered.",
    "F08": "At least one recent turn always stays; only a window of 0 turns leaves all of them out.",
    "S05": "A summary is kept beside the messages and never is one; a later one extends its text and takes its place.",
}
OUR_LABELS = {
    "context_stale": "injected_before",
    "context_current": "injected",
    "active_chain": "active",
    "current_user": "current",
}


def cases(ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the cases with these ids."""
    by_id = {case["id"]: case for case in shared_json("history_cases/cases.json")}
    return [by_id[one] for one in ids]


def budget_cases(ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return cases in which a tool result is as long as its cost says: it stands there as three words."""
    return [
        {**case, "messages": [{**m, "content": m["content"] * (20 if m["role"] == "tool" else 1)}
                              if m["content"] else m for m in case["messages"]]}
        for case in cases(ids)
    ]  # fmt: skip


def test_every_case_is_handled_by_exactly_one_group() -> None:
    handled = Counter(one for group in GROUPS for one in group)
    assert handled == Counter(case["id"] for case in shared_json("history_cases/cases.json"))
    assert len(handled) == 62
    assert handled.keys() >= DIFFERENCES.keys()


def test_every_window_case() -> None:
    for case in cases(WINDOW):
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
    for case in cases(REPAIR):
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


def test_every_iteration_case() -> None:
    for case in cases(ITERATIONS):
        split = split_turns(case["messages"])
        kept = keep_last_iterations(split.current, case["params"]["keep_last_iterations"])
        sent = [*split.system, *(message for turn in split.past for message in turn), *kept.messages]
        assert sent == [case["messages"][i] for i in case["expect"]["kept"]], case["id"]
        assert kept.iterations_dropped == case["expect"]["dropped_iterations"], case["id"]
        fitted = fit_history(
            case["messages"],
            HistoryPolicy(max_history_turns=None, tool_iterations_keep=case["params"]["keep_last_iterations"]),
        )
        assert (fitted.messages, fitted.history_trimmed) == (sent, False), case["id"]


def counting(case: dict[str, Any]) -> CountTokens:
    """Return a counter by which each message costs what the case says, and the notice nothing."""
    costs = {"": 0, "{}": 0}
    for message, cost in zip(case["messages"], case["params"]["costs"], strict=True):
        calls = message.get("tool_calls")
        costs[calls[0]["function"]["name"] if calls else message["content"]] = cost - TOKENS_PER_MESSAGE

    def count(text: str) -> int:
        if text.startswith("[The result of"):
            return int(case["params"].get("mask_cost", max(costs.values()))) - TOKENS_PER_MESSAGE
        return -TOKENS_PER_MESSAGE if text.startswith("[History trimmed") else costs[text]

    return count


def budget_policy(case: dict[str, Any]) -> HistoryPolicy:
    return HistoryPolicy(
        max_history_turns=None,
        token_budget=case["params"]["budget"],
        reserved_tokens=case["params"].get("tool_schema_cost", 0) + case["params"].get("reserve_output", 0),
        count_tokens=counting(case),
    )


def test_every_budget_case() -> None:
    for case in budget_cases(BUDGET):
        fitted = fit_history(case["messages"], budget_policy(case))
        expected = [case["messages"][i] for i in case["expect"]["kept"]]
        sent = without_notice(fitted)
        masked = case["expect"].get("masked", [])
        assert len(sent) == len(expected), case["id"]
        for place, (got, want) in enumerate(zip(sent, expected, strict=True)):
            assert got == ({**want, "content": got["content"]} if place in masked else want), case["id"]
        assert fitted.receipt.results_shortened == len(masked), case["id"]
        assert fitted.history_trimmed is case["expect"]["history_trimmed"], case["id"]
        assert fitted.receipt.turns_dropped == case["expect"].get("dropped_turns", fitted.receipt.turns_dropped)


def test_every_case_that_no_budget_can_hold() -> None:
    for case in cases(BUDGET_REFUSED):
        with pytest.raises(QuestionDoesNotFit) as refused:
            fit_history(case["messages"], budget_policy(case))
        blame = "system" if refused.value.system_tokens > refused.value.budget else "current_user"
        assert blame == case["expect"]["blame"], case["id"]
        assert refused.value.budget == case["params"]["budget"], case["id"]


def test_characters_are_counted_as_the_model_sees_them() -> None:
    (case,) = cases(COUNT)
    assert estimate_tokens(text_in(case["messages"][0])) <= case["expect"]["tokens_max"]


def test_the_start_of_the_window_moves_as_told() -> None:
    for case in cases(START_OF_WINDOW):
        limit, slack = case["params"]["max_history_turns"], case["params"].get("extra_turns", 0)
        starts, fitted_starts = [], []
        for turns in range(case["params"]["turns"]):
            starts.append(turns - turns_in_window(turns, limit, slack))
            past = [{"role": role, "content": str(n)} for n in range(turns) for role in ("user", "assistant")]
            policy = HistoryPolicy(max_history_turns=limit, window_slack=slack)
            fitted_starts.append(fit_history([*past, user("now")], policy).receipt.turns_dropped)
        assert starts == fitted_starts == case["expect"]["starts"], case["id"]


def test_every_label_case() -> None:
    for case in cases(LABELS):
        structure = analyse_history(case["messages"])
        wanted = [OUR_LABELS.get(label, label) for label in case["expect"]["labels"]]
        assert list(structure.labels) == wanted, case["id"]
        assert list(structure.open_calls) == case["expect"].get("open_calls", []), case["id"]
        policy = HistoryPolicy(
            strategy="smart", tool_iterations_keep=0, pending=tuple(case["params"].get("pending", ()))
        )
        sent = fit_history(case["messages"], policy).messages
        if "kept_after_level_1" in case["expect"]:
            kept = [case["messages"][i] for i in case["expect"]["kept_after_level_1"]]
            assert [text_in(message) for message in sent] == [text_in(message) for message in kept], case["id"]
        if structure.open_calls:
            assert sent == case["messages"], case["id"]


def test_every_smart_case() -> None:
    (repeated, strictest) = cases(SMART)
    smart = HistoryPolicy(strategy="smart")
    assert fit_history(repeated["messages"], smart).messages == repeated["messages"]
    # F08
    assert fit_history(strictest["messages"], smart).messages == strictest["messages"]
    fitted = fit_history(strictest["messages"], HistoryPolicy(strategy="smart", max_history_turns=0))
    sent = without_notice(fitted)
    assert sent == [strictest["messages"][i] for i in strictest["expect"]["kept"]]


def test_a_finished_confirmation_leaves_and_what_was_done_upon_it_stays() -> None:
    (case,) = cases(CONFIRMED)
    fitted = fit_history(case["messages"], HistoryPolicy(purged=tuple(case["params"]["done"])))
    assert fitted.messages == [case["messages"][i] for i in case["expect"]["kept_verbatim"]]
    assert [(run.reason, run.first_turn, run.last_turn) for run in fitted.receipt.left_out] == [("purged", 2, 2)]
    assert not fitted.history_trimmed


def test_a_call_that_waits_for_a_person_changes_nothing() -> None:
    (case,) = cases(PENDING)
    policy = HistoryPolicy(max_history_turns=0, tool_iterations_keep=0, pending=tuple(case["params"]["pending"]))
    assert fit_history(case["messages"], policy).messages == case["messages"]


def test_a_reset_for_this_request_keeps_the_question_and_says_so() -> None:
    (case,) = cases(RESET)
    archived = case["expect"]["archived"]
    policy = HistoryPolicy(unread=(left_out("cleared", len(archived) // 2, len(archived), 1, 2, by_reset=True),))
    fitted = fit_history([case["messages"][i] for i in case["expect"]["kept"]], policy)
    assert fitted.history_trimmed is case["expect"]["history_trimmed"]
    assert without_notice(fitted) == [case["messages"][i] for i in case["expect"]["kept"]]
    assert (fitted.notice is not None) is case["expect"]["notice"]


def compacted(messages: list[Message], keep_last_turns: int, summary: HistorySummary) -> list[Message]:
    """Return what is sent when a summary stands for all turns but the last ones."""
    kept, _ = trim_history(messages, keep_last_turns)
    return fit_history(kept, HistoryPolicy(summary=summary)).messages


def test_a_summary_stands_once_behind_the_system_block_and_the_newest_turns_stay() -> None:
    for case in cases(SUMMARY_MADE):
        # S05: an earlier summary is no message of ours.
        said = [message for message in case["messages"] if "meta" not in message]
        text = checked_summary(case["params"]["summarizer_returns"], 40, estimate_tokens)
        keep = case["params"]["keep_last_turns"]
        turns = len(split_turns(said).past) + (len(case["messages"]) - len(said))
        system, quoted, acknowledged, *rest = compacted(said, keep, HistorySummary(text, 1, turns - keep))
        assert [system, *rest] == [case["messages"][i] for i in case["expect"]["kept_verbatim"]], case["id"]
        assert (quoted["role"], acknowledged["role"]) == ("user", "assistant")
        assert text in quoted["content"]
        assert sum("<summary>" in text_in(message) for message in [system, quoted, acknowledged, *rest]) == 1


def test_a_summary_that_failed_changes_nothing() -> None:
    for case in cases(SUMMARY_REFUSED):
        dropped = case["messages"][1:-1]
        source = sum(estimate_tokens(text_in(message)) for message in dropped)
        # S02: a model that fails gives no text at all; what it costs the request is tested with the assistant.
        text = case["params"].get("summarizer_returns", "")
        with pytest.raises(SummaryRejected):
            checked_summary(text * (20 if text.strip() else 1), source, estimate_tokens)
        sent = fit_history(case["messages"], HistoryPolicy(summary=None)).messages
        assert sent == [case["messages"][i] for i in case["expect"]["kept"]], case["id"]


def test_where_nothing_is_left_out_there_is_nothing_to_summarise() -> None:
    (case,) = cases(NOTHING_TO_SUMMARISE)
    messages, dropped = trim_history(case["messages"], case["params"]["keep_last_turns"])
    assert (messages, dropped) == (case["messages"], 0)
