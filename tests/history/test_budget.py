"""The token budget: what leaves first, what stays to the last, and when a request is refused."""

import pytest
from msgspec.structs import replace

from rag_assistant.history import FittedHistory, HistoryPolicy, HistorySummary, estimate_tokens, fit_history
from rag_assistant.history.budget import TOKENS_PER_ATTACHMENT, count_message
from rag_assistant.records import Message
from rag_assistant.records.errors import QuestionDoesNotFit
from tests.history.conversations import (
    NOW,
    SYSTEM,
    assistant,
    iteration,
    tokens,
    tool_turn,
    turn,
    turns,
    user,
    without_notice,
)

LONG = "found it " * 200
ALL = HistoryPolicy(max_history_turns=None, tool_iterations_keep=None)

ROOM_FOR_NOTICE = 25


def long_turn(n: int) -> list[Message]:
    return [user(f"Q{n}"), assistant("word " * 100)]


def fitted(messages: list[Message], budget: int, policy: HistoryPolicy = ALL) -> FittedHistory:
    fitted = fit_history(messages, replace(policy, token_budget=budget))
    assert tokens(fitted.messages) <= budget
    return fitted


def test_what_fits_exactly_stays() -> None:
    messages = [SYSTEM, *turns(3), NOW]
    assert fitted(messages, tokens(messages)).messages == messages
    assert fitted(messages, tokens(messages) - 1).history_trimmed


def test_an_earlier_result_becomes_a_line_that_names_the_tool_and_the_size_before_a_turn_goes() -> None:
    messages = [SYSTEM, *tool_turn(1, name="search", result=LONG), *turn(2), NOW]
    shorter = fitted(messages, tokens(messages) - 1)
    result = shorter.messages[3]
    assert result == {
        "role": "tool",
        "tool_call_id": "call-1",
        "content": "[The result of search, 1800 characters, is not shown]",
    }
    assert (shorter.history_trimmed, shorter.notice, shorter.receipt.results_shortened) == (False, None, 1)


def test_the_oldest_result_is_shortened_first() -> None:
    messages = [*tool_turn(1, result=LONG), *tool_turn(2, result=LONG), NOW]
    contents = [message["content"] for message in fitted(messages, tokens(messages) - 1).messages]
    assert LONG not in contents[:3]
    assert LONG in contents[3:]


def test_then_the_oldest_turns_go_and_leave_no_hole() -> None:
    messages = [SYSTEM, *turn(1), *long_turn(2), *turn(3), NOW]
    shorter = fitted(messages, tokens([SYSTEM, *turn(1), *turn(3), NOW]) + ROOM_FOR_NOTICE)
    assert without_notice(shorter) == [SYSTEM, *turn(3), NOW]
    assert shorter.notice == "[History trimmed to last 1 turns]"
    assert shorter.receipt.reason == "token_limit"


def test_then_older_iterations_of_the_running_turn_go() -> None:
    running = [NOW, *iteration("a", result=LONG), *iteration("b", result=LONG), *iteration("c", result=LONG)]
    messages = [SYSTEM, *turns(3), *running]
    shorter = fitted(messages, tokens([SYSTEM, *running]) - 100)
    assert without_notice(shorter) == [SYSTEM, NOW, *running[3:]]
    assert (shorter.receipt.turns_kept, shorter.receipt.iterations_dropped, shorter.receipt.results_cut) == (0, 1, 0)


def test_then_the_longest_result_of_the_last_iteration_is_cut_and_marked_as_cut() -> None:
    call, short, long = iteration("a", "b", result=LONG)
    short = {**short, "content": "a short one"}
    cut = fitted([SYSTEM, NOW, call, short, long], 200)
    assert cut.messages[:4] == [SYSTEM, NOW, call, short]
    content = cut.messages[4]["content"]
    assert content.endswith("\n[cut: the rest of 1800 characters is not shown]")
    assert LONG.startswith(content.split("\n[cut")[0])
    assert (cut.receipt.results_cut, cut.history_trimmed) == (1, False)
    assert tokens(cut.messages) == 200


def test_a_cut_result_fits_although_its_end_has_fewer_tokens_than_its_beginning() -> None:
    running = [NOW, *iteration("a", result="見つかった" * 300 + "x" * 3000)]
    cut = fitted([*turns(1), *running], 700, replace(ALL, pinned=(1,)))
    assert cut.receipt.kept_turns == (1,)


def test_pinned_turns_go_before_a_question_is_refused_and_not_before_anything_else() -> None:
    messages = [SYSTEM, *long_turn(1), *long_turn(2), *long_turn(3), *long_turn(4), NOW]
    policy = replace(ALL, pinned=(1, 2))
    bare, each = tokens([SYSTEM, NOW]) + ROOM_FOR_NOTICE, tokens(long_turn(1))
    assert fitted(messages, bare + 2 * each, policy).receipt.kept_turns == (1, 2)
    assert fitted(messages, bare + each, policy).receipt.kept_turns == (2,)
    none = fitted(messages, bare, policy)
    assert (none.receipt.kept_turns, none.receipt.reason) == ((), "token_limit")


def test_the_summary_goes_last() -> None:
    policy = replace(ALL, summary=HistorySummary("They chose blue.", 1, 4), pinned=(5,))
    messages = [SYSTEM, *long_turn(5), NOW]
    cost = tokens(fit_history(messages, policy).messages)
    without_turn = fitted(messages, cost - 1, policy)
    assert (without_turn.receipt.turns_kept, without_turn.receipt.summary_sent) == (0, True)
    bare = fitted(messages, tokens([SYSTEM, NOW]) + ROOM_FOR_NOTICE, policy)
    assert (bare.receipt.turns_kept, bare.receipt.summary_sent) == (0, False)


def test_a_refusal_names_both_figures_and_what_to_do() -> None:
    with pytest.raises(QuestionDoesNotFit) as refused:
        fitted([SYSTEM, *turns(3), user("why? " * 100)], 60)
    # The notice is counted: a turn was left out before the refusal.
    assert refused.value.tokens > 60
    assert str(refused.value).startswith(
        f"The question and its instructions have about {refused.value.tokens} tokens, "
        f"{tokens([SYSTEM])} of them instructions; the limit is 60. Ask a shorter question"
    )


def test_a_refusal_blames_the_instructions_where_they_alone_are_too_long() -> None:
    with pytest.raises(QuestionDoesNotFit, match=r"Shorten the instructions in settings\.json"):
        fitted([{"role": "system", "content": LONG}, NOW], 100)


def test_a_refusal_never_names_less_than_nothing() -> None:
    with pytest.raises(QuestionDoesNotFit, match=r"; the limit is 0"):
        fitted([NOW], 10, replace(ALL, reserved_tokens=50))


def test_what_is_reserved_for_tools_and_answer_is_kept_free() -> None:
    messages = [SYSTEM, *turns(3), NOW]
    assert fitted(messages, tokens(messages) + 20, replace(ALL, reserved_tokens=20)).messages == messages
    tight = fitted(messages, tokens(messages) + 20, replace(ALL, reserved_tokens=21))
    assert tight.receipt.turns_kept < 3
    assert tight.receipt.tokens["tools"] == 21


def test_what_waits_for_a_person_is_neither_shortened_nor_cut_nor_left_out() -> None:
    waiting = [NOW, *iteration("wait", result=LONG)]
    policy = replace(ALL, pending=("wait",))
    with pytest.raises(QuestionDoesNotFit):
        fitted([*turns(2), *waiting], 300, policy)
    asked = [user("Q1"), *iteration("wait", result=LONG), assistant("Delete them?")]
    shorter = fitted([*asked, *long_turn(2), NOW], tokens([*asked, NOW]) + ROOM_FOR_NOTICE, policy)
    assert without_notice(shorter) == [*asked, NOW]


def test_a_picture_counts_although_it_has_no_text() -> None:
    picture: Message = {
        "role": "user",
        "content": [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
    }
    text = count_message(user("what?"), estimate_tokens)
    assert count_message(picture, estimate_tokens) == text + TOKENS_PER_ATTACHMENT


@pytest.mark.parametrize("pinned", [False, True])
def test_no_step_counts_everything_anew(pinned: bool) -> None:
    past = [message for n in range(300) for message in tool_turn(n, result=LONG)]
    running = [message for n in range(300) for message in iteration(f"now-{n}", result=LONG)]
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += 1
        return estimate_tokens(text)

    policy = replace(ALL, count_tokens=count, pinned=tuple(range(301)) if pinned else ())
    shorter = fitted([SYSTEM, *past, NOW, *running], 150, policy)
    assert shorter.receipt.turns_kept == 0
    assert shorter.receipt.iterations_kept == shorter.receipt.results_cut == 1
    assert counted < 20 * (len(past) + len(running))
