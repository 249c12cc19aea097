"""The benefit of window_slack: the share of the prompt that a real llama.cpp server takes from its cache.

Runs the small model of the tests with the prompt cache on, and asks turn after turn of one growing conversation; the
server reports how many tokens it did not have to compute. ``python -m bench.prompt_cache priced`` needs the recorded
conversations and no model: a simulated cache holds the common prefix with the previous request, at a quarter of the
price.
"""

import json
import sys
import urllib.request
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Any

from bench.words import text_of
from rag_assistant.history import HistoryPolicy, count_message, estimate_tokens, fit_history
from rag_assistant.history.turns import split_turns
from rag_assistant.records import Message
from tests.testkit.gguf import carried_gguf

WINDOW = 20
SLACKS = (0, 5, 10)
TURNS = range(WINDOW, WINDOW + 33)
PRICED_WINDOWS, PRICE_OF_CACHED, MIN_CACHED, CACHED_STEP = (5, 20), 0.25, 1024, 128
PASSAGES_TOKENS, MAX_TURNS, JOINED = 900, 60, 4


def main() -> None:
    """Print the share of cached prompt tokens for each slack."""
    server = start_server()  # It stops when nothing refers to it.
    url = str(server.listening_address)
    print(f"window of {WINDOW} turns, {len(TURNS)} questions in a row\n")
    print("| window_slack | prompt tokens | from the cache | share | turns sent |\n|---|---|---|---|---|")
    for slack in SLACKS:
        prompt = cached = kept = 0
        for number in TURNS:
            fitted = fit_history(conversation(number), HistoryPolicy(max_history_turns=WINDOW, window_slack=slack))
            usage = ask(url, fitted.messages)
            prompt += usage["prompt_tokens"]
            cached += (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
            kept += fitted.receipt.turns_kept
        print(f"| {slack} | {prompt:,} | {cached:,} | {cached / prompt:.0%} | {kept / len(TURNS):.1f} |", flush=True)


def priced() -> None:
    """Print what a provider charges, for each half of the conversations: tuning, then test."""
    for half in (0, 1):
        print(f"\n| half {half}: N | slack | requests | sent | from the cache | price | price without a cache |")
        for window in PRICED_WINDOWS:
            prices: list[tuple[float, int]] = []
            for slack in (0, window // 4, window // 2):
                sent = cached = count = 0
                for requests in recorded(half, window, slack):
                    for before, request in pairwise(requests):
                        tokens = [count_message(message, estimate_tokens) for message in request]
                        same = takewhile(lambda pair: pair[0] == pair[1], zip(request, before, strict=False))
                        shared = sum(tokens[: sum(1 for _ in same)])
                        sent, count = sent + sum(tokens) + PASSAGES_TOKENS, count + 1
                        cached += shared // CACHED_STEP * CACHED_STEP if shared >= MIN_CACHED else 0
                prices.append((sent - (1 - PRICE_OF_CACHED) * cached, sent))
                price, plain = (after / exact for after, exact in zip(prices[-1], prices[0], strict=True))
                share = f"{cached / sent:.0%}"
                print(f"| {window} | {slack} | {count} | {sent // count:,} | {share} | {price:.2f} | {plain:.2f} |")


def recorded(half: int, window: int, slack: int) -> Iterator[list[list[Message]]]:
    """Yield the requests of long recorded conversations with a full window."""
    from bench.endpoint_cuts import conversations

    split = [split_turns(messages) for messages in conversations()[half::2]]
    for first in range(0, len(split), JOINED):
        some = split[first : first + JOINED]
        turns = [turn for one in some for turn in (*one.past, one.current) if turn][:MAX_TURNS]
        policy = HistoryPolicy(max_history_turns=window, window_slack=slack)
        yield [
            fit_history([*some[0].system, *(m for turn in turns[:n] for m in turn), turns[n][0]], policy).messages
            for n in range(window, len(turns))
        ]


def conversation(past_turns: int) -> list[Message]:
    """Return a conversation of turns of some 40 tokens each, with an unanswered question."""
    messages: list[Message] = [{"role": "system", "content": "You are a helpful assistant. Be brief."}]
    for turn in range(past_turns):
        messages.append({"role": "user", "content": f"Question {turn}: {text_of(6, turn)}?"})
        messages.append({"role": "assistant", "content": f"Answer {turn}: {text_of(8, 1000 + turn)}."})
    return [*messages, {"role": "user", "content": f"Question {past_turns}: {text_of(6, past_turns)}?"}]


def start_server() -> Any:
    """Start llama.cpp's server in this process, and return it."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(carried_gguf())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = 8192
    params.cache_prompt = True
    params.n_cache_reuse = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.ui = False
    return xllamacpp.Server(params)


def ask(url: str, messages: list[Message]) -> dict[str, Any]:
    """Ask for one token, and return the usage that the server reports."""
    usage: dict[str, Any] = _posted(url, messages, 1)["usage"]
    return usage


def chat(url: str, messages: list[Message], max_tokens: int) -> str:
    """Return what the model answers."""
    return str(_posted(url, messages, max_tokens)["choices"][0]["message"]["content"])


def _posted(url: str, messages: list[Message], max_tokens: int) -> Any:
    body = json.dumps({"messages": messages, "max_tokens": max_tokens, "temperature": 0}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


if __name__ == "__main__":
    priced() if "priced" in sys.argv else main()
