"""fit_history: from everything that was said to exactly what the model sees, with a receipt of what was left out.

Pure: no Flask, no SQL, no network, no clock. The steps stand in ``fit_history`` in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_assistant.history.budget import CountTokens, count_message, estimate_tokens, newest_that_fit, text_of
from rag_assistant.history.iterations import keep_last_iterations
from rag_assistant.history.repair import repair_messages
from rag_assistant.history.turns import joined, split_turns
from rag_assistant.history.window import check_history_limit
from rag_assistant.records import Message


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """What may reach the model.

    ``tool_iterations_keep`` is for the running turn: how many of its tool iterations stay, besides those that are open
    or have a call in ``pending``, which waits for a person.
    ``token_budget`` is for the whole request, without the answer; ``None`` sets no limit. A store that reads only the
    window says with ``unread_turns`` and ``unread_messages`` how much it left unread before the first message, and
    with ``turn_numbers`` how the past turns in the messages and the current turn are numbered (default: 1, 2, 3 behind
    the unread ones).
    """

    max_history_turns: int | None = 5
    tool_iterations_keep: int | None = 2
    pending: tuple[str, ...] = ()
    token_budget: int | None = None
    count_tokens: CountTokens = estimate_tokens
    merge_system_messages: bool = False
    unread_turns: int = 0
    unread_messages: int = 0
    turn_numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run of neighbouring turns that the model does not see, and why."""

    reason: str
    turns: int
    messages: int
    first_turn: int
    last_turn: int


@dataclass(frozen=True, slots=True)
class HistoryReceipt:
    """The figures of one request: turns and messages, kept and left out, and tokens by part (estimated)."""

    max_history_turns: int | None
    strategy: str
    turns_total: int
    turns_kept: int
    turns_dropped: int
    messages_dropped: int
    first_kept_turn: int | None
    reason: str | None
    left_out: tuple[LeftOut, ...]
    iterations_kept: int = 0
    iterations_dropped: int = 0
    tokens: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FittedHistory:
    """The messages to send, whether a past turn was left out, the notice that says so, and the receipt."""

    messages: list[Message]
    history_trimmed: bool
    notice: str | None
    receipt: HistoryReceipt


def fit_history(messages: Sequence[Message], policy: HistoryPolicy) -> FittedHistory:
    """Return what the model sees of ``messages`` under ``policy``: valid to every provider, the input unchanged.

    Raises InvalidHistoryLimit for a bad ``max_history_turns`` and QuestionDoesNotFit when system message and question
    alone are over the token budget.
    """
    limit = check_history_limit(policy.max_history_turns)
    # Mended before it is measured; every later cut falls between turns, so what is valid stays valid.
    split = split_turns(repair_messages(messages))
    count = policy.count_tokens
    numbers = policy.turn_numbers or tuple(range(policy.unread_turns + 1, policy.unread_turns + len(split.past) + 2))

    iterations = keep_last_iterations(split.current, policy.tool_iterations_keep, policy.pending)
    current = iterations.messages
    in_window = split.past if limit is None else split.past[max(0, len(split.past) - limit) :]

    system_tokens = _count(split.system, count)
    current_tokens = _count(current, count)
    kept = in_window
    if policy.token_budget is not None:
        # The notice's own tokens are reserved, so that adding it can never lead over the budget.
        fixed = system_tokens + current_tokens + count_message(_system(notice_for(len(in_window))), count)
        kept = in_window[len(in_window) - newest_that_fit(in_window, fixed, policy.token_budget, count) :]

    left_out = _left_out(policy, split.past, numbers, len(in_window), len(kept))
    notice = notice_for(len(kept)) if left_out else None
    system_block = [*split.system, _system(notice)] if notice else list(split.system)
    if policy.merge_system_messages and len(system_block) > 1:
        system_block = [_system("\n\n".join(text_of(message) for message in system_block))]

    dropped_turns = sum(run.turns for run in left_out)
    return FittedHistory(
        messages=[*system_block, *joined(kept), *current],
        history_trimmed=bool(left_out),
        notice=notice,
        receipt=HistoryReceipt(
            max_history_turns=limit,
            strategy="window",
            turns_total=policy.unread_turns + len(split.past),
            turns_kept=len(kept),
            turns_dropped=dropped_turns,
            messages_dropped=sum(run.messages for run in left_out),
            first_kept_turn=numbers[len(split.past) - len(kept)] if kept else None,
            reason=left_out[-1].reason if left_out else None,
            left_out=left_out,
            iterations_kept=iterations.iterations_kept,
            iterations_dropped=iterations.iterations_dropped,
            tokens={
                "system": _count(system_block, count),
                "history": sum(_count(turn, count) for turn in kept),
                "question": current_tokens,
            },
        ),
    )


def notice_for(kept_turns: int) -> str:
    """Return the sentence that tells the model how much of the conversation it sees."""
    return f"[History trimmed to last {kept_turns} turns]"


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


def _count(messages: Sequence[Message], count_tokens: CountTokens) -> int:
    return sum(count_message(message, count_tokens) for message in messages)


def _left_out(
    policy: HistoryPolicy,
    past: Sequence[Sequence[Message]],
    numbers: Sequence[int],
    in_window: int,
    kept: int,
) -> tuple[LeftOut, ...]:
    """Return the runs of turns outside the window and over the budget, oldest first; empty runs are left away."""
    window_start, kept_start = len(past) - in_window, len(past) - kept
    outside = LeftOut(
        reason="turn_limit",
        turns=policy.unread_turns + window_start,
        messages=policy.unread_messages + sum(len(turn) for turn in past[:window_start]),
        first_turn=1 if policy.unread_turns else numbers[0],
        last_turn=numbers[window_start] - 1,
    )
    over_budget = LeftOut(
        reason="token_limit",
        turns=kept_start - window_start,
        messages=sum(len(turn) for turn in past[window_start:kept_start]),
        first_turn=numbers[window_start],
        last_turn=numbers[kept_start] - 1,
    )
    return tuple(run for run in (outside, over_budget) if run.turns)
