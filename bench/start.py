"""(c) Start: time to /healthz and to ready, memory idle and after many answers, with an endpoint and with quotes."""

import tempfile
import time
from pathlib import Path

import psutil

from bench.aims import Figure, Figures
from bench.stage import program, read_streams, server, wait_for

ANSWERS, ANSWERS_AT_ONCE = 2_000, 100
REST_SECONDS = 3


def main() -> Figures:
    """Print times and memory for a first and a second start."""
    print("| start | model | /healthz s | ready s | processes | RSS MB | PSS MB |\n|---|---|---|---|---|---|---|")
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder, program("bench.paced_model") as model:
        for name, environment in (
            ("endpoint", {"OPENAI_BASE_URL": model, "OPENAI_MODEL": "10@0"}),
            ("quotes", {}),
        ):
            data = Path(folder) / name / "data"
            data.mkdir(parents=True)
            for start in ("first", "second"):
                began = time.monotonic()
                with server(data, **environment) as (url, process):
                    healthy = time.monotonic() - began
                    before = memory_mb(process)
                    wait_for(f"{url}/readyz")
                    ready = time.monotonic() - began
                    time.sleep(3)
                    idle = memory_mb(process)
                    print(f"| {start}, idle | {name} | {healthy:.2f} | {ready:.2f} | {in_words(idle)} |", flush=True)
                    if start == "second":
                        print(f"| {start}, at /healthz | {name} | | | {in_words(before)} |", flush=True)
                    if (start, name) == ("second", "endpoint"):
                        answer_many(url)
                        after = memory_mb(process)
                        print(f"| {start}, after {ANSWERS:,} answers | {name} | | | {in_words(after)} |", flush=True)
                        figures = {
                            "start": Figure((healthy, ready)),
                            "memory": Figure((idle[2],), f"{after[2]:.0f} after {ANSWERS:,} answers"),
                        }
    return figures


def answer_many(url: str) -> None:
    """Let the server answer, and then rest for a moment."""
    for _ in range(ANSWERS // ANSWERS_AT_ONCE):
        read_streams(url, ANSWERS_AT_ONCE, spread=2.0)
    time.sleep(REST_SECONDS)


def memory_mb(process: psutil.Process) -> tuple[int, float, float]:
    """Return the number of processes, their resident memory, and that with shared pages counted once."""
    everyone = [process, *process.children(recursive=True)]
    figures = [one.memory_full_info() for one in everyone]
    return len(everyone), sum(one.rss for one in figures) / 1e6, sum(one.pss for one in figures) / 1e6


def in_words(memory: tuple[int, float, float]) -> str:
    """Return them as cells of a table."""
    return " | ".join(f"{one:.0f}" for one in memory)
