"""The token budget: what a request may cost, and what is left out when it costs more, cheapest first. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from math import ceil
from typing import TypeVar

from msgspec import Struct

from rag_assistant.history.receipt import LeftOutReason
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


class TokenCounter(Struct, frozen=True):
    """Counts the tokens of a text, our estimate times a model's ``ratio``, and knows those of a picture."""

    ratio: float = 1.0
    picture_tokens: int = TOKENS_PER_ATTACHMENT

    def __call__(self, text: str) -> int:
        return ceil(estimate_tokens(text) * self.ratio)


def count_message(message: Message, count_tokens: CountTokens) -> int:
    """Return the tokens of one message: its text, its attachments, its tool calls and what the chat template adds."""
    tokens = TOKENS_PER_MESSAGE + count_tokens(text_in(message))
    content = message.get("content")
    if isinstance(content, list):
        price = count_tokens.picture_tokens if isinstance(count_tokens, TokenCounter) else TOKENS_PER_ATTACHMENT
        tokens += price * sum(1 for part in content if part.get("text") is None)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        tokens += count_tokens(function.get("name") or "") + count_tokens(function.get("arguments") or "")
    return tokens + sum(count_tokens(str(message[name])) for name in THOUGHTS if name in message)


def count_messages(messages: Sequence[Message], count_tokens: CountTokens) -> int:
    return sum(count_message(message, count_tokens) for message in messages)


class WeighedTurn(Struct, frozen=True):
    """A past turn while it is decided what is sent; one that ``waits`` awaits confirmation.

    ``reason`` is why it is left out, ``None`` while it is kept.
    """

    number: int
    messages: Sequence[Message]
    pinned: bool
    waits: bool
    reason: LeftOutReason | None = None


class Budgeted(Struct, frozen=True):
    """The result: for each past turn its messages or ``None``, the running turn, and whether the summary stays."""

    past: tuple[Sequence[Message] | None, ...]
    current: Sequence[Message]
    summary: Sequence[Message]
    results_shortened: int = 0
    results_cut: int = 0


def fit_budget(
    past: Sequence[WeighedTurn],
    current: Sequence[Message],
    summary: Sequence[Message],
    budget: int,
    count_tokens: CountTokens,
    *,
    system: int,
    notice: int,
    reserved: int = 0,
    trimmed: bool = False,
    pending: Collection[str] = (),
) -> Budgeted:
    """Return what fits into ``budget`` tokens, losing the cheapest first.

    In this order: tool results of earlier turns become one line each, oldest turn first; the oldest turns go, whole,
    without a hole; older iterations of the running turn go, but never the last one; its longest tool results are cut;
    pinned turns go; the summary goes. What awaits confirmation stays as it is, and so do the tokens of the ``system``
    block, of the ``notice``, and those ``reserved`` for tools and answer. ``trimmed`` says that something was left
    out before, so that the notice is sent in any case. Raises QuestionDoesNotFit when instructions and question alone
    are over the budget.
    """
    costs = [count_messages(turn.messages, count_tokens) for turn in past]
    excess = system + reserved + (notice if trimmed else 0) - budget
    excess += sum(costs) + count_messages([*current, *summary], count_tokens)
    whole = [turn.messages for turn in past]
    if excess <= 0:
        return Budgeted(tuple(whole), current, summary)
    request = _Request([*whole], costs, current, excess, 0 if trimmed else notice, count_tokens, pending)
    request.keep_newest_turns(past)
    request.drop_iterations()
    results_cut = request.cut_results()
    for index, turn in enumerate(past):
        if request.excess > 0 and turn.pinned and not turn.waits:
            request.drop_turn(index)
    if request.excess > 0 and summary:
        # The model has to be told that nothing replaces those turns now.
        request.excess += request.notice - count_messages(summary, count_tokens)
        summary = ()
    if request.excess > 0:
        raise QuestionDoesNotFit(budget + request.excess - reserved, max(0, budget - reserved), system)
    results_shortened = sum(
        before is not after
        for turn, left in zip(whole, request.past, strict=True)
        for before, after in zip(turn, left or turn, strict=True)
    )
    return Budgeted(tuple(request.past), request.current, summary, results_shortened, results_cut)


class _Request(Struct):
    """A request that is over its budget by ``excess`` tokens, carried along to avoid counting everything again.

    ``costs`` are the tokens of the past turns, ``notice`` those of the notice while none of them is left out.
    """

    past: list[Sequence[Message] | None]
    costs: list[int]
    current: Sequence[Message]
    excess: int
    notice: int
    count_tokens: CountTokens
    pending: Collection[str]

    def drop_turn(self, index: int) -> None:
        """Leave out a past turn."""
        self.excess += self.notice - self.costs[index]
        self.past[index], self.notice = None, 0

    def keep_newest_turns(self, turns: Sequence[WeighedTurn]) -> None:
        """Keep the newest turns that fit with short results; then restore full results, newest first."""
        short = [turn.messages if turn.waits else _with_short_results(turn.messages) for turn in turns]
        before, self.costs = self.costs, [count_messages(turn, self.count_tokens) for turn in short]
        self.past = [*short]
        self.excess -= sum(before) - sum(self.costs)
        for index, turn in enumerate(turns):
            if self.excess > 0 and not (turn.pinned or turn.waits):
                self.drop_turn(index)
        for index in (n for n in reversed(range(len(turns))) if self.past[n] is not None):
            saved = before[index] - self.costs[index]
            if self.excess + saved > 0:
                break
            self.past[index] = turns[index].messages
            self.excess += saved

    def drop_iterations(self) -> None:
        """Leave out as many of the older iterations of the running turn as necessary; the last one stays."""
        iterations = keep_last_iterations(self.current, None, self.pending).iterations_kept
        if self.excess <= 0 or iterations < 2:
            return

        def cost(limit: int) -> int:
            return count_messages(keep_last_iterations(self.current, limit, self.pending).messages, self.count_tokens)

        before = cost(iterations)
        limit = max(1, bisect_right(range(1, iterations), before - self.excess, key=cost))
        self.excess -= before - cost(limit)
        self.current = keep_last_iterations(self.current, limit, self.pending).messages

    def cut_results(self) -> int:
        """Cut the longest tool results of the running turn, and return how many; not beside a pending call."""
        current = list(self.current)
        results: list[int] = []
        waits = False
        for index, message in enumerate(current):
            if calls := tool_calls_of(message):
                waits = any(call.get("id") in self.pending for call in calls)
            elif message["role"] == "tool" and not waits:
                results.append(index)
        count = 0
        for index in sorted(results, key=lambda one: -len(text_in(current[one]))):
            if self.excess <= 0:
                break
            before = count_message(current[index], self.count_tokens)
            shorter = _cut(current[index], before - self.excess, self.count_tokens)
            saved = before - count_message(shorter, self.count_tokens)
            if saved > 0:
                current[index] = shorter
                self.excess -= saved
                count += 1
        self.current = tuple(current)
        return count


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
