"""(b) Answer questions: CPU time per answer, latency added to the first token, and concurrent streams."""

import random
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.aims import Figure, Figures
from bench.readers import different_question
from bench.retrieval.cache import MODELS
from bench.stage import (
    add_conversation,
    cpu_seconds,
    fill_library,
    open_database,
    percentile,
    program,
    read_streams,
    server,
    wait_for,
)
from rag_assistant.retrieval.embeddings.minilm import MiniLM

CHUNKS = 1_000
WINDOW_TURNS = 10
STARTS_PER_SECOND = 25
MAX_START_SECONDS = 20
ROUNDS = 10


def main() -> Figures:
    """Print a table for each question of the benchmark."""
    print(f"Embedding the question costs {embedding_ms():.1f} ms of CPU, contained in the figures below.\n")
    with program("bench.paced_model") as model:
        cpu_per_answer(model)
        late = pacing(model)
    return {
        "late_200": Figure(late[200][1:2]),
        "lost": Figure(tuple(late[n][2] for n in (200, 500, 2000)), f"{late[2000][3]:.0f} of 2,000 carried"),
    }


def embedding_ms() -> float:
    """Return the CPU milliseconds to embed a question of the readers, one at a time."""
    embedder, chance = MiniLM(MODELS), random.SystemRandom()
    embedder.embed(["warm"])
    began = time.process_time()
    for _ in range(100):
        embedder.embed([different_question(chance)])
    return (time.process_time() - began) * 10


def cpu_per_answer(model: str) -> None:
    """Print the server's CPU time for an answer of 10 and of 100 tokens, with 10 concurrent streams."""
    print("| tokens | tokens per second | CPU ms per answer |\n|---|---|---|")
    print(f"| 10, without documents | 20 | {measure_cpu(model, 10, 20, MAX_PASSAGES='0'):.1f} |")
    print(f"| 10, the first of a conversation | 20 | {measure_cpu(model, 10, 20, conversations=0):.1f} |", flush=True)
    for per_second in (20, 0):
        used = {tokens: measure_cpu(model, tokens, per_second) for tokens in (10, 100)}
        for tokens, ms in used.items():
            print(f"| {tokens} | {per_second or 'all at once'} | {ms:.1f} |")
        further = (used[100] - used[10]) / 90
        print(f"| each further token | {per_second or 'all at once'} | {further:.3f} |", flush=True)


def measure_cpu(
    model: str,
    tokens: int,
    per_second: int,
    conversations: int = 10 * (ROUNDS + 1),
    **environment: str,
) -> float:
    """Return CPU milliseconds per answer, with retrieval over 1,000 chunks.

    Each is asked in its own conversation with a full window, as a possible follow-up; without ``conversations`` it is a
    first question.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        conversation_ids = prepare(data, conversations)
        environment |= {"OPENAI_BASE_URL": model, "OPENAI_MODEL": f"{tokens}@{per_second}", "QUERY_REWRITING": "words"}
        with server(data, **environment) as (url, process):
            wait_for(f"{url}/readyz")
            read_streams(url, 10, conversation_ids[-10:])
            began = cpu_seconds(process)
            for n in range(ROUNDS):
                whole(read_streams(url, 10, conversation_ids[10 * n : 10 * (n + 1)]), tokens)
            return (cpu_seconds(process) - began) / ROUNDS / 10 * 1000


def pacing(model: str) -> dict[int, tuple[float, ...]]:
    """Print how late tokens are once all streams run at 20 tokens a second, and how many streams are complete.

    Return for each number of streams what ``show_pacing`` does.
    """
    print("Streams of 20 tokens a second, 25 or more each second, then all together for 5 s.")
    print("Late: behind the moment at which the model sent the token, while all of them run.\n")
    print("| streams | complete | refused (503) | first token p50 ms | late p50 ms | late p99 ms | CPU share |")
    print("|---" * 7 + "|")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        prepare(data, 0)
        for streams in (10, 200, 500, 2000):
            spread = min(streams / STARTS_PER_SECOND, MAX_START_SECONDS)
            tokens = int((spread + 5) * 20)
            with server(data, OPENAI_BASE_URL=model, OPENAI_MODEL=f"{tokens}@20", QUERY_REWRITING="off") as (
                url,
                process,
            ):
                wait_for(f"{url}/readyz")
                warm_up(url)
                began, cpu = time.monotonic(), cpu_seconds(process)
                seen = read_streams(url, streams, spread=spread)
                share = (cpu_seconds(process) - cpu) / (time.monotonic() - began)
            found[streams] = show_pacing(seen, tokens, share)
    return found


def warm_up(url: str) -> None:
    """Ask one question and stop its answer: the first one pays for lazy loading."""
    connection = HTTPConnection(url.removeprefix("http://"))
    connection.request("POST", "/api/query/stream", '{"question": "Warm?"}', {"Content-Type": "application/json"})
    begin = connection.getresponse().read(1000)
    connection.close()
    turn_id = begin.split(b'"turn_id":')[1].split(b",")[0].strip(b" }\n").decode()
    connection.request("POST", f"/api/turns/{turn_id}/stop")
    connection.getresponse().read()
    connection.close()


def show_pacing(seen: list[dict[str, Any]], tokens: int, share: float) -> tuple[float, ...]:
    """Print one row about the streams.

    Return how late a token is (p50 and p99, in ms), how many streams were neither complete nor refused, and how many
    complete.
    """
    accepted = [one for one in seen if one["status"] == 200]
    refused = [one for one in seen if one["status"] == 503 and one["retry_after"]]
    complete = [one for one in accepted if one["tokens"] == tokens and one["ended"] == "end"]
    all_run = max(one["late"][0][0] for one in accepted)
    late = [value * 1000 for one in accepted for sent, value in one["late"] if sent >= all_run]
    first = [one["first"] * 1000 for one in accepted]
    p50, p99 = percentile(late, 0.5), percentile(late, 0.99)
    print(
        f"| {len(seen)} | {len(complete)} | {len(refused)} | {percentile(first, 0.5):.1f} | {p50:.1f} | {p99:.1f} "
        f"| {share:.0%} |",
        flush=True,
    )
    return p50, p99, len(seen) - len(complete) - len(refused), len(complete)


def prepare(data: Path, conversations: int) -> list[int]:
    """Fill a data folder with a library and conversations with a full window; return their ids."""
    database = open_database(data)
    fill_library(database, CHUNKS)
    ids = [add_conversation(database, WINDOW_TURNS) for _ in range(conversations)]
    database.close()
    return ids


def whole(seen: list[dict[str, object]], tokens: int) -> None:
    """Check that every stream is complete: a figure for half an answer would mean nothing."""
    for one in seen:
        if one["status"] != 200 or one["tokens"] != tokens or one["ended"] != "end":
            raise AssertionError(f"a stream is not whole: {one}")
