"""(c) Start: time to /healthz and to ready, resident memory idle, with an endpoint and with quotes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import psutil

from bench.stage import program, server, wait_for


def main() -> None:
    """Print times and memory for a first and a second start."""
    print("| start | model | /healthz s | ready s | processes | RSS MB | PSS MB |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, program("bench.paced_model") as model:
        for name, environment in (
            ("endpoint", {"OPENAI_BASE_URL": model, "OPENAI_MODEL": "1@0"}),
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
                    times = f"{healthy:.2f} | {ready:.2f}"
                    print(f"| {start}, idle | {name} | {times} | {memory_mb(process)} |", flush=True)
                    if start == "second":
                        print(f"| {start}, at /healthz | {name} | | | {before} |", flush=True)


def memory_mb(process: psutil.Process) -> str:
    """Return how many processes there are, their resident memory, and that with each shared page counted once."""
    everyone = [process, *process.children(recursive=True)]
    figures = [one.memory_full_info() for one in everyone]
    return f"{len(everyone)} | {sum(f.rss for f in figures) / 1e6:.0f} | {sum(f.pss for f in figures) / 1e6:.0f}"
