"""The token budget: what a request may cost, and what is left out when it costs more, cheapest first. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from math import ceil
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.history.turns import tool_calls_of
from rag_assistant.history.window import keep_last_iterations
from rag_assistant.records import THOUGHTS, Message, text_in
from rag_assistant.records.errors import QuestionDoesNotFit

CountTokens = Callable[[str], int]
Item = TypeVar("Item")

# What a chat template adds to each message (role, separators), according to OpenAI's guide to counting.
TOKENS_PER_MESSAGE = 4
# Between what a tokenizer (SmolLM2's) makes of English, German and code, and of Chinese: see bench/README.md.
ASCII_CHARACTERS_PER_TOKEN = 3.6
OTHER_BYTES_PER_TOKEN = 1.6
# A picture or sound in a message: its size says nothing about its tokens, so it counts as a flat sum.
TOKENS_PER_ATTACHMENT = 1000
MIN_CUT_RESULT_TOKENS = 200


def in_parts(items: Iterable[Item], limit: int, tokens_of: Callable[[Item], float]) -> list[list[Item]]:
    """Return items in parts of at most ``limit`` tokens, each with at least one; a single empty part without any."""
    parts: list[list[Item]] = [[]]
    used = 0.0
    for item in items:
        tokens = tokens_of(item)
        if parts[-1] and used + tokens > limit:
            parts.append([])
            used = 0.0
        parts[-1].append(item)
        used += tokens
    return parts


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in ``text``, linear in its length in UTF-8."""
    in_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - in_ascii
    return ceil(in_ascii / ASCII_CHARACTERS_PER_TOKEN + others / OTHER_BYTES_PER_TOKEN)


def count_message(message: Message, count_tokens: CountTokens) -> int:
    """Return the tokens of one message: its text, its attachments, its tool calls and what the chat template adds."""
    tokens = TOKENS_PER_MESSAGE + count_tokens(text_in(message))
    content = message.get("content")
    if isinstance(content, list):
        tokens += TOKENS_PER_ATTACHMENT * sum(1 for part in content if part.get("text") is None)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        tokens += count_tokens(function.get("name") or "") + count_tokens(function.get("arguments") or "")
    return tokens + sum(count_tokens(str(message[name])) for name in THOUGHTS if name in message)


def count_messages(messages: Sequence[Message], count_tokens: CountTokens) -> int:
    return sum(count_message(message, count_tokens) for message in messages)


class BudgetTurn(Struct, frozen=True):
    """A past turn before the budget; ``held`` turns are pinned, one that ``waits`` awaits confirmation."""

    messages: Sequence[Message]
    held: bool = False
    waits: bool = False


class Budgeted(Struct, frozen=True):
    """The result: for each past turn its messages or ``None``, the running turn, and whether the summary stays."""

    past: tuple[Sequence[Message] | None, ...]
    current: Sequence[Message]
    summary: Sequence[Message]
    results_shortened: int = 0
    iterations_dropped: int = 0
    iteration_messages_dropped: int = 0
    results_cut: int = 0


class Fixed(Struct, frozen=True):
    """What is never left out: tokens of the system block, of the notice, and those reserved for tools and answer."""

    system: int
    notice: int
    reserved: int = 0


def fit_budget(
    past: Sequence[BudgetTurn],
    current: Sequence[Message],
    summary: Sequence[Message],
    fixed: Fixed,
    budget: int,
    count_tokens: CountTokens,
    *,
    trimmed: bool = False,
    pending: Collection[str] = (),
) -> Budgeted:
    """Return what fits into ``budget`` tokens, losing the cheapest first.

    In this order: tool results of earlier turns become one line each, oldest turn first; the oldest turns go, whole,
    without a hole; older iterations of the running turn go, but never the last one; its longest tool results are cut;
    pinned turns go; the summary goes. What awaits confirmation stays as it is. ``trimmed`` says that something was left
    out before, so that the notice is sent in any case. Raises QuestionDoesNotFit when instructions and question alone
    are over the budget.
    """
    budgeted = Budgeted(tuple(turn.messages for turn in past), current, summary)
    costs = [count_messages(turn.messages, count_tokens) for turn in past]
    always = fixed.system + fixed.reserved + (fixed.notice if trimmed else 0)
    # Carried from step to step, to avoid counting everything again.
    excess = always + sum(costs) + count_messages([*current, *summary], count_tokens) - budget
    if excess <= 0:
        return budgeted
    first_loss = 0 if trimmed else fixed.notice
    budgeted, excess = _with_newest_turns(budgeted, past, costs, excess, first_loss, count_tokens)
    budgeted, excess = _with_fewer_iterations(budgeted, excess, count_tokens, pending)
    budgeted, excess = _with_cut_results(budgeted, excess, count_tokens, pending)
    budgeted, excess = _without_pinned(budgeted, past, excess, first_loss, count_tokens)
    if excess > 0 and budgeted.summary:
        # The model has to be told that nothing replaces those turns now.
        excess += first_loss if None not in budgeted.past else 0
        excess -= count_messages(budgeted.summary, count_tokens)
        budgeted = replace(budgeted, summary=())
    if excess > 0:
        allowed = max(0, budget - fixed.reserved)
        raise QuestionDoesNotFit(budget + excess - fixed.reserved, allowed, fixed.system)
    return replace(budgeted, results_shortened=_shortened(past, budgeted.past))


def _with_newest_turns(
    whole: Budgeted,
    past: Sequence[BudgetTurn],
    costs: Sequence[int],
    excess: int,
    first_loss: int,
    count_tokens: CountTokens,
) -> tuple[Budgeted, int]:
    """Return the newest turns that fit with short results; then restore full results, newest first.

    ``first_loss`` are the tokens of the notice that is sent as soon as a turn goes.
    """
    short = [turn.messages if turn.waits else _with_short_results(turn.messages) for turn in past]
    saved = [cost - count_messages(turn, count_tokens) for cost, turn in zip(costs, short, strict=True)]
    excess -= sum(saved)
    fitted: list[Sequence[Message] | None] = list(short)
    for index, turn in enumerate(past):
        if excess <= 0:
            break
        if not (turn.held or turn.waits):
            fitted[index] = None
            excess += first_loss - (costs[index] - saved[index])
            first_loss = 0
    for index in reversed(range(len(past))):
        if fitted[index] is None:
            continue
        if excess + saved[index] > 0:
            break
        fitted[index] = past[index].messages
        excess += saved[index]
    return replace(whole, past=tuple(fitted)), excess


def _with_fewer_iterations(
    budgeted: Budgeted, excess: int, count_tokens: CountTokens, pending: Collection[str]
) -> tuple[Budgeted, int]:
    """Return the running turn without as many of its older iterations as necessary; the last one stays."""
    max_iterations = keep_last_iterations(budgeted.current, None, pending).iterations_kept
    if excess <= 0 or max_iterations < 2:
        return budgeted, excess

    def cost(limit: int) -> int:
        return count_messages(keep_last_iterations(budgeted.current, limit, pending).messages, count_tokens)

    before = cost(max_iterations)
    limit = max(1, bisect_right(range(1, max_iterations), before - excess, key=cost))
    fewer = keep_last_iterations(budgeted.current, limit, pending)
    fitted = replace(
        budgeted,
        current=fewer.messages,
        iterations_dropped=fewer.iterations_dropped,
        iteration_messages_dropped=fewer.messages_dropped,
    )
    return fitted, excess - (before - cost(limit))


def _with_cut_results(
    budgeted: Budgeted, excess: int, count_tokens: CountTokens, pending: Collection[str]
) -> tuple[Budgeted, int]:
    """Return the running turn with its longest tool results cut and marked; not beside a pending call."""
    current = list(budgeted.current)
    results: list[int] = []
    waits = False
    for index, message in enumerate(current):
        calls = tool_calls_of(message)
        if calls:
            waits = any(call.get("id") in pending for call in calls)
        elif message["role"] == "tool" and not waits:
            results.append(index)
    cut = 0
    for index in sorted(results, key=lambda one: -len(text_in(current[one]))):
        if excess <= 0:
            break
        before = count_message(current[index], count_tokens)
        shorter = _cut(current[index], before - excess, count_tokens)
        saved = before - count_message(shorter, count_tokens)
        if saved > 0:
            current[index] = shorter
            excess -= saved
            cut += 1
    return (replace(budgeted, current=tuple(current), results_cut=cut) if cut else budgeted), excess


def _without_pinned(
    budgeted: Budgeted, past: Sequence[BudgetTurn], excess: int, first_loss: int, count_tokens: CountTokens
) -> tuple[Budgeted, int]:
    """Return what is left without as many of the oldest pinned turns as necessary."""
    fitted = list(budgeted.past)
    if None in fitted:
        first_loss = 0
    for index, turn in enumerate(past):
        if excess <= 0:
            break
        if turn.held and not turn.waits:
            excess += first_loss - count_messages(fitted[index] or (), count_tokens)
            first_loss = 0
            fitted[index] = None
    return replace(budgeted, past=tuple(fitted)), excess


def _shortened(past: Sequence[BudgetTurn], fitted: Sequence[Sequence[Message] | None]) -> int:
    """Return how many results of the remaining turns became one line."""
    return sum(
        before is not after
        for turn, left in zip(past, fitted, strict=True)
        if left is not None
        for before, after in zip(turn.messages, left, strict=True)
    )


def _with_short_results(turn: Sequence[Message]) -> Sequence[Message]:
    """Return a turn whose tool results are one line with the tool's name and the size, where that is shorter."""
    short: list[Message] = []
    names: list[str] = []
    for message in turn:
        calls = tool_calls_of(message)
        if calls:
            names = [(call.get("function") or {}).get("name") or "a tool" for call in calls]
        if message["role"] != "tool":
            short.append(message)
            continue
        text = text_in(message)
        line = f"[The result of {names.pop(0) if names else 'a tool'}, {len(text)} characters, is not shown]"
        short.append({**message, "content": line} if len(line) < len(text) else message)
    return short


def _cut(result: Message, tokens: int, count_tokens: CountTokens) -> Message:
    """Return a tool result cut to ``tokens``, or to the minimum length, and marked as cut."""
    text = text_in(result)
    mark = f"\n[cut: the rest of {len(text)} characters is not shown]"

    def beginning(length: int) -> Message:
        return {**result, "content": text[:length] + mark}

    lengths = range(MIN_CUT_RESULT_TOKENS, len(text) - len(mark))
    if not lengths:
        return result
    fitting = bisect_right(lengths, tokens, key=lambda length: count_message(beginning(length), count_tokens))
    return beginning(lengths[max(0, fitting - 1)])
