"""Run conversations through a way of trimming, count errors, and measure its time.

Knows no library and nothing of the project; this file measures both sides of the comparison.
"""

import gc
import inspect
import json
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.rivals.rival import Limit, Message, Rival, calls_of

SIZES = ((5, 10), (10, 20))
STORED = (10, 100, 1_000, 10_000, 100_000)
MAX_REPEATS = 50
SECONDS_PER_FIGURE = 1.0
# A size is skipped if the growth so far predicts a longer call.
MAX_SECONDS_PER_CALL = 20.0


@dataclass
class Counts:
    """The results of the requests of all conversations under one limit; from ``messages_sent`` on, of those cut."""

    requests: int = 0
    invalid_before: int = 0
    raised: int = 0
    cut: int = 0
    messages_sent: int = 0
    invalid: int = 0
    result_without_call: int = 0
    call_without_result: int = 0
    begins_without_user: int = 0
    question_lost: int = 0
    system_lost: int = 0


async def measured(rival: Rival, version: str, conversations: Sequence[Sequence[Message]]) -> dict[str, Any]:
    """Return an adapter's description of its library, and its counts (only with conversations) and times."""
    limits = limits_for(conversations or [made_up(100)])
    return {
        "name": rival.name,
        "tool": f"{rival.package} {version}".strip(),
        "documented_as": rival.documented_as,
        "applied": rival.applied,
        "window": rival.window(limits[0]),
        "tells_caller": rival.tells_caller,
        "tells_model": rival.tells_model,
        "counts": [asdict(await count(rival, conversations, limit)) for limit in limits] if conversations else [],
        "seconds": await seconds_by_size(rival),
    }


def limits_for(conversations: Sequence[Sequence[Message]]) -> list[Limit]:
    """Return the limits, with so many tokens as that many messages have on average (four characters a token)."""
    said = [message for messages in conversations for message in messages if message["role"] != "system"]
    characters = sum(len(message.get("content") or "") + len(json.dumps(calls_of(message))) for message in said)
    tokens = characters / 4 / len(said)
    return [Limit(turns, messages, round(tokens * messages)) for turns, messages in SIZES]


async def count(rival: Rival, conversations: Sequence[Sequence[Message]], limit: Limit) -> Counts:
    """Return the counts over every request of the conversations."""
    counts = Counts()
    for conversation in map(with_own_ids, conversations):
        for length in requests_of(conversation):
            await _count_one(rival, conversation[:length], limit, counts)
    return counts


async def _count_one(rival: Rival, request: list[Message], limit: Limit, counts: Counts) -> None:
    counts.requests += 1
    if faults(request):
        counts.invalid_before += 1
        return
    try:
        sent = await trim(rival, request, limit)
    except Exception:  # noqa: BLE001 Whatever a library raises is a finding.
        counts.raised += 1
        return
    if _body(sent) == _body(request):
        return
    counts.cut += 1
    counts.messages_sent += len(_body(sent))
    found = faults(sent)
    counts.invalid += bool(found)
    counts.result_without_call += "result without call" in found
    counts.call_without_result += "call without result" in found
    counts.begins_without_user += "begins without user" in found
    counts.question_lost += _last_question(sent) != _last_question(request)
    counts.system_lost += request[0]["role"] == "system" and sent[:1] != request[:1]


async def trim(rival: Rival, request: list[Message], limit: Limit) -> list[Message]:
    """Return what the model sees of a request."""
    question = max(place for place, message in enumerate(request) if message["role"] == "user")
    end = {"call": len(request), "question": question + 1, "answer": question}[rival.applied]
    start = sum(message["role"] == "system" for message in request) if rival.system_apart else 0
    if end == start:
        return request
    state = await _awaited(rival.load(request[start:end], limit))
    return [*request[:start], *rival.back(await _awaited(rival.cut(state))), *request[end:]]


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def requests_of(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the length of each request: up to a question, or up to the last result of an iteration."""
    for place, message in enumerate(messages):
        following = messages[place + 1]["role"] if place + 1 < len(messages) else None
        if message["role"] == "user" or (message["role"] == "tool" and following != "tool"):
            yield place + 1


def with_own_ids(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with unique call ids: empty and repeated ids aren't the cut's fault."""
    renamed: list[Message] = []
    waiting: dict[str | None, deque[str]] = {}
    for place, message in enumerate(messages):
        calls = calls_of(message)
        if calls:
            waiting = defaultdict(deque)
            own = [f"call_{place}_{number}" for number in range(len(calls))]
            for call, own_id in zip(calls, own, strict=True):
                waiting[call.get("id")].append(own_id)
            named = [{**call, "id": own_id} for call, own_id in zip(calls, own, strict=True)]
            renamed.append({**message, "tool_calls": named})
        elif message["role"] == "tool":
            queue = waiting.get(message.get("tool_call_id"))
            renamed.append({**message, "tool_call_id": queue.popleft() if queue else f"lost_{place}"})
        else:
            renamed.append({name: value for name, value in message.items() if name != "tool_calls"})
    return renamed


def faults(messages: Sequence[Message]) -> set[str]:
    """Return what a strict provider rejects in a request; trailing calls are still running."""
    found: set[str] = set()
    still_open: Counter[str] = Counter()
    for message in messages:
        if message["role"] == "tool":
            if not still_open[message["tool_call_id"]]:
                found.add("result without call")
            still_open[message["tool_call_id"]] -= 1
            continue
        if still_open.total() > 0:
            found.add("call without result")
        still_open = Counter(call["id"] for call in calls_of(message))
    first = next((message["role"] for message in messages if message["role"] != "system"), "user")
    if first != "user":
        found.add("begins without user")
    return found


def _body(messages: Sequence[Message]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return the messages without the system's, in a comparable form."""
    return [
        (m["role"], m.get("content") or "", m.get("tool_call_id") or "", tuple(call["id"] for call in calls_of(m)))
        for m in messages
        if m["role"] != "system"
    ]


def _last_question(messages: Sequence[Message]) -> str | None:
    return next((message["content"] for message in reversed(messages) if message["role"] == "user"), None)


def made_up(length: int) -> list[Message]:
    """Return a conversation of ``length`` messages that awaits an answer; every other turn uses a tool."""
    text = "Sixteen words of everyday text that could well stand in a question, or in its answer. "
    messages: list[Message] = []
    while len(messages) < length:
        call_id = f"call_{len(messages)}"
        call = {"id": call_id, "type": "function", "function": {"name": "look_up", "arguments": '{"word": "text"}'}}
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": text},
            {"role": "assistant", "content": text},
            {"role": "user", "content": text},
            {"role": "assistant", "content": text},
        ]
    newest = messages[len(messages) - length + 1 :]
    while newest and newest[0]["role"] == "tool":
        newest[0] = {"role": "assistant", "content": text}
    return [*newest, {"role": "user", "content": text}]


async def seconds_by_size(rival: Rival) -> list[float | None]:
    """Return the CPU seconds of one cut for each number of stored messages; ``None`` if it would take too long."""
    seconds: list[float | None] = []
    for length in STORED:
        known = [value for value in seconds if value is not None]
        growth = max(10.0, known[-1] / known[-2]) if len(known) > 1 else 10.0
        late = bool(known) and known[-1] * growth > MAX_SECONDS_PER_CALL
        too_slow = rival.timed is None or late or len(known) < len(seconds)
        seconds.append(None if too_slow else await _best_of(rival, made_up(length)))
    return seconds


async def _best_of(rival: Rival, messages: list[Message]) -> float:
    """Return the shortest of some runs, each on messages newly loaded, because some libraries cut in place."""
    limit, timed = limits_for([messages])[0], rival.timed or rival.cut
    best, began = float("inf"), time.monotonic()
    for repeat in range(MAX_REPEATS):
        warm, state = [await _awaited(rival.load(messages, limit)) for _ in range(2)]
        gc.collect()
        gc.disable()
        await _awaited(timed(warm))
        start = time.process_time()
        await _awaited(timed(state))
        best = min(best, time.process_time() - start)
        gc.enable()
        if repeat and time.monotonic() - began > SECONDS_PER_FIGURE:
            break
    return best
