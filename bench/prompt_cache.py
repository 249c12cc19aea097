"""What window_slack is worth: the share of the prompt that a real server of llama.cpp takes from its cache.

Runs the small model of the tests with the prompt cache on, and asks
turn after turn of one growing conversation; the server reports how many tokens it did not have to compute.
"""

import json
import urllib.request
from typing import Any

from bench.words import text_of
from rag_assistant.history import HistoryPolicy, fit_history
from rag_assistant.records import Message
from tests.testkit.gguf import carried_gguf

WINDOW = 20
SLACKS = (0, 5, 10)
TURNS = range(WINDOW, WINDOW + 33)


def main() -> None:
    """Print the share of cached prompt tokens for each slack."""
    server = start_server()  # It ends when nobody holds it.
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


def conversation(past_turns: int) -> list[Message]:
    """Return a conversation of turns of some 40 tokens each, with a question that waits."""
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
    main()
