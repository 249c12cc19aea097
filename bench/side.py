"""The product beside a plain prototype and LangChain, doing the same work in turn within the same minutes.

The peers are beside the checkout, like the shared data; without them nothing is measured.
"""

import json
import os
import subprocess
from typing import Any

from bench import aims
from bench.aims import Figure, Figures
from bench.stage import PROJECT

PEERS = PROJECT.parent / "shared" / "perf" / "run.sh"
ROUNDS = 2

# The output of each, by name and number of concurrent questions.
Rows = dict[tuple[str, int], dict[str, Any]]


def main() -> Figures:
    """Print the cost and speed of each with one, ten and fifty concurrent questions."""
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
    return figures(rows)


def figures(rows: Rows) -> Figures:
    """Return the product's figures relative to LangChain, and what it adds to the first token, one at a time."""

    def beside(who: str, other: str) -> float:
        return float(rows[who, 1]["cpu_ms"] / rows[other, 1]["cpu_ms"])

    cpu = beside("new", "langchain"), beside("conversation", "langchain-conversation")
    return {
        "answer": Figure(cpu),
        "first_token": Figure((rows["new", 1]["added_ttft50"], rows["conversation", 1]["added_ttft50"])),
    }
