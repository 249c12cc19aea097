"""Conversations to test with: a few to read, and a generator of odd ones; and what a strict provider refuses."""

from collections.abc import Sequence

from hypothesis import strategies as st

from rag_assistant.history import (
    FittedHistory,
    HistoryPolicy,
    HistorySummary,
    LeftOut,
    estimate_tokens,
    keep_last_iterations,
    left_out,
    notice_for,
    repair_messages,
    split_turns,
)
from rag_assistant.history.budget import count_message, count_messages
from rag_assistant.history.receipt import LeftOutReason
from rag_assistant.history.turns import holds_call, tool_calls_of
from rag_assistant.records import Message, text_in

SYSTEM: Message = {"role": "system", "content": "Be brief."}
NOW: Message = {"role": "user", "content": "now"}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def turn(n: int) -> list[Message]:
    return [user(f"Q{n}"), assistant(f"A{n}")]


def turns(count: int) -> list[Message]:
    return [message for n in range(1, count + 1) for message in turn(n)]


def iteration(
    *ids: str | None, answered: int | None = None, name: str = "look", result: str = "found"
) -> list[Message]:
    """Return an assistant message that calls a tool once for each id, with its results (or the first of them)."""
    calls = [{"id": one, "type": "function", "function": {"name": name, "arguments": "{}"}} for one in ids]
    results: list[Message] = [{"role": "tool", "tool_call_id": one, "content": result} for one in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results[:answered]]


def tool_turn(n: int, *, name: str = "look", result: str = "found") -> list[Message]:
    return [user(f"Q{n}"), *iteration(f"call-{n}", name=name, result=result), assistant(f"A{n}")]


def without_notice(fitted: FittedHistory) -> list[Message]:
    notice = {"role": "system", "content": fitted.notice}
    return [message for message in fitted.messages if message != notice]


def tokens(messages: Sequence[Message]) -> int:
    return count_messages(messages, estimate_tokens)


def violations(messages: Sequence[Message]) -> list[str]:
    """Return what a strict provider would refuse; calls at the very end may still wait for their results."""
    found, open_calls = [], 0
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if not open_calls:
                found.append(f"{place}: a result without a call")
            open_calls -= 1
            continue
        if open_calls:
            found.append(f"{place}: {open_calls} calls without a result")
        open_calls = len(message.get("tool_calls") or ())
    body = [message["role"] for message in messages if message["role"] not in ("system", "developer")]
    if "user" in body and body[0] != "user":
        found.append("the conversation begins with an answer")
    return found


def most_that_must_stay(messages: Sequence[Message], policy: HistoryPolicy) -> int:
    """Return the tokens, or a few more, of what no step of the budget leaves out."""
    split = split_turns(repair_messages(messages))
    keep = policy.tool_iterations_keep
    current = keep_last_iterations(split.current, keep if keep is None else min(keep, 1), policy.pending).messages
    if keep is None:
        current = keep_last_iterations(split.current, 1, policy.pending).messages
    waiting = [message for past in split.past if holds_call(past, policy.pending) for message in past]
    notice: Message = {"role": "system", "content": notice_for(1000, 1000, at_least=1000)}
    total = tokens([*split.system, notice, *waiting]) + policy.reserved_tokens
    waits = False
    for message in current:
        if tool_calls_of(message):
            waits = holds_call([message], policy.pending)
        cost = count_message(message, estimate_tokens)
        if message["role"] == "tool" and not waits:
            cost = min(cost, 4 + estimate_tokens(text_in(message)[:260]) + 20)
        total += cost
    return total


# Some ids are null, empty or used twice, as real providers send them; "wait" and "done" are those of confirmations.
_IDS = st.lists(st.sampled_from(["a", "b", "", None, "a", "wait", "done"]), min_size=1, max_size=3)
_RESULTS = st.sampled_from(["found", "", "found " * 200, "見つかった" * 60])
_ODDITIES = st.sampled_from(["", "", "", "missing", "swapped", "twice", "between", "text", "said"])
_INJECTED: Message = {"role": "user", "content": "[passages] " * 5, "meta": {"kind": "context_injection"}}
_PARTS: Message = {
    "role": "user",
    "content": [{"type": "text", "text": "what is"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
}
_QUESTIONS = st.sampled_from(
    [
        [user("yes")],
        [user("yes")],
        [user("a longer question " * 8)],
        [user("")],
        [user("q"), user("and also")],
        [_PARTS],
        [_INJECTED, user("q")],
        [_INJECTED],
        [{"role": "user", "content": "q", "meta": {"kind": "other"}}],
    ]
)
_ENDINGS = st.sampled_from(
    [
        [assistant("yes")],
        [assistant("yes")],
        [assistant("an answer of some length " * 12)],
        [assistant("yes"), {"role": "tool", "tool_call_id": "zz", "content": "orphan"}],
        [SYSTEM, assistant("yes")],
        [assistant("yes"), SYSTEM],
        [assistant("let me see"), *iteration("a"), assistant("yes")],
        [],
    ]
)
_BEGINNINGS = st.sampled_from(
    [[], [SYSTEM], [SYSTEM], [SYSTEM, SYSTEM], [{"role": "developer", "content": "d"}], [SYSTEM, assistant("hello")],
     [assistant("hello")]]
)  # fmt: skip


@st.composite
def _iterations(draw: st.DrawFn) -> list[Message]:
    """Draw an iteration: whole, with a result missing, results swapped, one twice, or the user speaking in between."""
    call, *results = iteration(*draw(_IDS), result=draw(_RESULTS))
    odd = draw(_ODDITIES)
    if odd == "missing":
        results.pop()
    elif odd == "swapped":
        results.reverse()
    elif odd == "twice":
        results.append(results[0])
    elif odd == "between":
        results.insert(0, user("and hurry"))
    elif odd == "text":
        call = {**call, "content": "I look it up."}
    return [*([assistant("Let me look.")] if odd == "said" else []), call, *results]


# Made once: to make a strategy takes longer than to draw from it.
_PAST_TURNS = st.integers(0, 8)
_PAST_ITERATIONS, _CURRENT_ITERATIONS = (st.lists(_iterations(), max_size=most) for most in (2, 3))
_CURRENT = st.sampled_from([[NOW], [NOW], [_INJECTED, NOW], [_PARTS, NOW]])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw a conversation with up to 8 past turns and a current one, with everything that was ever seen to be odd."""
    messages: list[Message] = list(draw(_BEGINNINGS))
    for _ in range(draw(_PAST_TURNS)):
        messages += draw(_QUESTIONS)
        for one in draw(_PAST_ITERATIONS):
            messages += one
        messages += draw(_ENDINGS)
    messages += draw(_CURRENT)
    for one in draw(_CURRENT_ITERATIONS):
        messages += one
    return messages


_UNREAD_REASONS: list[LeftOutReason] = ["turn_limit", "excluded", "cleared"]
_NUMBERS = st.lists(st.integers(1, 12), max_size=3, unique=True).map(tuple)
LIMITS = st.one_of(st.none(), st.integers(0, 10))


@st.composite
def policies(draw: st.DrawFn) -> HistoryPolicy:
    """Draw a policy with any of its fields set."""
    summarised = draw(st.sampled_from([0, 0, 0, 1, 3]))
    unread = draw(st.sampled_from([0, 0, 0, 1, 2]))
    read_again = bool(summarised) and not unread and draw(st.booleans())
    first = 1 if read_again else summarised + unread + 1
    runs: list[LeftOut] = []
    if summarised and not read_again:
        runs.append(left_out("summarised", summarised, 2 * summarised, 1, summarised))
    if unread:
        reason = draw(st.sampled_from(_UNREAD_REASONS))
        runs.append(left_out(reason, unread, 2 * unread, summarised + 1, summarised + unread))
    return HistoryPolicy(
        max_history_turns=draw(LIMITS),
        strategy=draw(st.sampled_from(["window", "window", "smart"])),
        tool_iterations_keep=draw(st.sampled_from([2, None, 0, 1, 3])),
        token_budget=draw(st.one_of(st.none(), st.integers(0, 600), st.integers(0, 3000))),
        reserved_tokens=draw(st.sampled_from([0, 0, 20])),
        window_slack=draw(st.sampled_from([0, 0, 1, 3])),
        merge_system_messages=draw(st.sampled_from([False, False, True])),
        pinned=draw(_NUMBERS),
        excluded=draw(_NUMBERS),
        purged=draw(st.sampled_from([(), (), ("done",)])),
        pending=draw(st.sampled_from([(), (), ("wait",)])),
        summary=HistorySummary("They spoke of things. " * 3, 1, summarised) if summarised else None,
        unread=tuple(runs),
        turn_numbers=tuple(range(first, 30)) if read_again else draw(st.sampled_from(_numberings(first))),
    )


def _numberings(first: int) -> list[tuple[int, ...]]:
    return [(), (), tuple(range(first, 30)), tuple(range(first, 60, 3))]
