"""The product beside a plain prototype and LangChain, which do the same work in the same minutes, in turn.

The peers lie beside the checkout, as the shared data does; without them no row is taken.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from bench import aims
from bench.aims import Figure, Figures
from bench.answers import embedding_in_answer_ms
from bench.stage import PROJECT, program

PEERS = PROJECT.parent / "shared" / "perf" / "run.sh"
ROUNDS = 2

# What each says of itself, by its name and how many ask at once.
Rows = dict[tuple[str, int], dict[str, Any]]


def main() -> Figures:
    """Print what each cost and how quick it was, one, ten and fifty at once."""
    if not PEERS.exists():
        return aims.without("side", f"{PEERS.relative_to(PROJECT.parent)} is not beside the checkout")
    run = subprocess.Popen(
        [PEERS, PROJECT, str(ROUNDS)], env=os.environ | {"C": "1,10,50"}, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    rows: Rows = {}
    print("| who | at once | CPU ms per answer | answers a second | first token added, ms |\n|---|---|---|---|---|")
    for line in run.stdout:
        if line.startswith("{"):
            row = json.loads(line)
            rows[row["peer"], row["c"]] = row
            added = row.get("added_ttft50", "")
            print(f"| {row['peer']} | {row['c']} | {row['cpu_ms']} | {row['chats_s']} | {added} |", flush=True)
    failed = [row["errs"] for row in rows.values() if row["errs"]]
    if run.wait() or failed:
        return aims.without("side", f"{PEERS.name} ended with {run.returncode}, and answers with {failed}")
    with program("bench.paced_model") as model:
        embedding = embedding_in_answer_ms(model)
    print(f"\nOf the CPU of an answer, {embedding:.1f} ms embed its question.", flush=True)
    return figures(rows, embedding)


def figures(rows: Rows, embedding_ms: float) -> Figures:
    """Return how the product stands beside the others."""

    def beside(measure: str, who: str, other: str, at_once: int = 1) -> float:
        return float(rows[who, at_once][measure] / rows[other, at_once][measure])

    new, window = ("new", "prototype"), ("conversation", "prototype-conversation")
    alone = (rows["new", 1]["cpu_ms"] - embedding_ms) / rows["prototype", 1]["cpu_ms"]
    beside_langchain = beside("cpu_ms", "conversation", "langchain-conversation")
    return {
        "answer": Figure((beside("cpu_ms", *new), alone)),
        "answer_window": Figure((beside("cpu_ms", *window), beside_langchain)),
        "first_token": Figure((beside("added_ttft50", *new), beside("added_ttft50", *window))),
        "answers_a_second": Figure((beside("chats_s", *new, 10), beside("chats_s", *new, 50))),
    }
