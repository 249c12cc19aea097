"""What must hold for the request of every conversation, however odd: checked on generated ones."""

import copy
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_assistant.history import (
    TURNS_WORTH_READING,
    FittedHistory,
    HistoryPolicy,
    HistorySummary,
    fit_history,
    keep_last_iterations,
    left_out,
    repair_messages,
    split_turns,
    trim_history,
    turns_in_window,
)
from rag_assistant.history.fitting import summary_messages
from rag_assistant.history.receipt import LeftOutReason, without_notices
from rag_assistant.history.turns import holds_call, is_completed, joined, uses_tools, without_calls
from rag_assistant.history.window import without_injected
from rag_assistant.records import Message, text_in
from rag_assistant.records.errors import QuestionDoesNotFit
from tests.history.conversations import conversations, most_that_must_stay, policies, tokens, violations
from tests.history.examples import many_examples

SHORT = "[The result of"
CUT = "\n[cut: the rest of"


def fitted_or_refused(messages: list[Message], policy: HistoryPolicy) -> FittedHistory | None:
    """Return what is sent, or None where it was right to refuse."""
    try:
        return fit_history(messages, policy)
    except QuestionDoesNotFit as error:
        refused = error
    event("refused")
    assert policy.token_budget is not None
    assert refused.budget == max(0, policy.token_budget - policy.reserved_tokens)
    assert refused.tokens > refused.budget
    assert f"about {refused.tokens} tokens" in str(refused)
    assert f"the limit is {refused.budget}" in str(refused)
    assert most_that_must_stay(messages, policy) > policy.token_budget
    return None


def past_of(messages: list[Message], policy: HistoryPolicy) -> dict[int, Sequence[Message]]:
    """Return the past turns by their numbers."""
    turns = split_turns(repair_messages(messages)).past
    unseen = [run.last_turn for run in policy.unread] + ([policy.summary.last_turn] if policy.summary else [])
    first = max(unseen, default=0) + 1
    numbers = policy.turn_numbers or tuple(range(first, first + len(turns)))
    return dict(zip(numbers, turns, strict=False))


def without_meta(messages: Sequence[Message]) -> list[Message]:
    return [{name: value for name, value in message.items() if name != "meta"} for message in messages]


def body_of(fitted: FittedHistory) -> list[Message]:
    """Return what is sent behind the leading system block and the notice."""
    length = next((n for n, message in enumerate(fitted.messages) if message["role"] not in ("system", "developer")), 0)
    return fitted.messages[length:]


@many_examples
@given(conversations(), policies())
def test_what_is_sent_is_valid_and_its_input_stays_as_it_was(messages: list[Message], policy: HistoryPolicy) -> None:
    before = copy.deepcopy(messages)
    fitted = fitted_or_refused(messages, policy)
    assert messages == before
    if fitted is None:
        return
    assert violations(fitted.messages) == []
    assert fit_history(messages, policy) == fitted
    assert not any("meta" in message for message in fitted.messages)


@many_examples
@given(conversations(), policies())
def test_the_system_block_stands_first_then_the_notice_and_the_question_is_always_there(
    messages: list[Message], policy: HistoryPolicy
) -> None:
    fitted = fitted_or_refused(messages, policy)
    if fitted is None:
        return
    split = split_turns(repair_messages(messages))
    block = [*split.system, *([{"role": "system", "content": fitted.notice}] if fitted.notice else [])]
    if policy.merge_system_messages and len(block) > 1:
        block = [{"role": "system", "content": "\n\n".join(text_in(message) for message in block)}]
    assert fitted.messages[: len(block)] == block
    assert sum("[History trimmed" in text_in(message) for message in fitted.messages) == bool(fitted.notice)
    asked = [message for message in without_meta(split.current) if message["role"] == "user"]
    said = [message for message in fitted.messages if message["role"] == "user"]
    assert asked
    assert said[-len(asked) :] == asked


@many_examples
@given(conversations(), policies())
def test_what_is_sent_are_the_kept_turns_whole_and_in_their_order(
    messages: list[Message], policy: HistoryPolicy
) -> None:
    fitted = fitted_or_refused(messages, policy)
    if fitted is None:
        return
    past, receipt = past_of(messages, policy), fitted.receipt
    kept = [past[number] for number in receipt.kept_turns]
    if any(holds_call(turn, policy.purged) for turn in past.values()):
        return  # See the property of purging.
    if policy.strategy == "smart":
        kept = [without_injected(turn) for turn in kept]
    current = split_turns(repair_messages(messages)).current
    running = keep_last_iterations(current, receipt.iterations_kept, policy.pending).messages
    history = summary_messages(policy.summary) if policy.summary and receipt.summary_sent else []
    expected = without_meta([*history, *(message for turn in kept for message in turn), *running])
    sent = body_of(fitted)
    # An assistant's greeting does not stand first, some providers refuse that.
    assert all(message["role"] != "user" for message in expected[: len(expected) - len(sent)])
    shortened = cut = 0
    for want, got in zip(expected[len(expected) - len(sent) :], sent, strict=True):
        if want != got:
            assert want["role"] == "tool"
            assert {**want, "content": got["content"]} == got
            assert len(text_in(got)) < len(text_in(want))
            short = text_in(got).startswith(SHORT)
            shortened, cut = shortened + short, cut + (not short)
            assert short or (CUT in text_in(got) and text_in(want).startswith(text_in(got).split(CUT)[0]))
    assert (shortened, cut) == (receipt.results_shortened, receipt.results_cut)


@many_examples
@given(conversations(), policies())
def test_every_turn_is_kept_or_left_out_for_one_reason_and_the_flag_tells_the_truth(
    messages: list[Message], policy: HistoryPolicy
) -> None:
    fitted = fitted_or_refused(messages, policy)
    if fitted is None:
        return
    receipt, past = fitted.receipt, past_of(messages, policy)
    unread = {n for run in policy.unread for n in range(run.first_turn, run.last_turn + 1)}
    runs = [list(range(run.first_turn, run.last_turn + 1)) for run in receipt.left_out]
    assert [len(run) for run in runs] == [run.turns for run in receipt.left_out]
    assert sorted([*receipt.kept_turns, *(n for run in runs for n in run)]) == sorted([*past, *unread])

    trimming = [run for run in receipt.left_out if run.trimmed]
    assert {run.reason for run in trimming} <= {"turn_limit", "filtered", "token_limit"}
    assert fitted.history_trimmed is bool(trimming) is (fitted.notice is not None)
    assert receipt.turns_kept == len(receipt.kept_turns)
    assert receipt.turns_dropped == sum(run.turns for run in trimming)
    assert receipt.messages_dropped == sum(run.messages for run in trimming)
    answered = [run for run in receipt.left_out if run.reason != "failed"]
    assert receipt.turns_total == receipt.turns_kept + sum(run.turns for run in answered)
    assert receipt.reason == (trimming[-1].reason if trimming else None)
    assert receipt.first_kept_turn == (receipt.kept_turns[0] if receipt.kept_turns else None)

    reasons = {n: run.reason for run, numbers in zip(receipt.left_out, runs, strict=True) for n in numbers}
    waiting = {number for number, turn in past.items() if holds_call(turn, policy.pending)}
    assert waiting <= set(receipt.kept_turns)
    assert set(policy.excluded).isdisjoint(set(receipt.kept_turns) - waiting)
    for number in set(policy.pinned) & (past.keys() - set(receipt.kept_turns)):
        assert reasons[number] in ("excluded", "purged", "token_limit")
    for number in past:
        if holds_call(past[number], policy.purged) and number not in waiting:
            others = uses_tools(without_calls(past[number], policy.purged))
            assert others or reasons[number] == "purged"
    # The budget takes the oldest turns first, and leaves no hole but around what is pinned or waits.
    movable = [n for n in past if n not in waiting and n not in policy.pinned]
    by_budget = [n for n in movable if reasons.get(n) == "token_limit"]
    assert not by_budget or all(n > by_budget[-1] for n in movable if n in receipt.kept_turns)


@many_examples
@given(conversations())
def test_purging_takes_no_result_of_another_call_and_no_answer_made_of_it(messages: list[Message]) -> None:
    everything = HistoryPolicy(max_history_turns=None, tool_iterations_keep=None)
    # What comes out has no ``meta``, and an injected block would begin a turn there that was none.
    plain = [{name: value for name, value in message.items() if name != "meta"} for message in messages]
    whole, purged = (fit_history(plain, replace(everything, purged=ids)).messages for ids in ((), ("done",)))
    assert violations(purged) == []
    past = split_turns(whole).past
    assert not any(holds_call(turn, ("done",)) for turn in split_turns(purged).past)
    others = [turn for turn in past if uses_tools(without_calls(turn, ("done",)))]
    answers = [turn[-1] for turn in others if turn[-1]["role"] == "assistant"]
    assert_in_order(answers, [message for message in purged if message["role"] == "assistant"])
    results = [one for turn in others for one in without_calls(turn, ("done",)) if one["role"] == "tool"]
    assert_in_order(results, [message for message in purged if message["role"] == "tool"])


def assert_in_order(some: Sequence[Message], among: Sequence[Message]) -> None:
    rest = iter(among)
    assert all(message in rest for message in some)


@many_examples
@given(conversations(), policies())
def test_what_waits_for_a_person_stays_as_it_is(messages: list[Message], policy: HistoryPolicy) -> None:
    policy = replace(policy, pending=("wait",))
    fitted = fitted_or_refused(messages, policy)
    if fitted is None:
        return
    sent = body_of(fitted)
    split = split_turns(repair_messages(messages))
    for turn in split.past:
        if holds_call(turn, policy.pending):
            whole = without_injected(turn) if policy.strategy == "smart" else turn
            asked = next(n for n, message in enumerate(whole) if message["role"] == "user")
            waiting = without_meta(whole[asked:])
            assert any(sent[n : n + len(waiting)] == waiting for n in range(len(sent)))
    waits = False
    for message in split.current:
        waits = waits if message["role"] == "tool" else holds_call([message], policy.pending)
        assert not waits or message in sent


def test_a_summary_without_room_makes_room_for_the_notice_too() -> None:
    summary = HistorySummary("They spoke of things. " * 3, 1, 1)
    gone = left_out("summarised", 1, 2, 1, 1)
    question: Message = {"role": "user", "content": "now"}
    for budget in range(1, 40):
        policy = HistoryPolicy(max_history_turns=None, token_budget=budget, summary=summary, unread=(gone,))
        with suppress(QuestionDoesNotFit):
            assert tokens(fit_history([question], policy).messages) <= budget


@many_examples
@given(conversations(), policies())
def test_a_request_is_within_its_budget_or_refused(messages: list[Message], policy: HistoryPolicy) -> None:
    fitted = fitted_or_refused(messages, policy)
    if fitted is None:
        return
    total = tokens(fitted.messages) + policy.reserved_tokens
    assert sum(fitted.receipt.tokens.values()) == total
    assert min(fitted.receipt.tokens.values()) >= 0
    if policy.token_budget is None:
        assert fitted.receipt.results_shortened == fitted.receipt.results_cut == 0
        assert all(run.reason != "token_limit" for run in fitted.receipt.left_out)
    else:
        assert total <= policy.token_budget


@many_examples
@given(conversations(), policies())
def test_what_was_fitted_stays_as_it_is_when_it_is_fitted_again(messages: list[Message], policy: HistoryPolicy) -> None:
    fitted = fitted_or_refused(messages, policy)
    if fitted is None:
        return
    once = list(without_notices(fitted.messages))
    assert not any("[History trimmed" in text_in(message) for message in once)
    # Everything that names turns is left out: they have other numbers now, and those to leave out are gone.
    again = HistoryPolicy(
        max_history_turns=None,
        tool_iterations_keep=None,
        token_budget=policy.token_budget,
        reserved_tokens=policy.reserved_tokens,
        merge_system_messages=policy.merge_system_messages,
        pending=policy.pending,
    )
    twice = fit_history(fitted.messages, again)
    assert (twice.messages, twice.history_trimmed, twice.notice) == (
        fitted.messages, fitted.history_trimmed, fitted.notice,
    )  # fmt: skip
    assert trim_history(once, None) == (once, 0)


def test_a_question_whose_answer_was_purged_counts_as_no_turn() -> None:
    def call(name: str) -> list[Message]:
        function = {"name": "look", "arguments": "{}"}
        asked: Message = {"role": "assistant", "tool_calls": [{"id": name, "type": "function", "function": function}]}
        return [asked, {"role": "tool", "tool_call_id": name, "content": "found"}]

    asked, answered = call("a")
    messages: list[Message] = [{"role": "user", "content": "yes"}, asked, {"role": "user", "content": "and hurry"}]
    messages += [answered, *call("done")]
    messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "now"}]
    unread = (left_out("turn_limit", 1, 2, 1, 1),)
    fitted = fit_history(messages, HistoryPolicy(max_history_turns=None, purged=("done",), unread=unread))
    assert fitted.notice == "[History trimmed to last 0 turns]"
    assert fit_history(fitted.messages, HistoryPolicy(max_history_turns=None)).notice == fitted.notice


@many_examples
@given(conversations(), policies(), st.integers(0, 12), st.integers(1, 3))
def test_a_larger_window_never_keeps_fewer_turns(
    messages: list[Message], policy: HistoryPolicy, limit: int, more: int
) -> None:
    smaller = fitted_or_refused(messages, replace(policy, max_history_turns=limit))
    for larger_limit in (limit + more, None):
        larger = fitted_or_refused(messages, replace(policy, max_history_turns=larger_limit))
        assert (smaller is None) or (larger is not None)
        if smaller is not None and larger is not None:
            assert set(smaller.receipt.kept_turns) <= set(larger.receipt.kept_turns)


@many_examples
@given(conversations(), policies(), st.integers(0, 900), st.one_of(st.integers(1, 8), st.integers(1, 900)))
def test_a_larger_budget_never_keeps_fewer_turns(
    messages: list[Message], policy: HistoryPolicy, budget: int, more: int
) -> None:
    smaller = fitted_or_refused(messages, replace(policy, token_budget=budget))
    for larger_budget in (budget + more, None):
        larger = fitted_or_refused(messages, replace(policy, token_budget=larger_budget))
        assert (smaller is None) or (larger is not None)
        if smaller is not None and larger is not None:
            assert set(smaller.receipt.kept_turns) <= set(larger.receipt.kept_turns)
            assert smaller.receipt.iterations_kept <= larger.receipt.iterations_kept


@many_examples
@given(conversations(), policies())
def test_reading_only_what_the_rules_may_keep_sends_the_same(messages: list[Message], policy: HistoryPolicy) -> None:
    split = split_turns(repair_messages(messages))
    past = [turn for turn in split.past if is_completed(turn)]
    total, limit = len(past), policy.max_history_turns
    whole_policy = replace(policy, unread=(), turn_numbers=(), summary=None, excluded=(), purged=(), pending=())
    whole = fitted_or_refused([*split.system, *joined(past), *split.current], whole_policy)

    smart = min(total, TURNS_WORTH_READING)
    newest = smart if policy.strategy == "smart" else turns_in_window(total, limit, policy.window_slack)
    read = [n for n in range(1, total + 1) if n > total - newest or n in policy.pinned]
    reason: LeftOutReason = "filtered" if policy.strategy == "smart" else "turn_limit"
    unread = [left_out(reason, 1, len(past[n - 1]), n, n) for n in range(1, total + 1) if n not in read]
    window_policy = replace(whole_policy, unread=tuple(unread), turn_numbers=(*read, total + 1))
    window = fitted_or_refused([*split.system, *joined(past[n - 1] for n in read), *split.current], window_policy)
    assert window == whole
