"""The same conversations through our history and through other libraries: errors, and time per cut.

Needs an interpreter with bench/rivals/requirements.txt: ``.venv-rivals`` or the one named by ``RIVALS_PYTHON``.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from bench.rivals.measure import SIZES, STORED, measured
from bench.rivals.rival import Limit, Message, Rival
from rag_assistant.history import FittedHistory, HistoryPolicy, fit_history
from tests.testkit.shared_data import SHARED

PROJECT = Path(__file__).resolve().parents[1]
RIVALS_PYTHON = Path(os.environ.get("RIVALS_PYTHON", PROJECT / ".venv-rivals" / "bin" / "python"))
TRACES = SHARED / "tool_traces" / "traces.jsonl"
APPLIED = {"call": "each call of the model", "question": "each question", "answer": "each answer"}


def main() -> None:
    """Print the tables."""
    if not RIVALS_PYTHON.exists():
        print("Nothing to compare with: the other libraries are not installed. `make bench-history` installs them.")
        return
    conversations: list[list[Message]] = []
    if TRACES.exists():
        conversations = [json.loads(line)["messages"] for line in TRACES.read_text("utf-8").split("\n") if line]
    else:
        print("The recorded conversations (shared data) are not on this machine: only the time is measured.\n")
    results = asyncio.run(measured_here(conversations)) + measured_there(conversations)
    show_ways(results)
    for place, (turns, messages) in enumerate(SIZES if conversations else ()):
        counts = results[0]["counts"][place]
        print(f"\n### {turns} turns, {messages} messages\n")
        print(f"{counts['requests']} requests, {counts['invalid_before']} of them invalid before any cut.\n")
        show_counts(results, place)
    print("\n### Time\n")
    show_time(results)


async def measured_here(conversations: list[list[Message]]) -> list[dict[str, Any]]:
    """Measure our own methods and the naive one in this process."""
    return [await measured(rival, "", conversations) for rival in (OURS, OURS_WINDOW_ONLY, NAIVE)]


def measured_there(conversations: list[list[Message]]) -> list[dict[str, Any]]:
    """Measure the libraries in their own interpreter."""
    lines = "".join(json.dumps(messages) + "\n" for messages in conversations)
    command = [str(RIVALS_PYTHON), "-m", "bench.rivals"]
    run = subprocess.run(command, cwd=PROJECT, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    results: list[dict[str, Any]] = json.loads(run.stdout)
    return results


def show_ways(results: list[dict[str, Any]]) -> None:
    """Print how each library was used, and whom it tells."""
    print("| | package | used as documented | cuts at | smaller window | caller told | model told |")
    print("|---" * 7 + "|")
    for one in results:
        print(
            f"| {one['name']} | {one['tool']} | {one['documented_as']} | {APPLIED[one['applied']]} | {one['window']} "
            f"| {one['tells_caller']} | {one['tells_model']} |"
        )


def show_counts(results: list[dict[str, Any]], place: int) -> None:
    """Print the errors under one limit."""
    faults = ("invalid", "result_without_call", "call_without_result", "begins_without_user")
    losses = ("question_lost", "system_lost")
    print(
        "| | cut | messages sent | invalid | result without call | call without result | begins without user ", end=""
    )
    print("| question lost | system lost | raised |")
    print("|---" * 10 + "|")
    for one in results:
        counts = one["counts"][place]
        cut = counts["cut"] or 1
        shares = " | ".join(with_share(counts[name], cut) for name in (*faults, *losses))
        print(
            f"| {one['name']} | {counts['cut']} | {counts['messages_sent'] / cut:.1f} | {shares} | {counts['raised']} |"
        )


def with_share(number: int, whole: int) -> str:
    """Return a number and its share of the whole."""
    return f"{number} ({number / whole:.0%})" if number else "0"


def show_time(results: list[dict[str, Any]]) -> None:
    """Print CPU milliseconds for one cut, and in brackets the ratio to ours."""
    print("| stored messages | " + " | ".join(f"{length:,}" for length in STORED) + " |")
    print("|---" * (len(STORED) + 1) + "|")
    ours = results[0]["seconds"]
    for one in results:
        if any(one["seconds"]):
            cells = [
                "too slow" if mine is None else f"{mine * 1000:.3g} ({times(mine / reference)})"
                for mine, reference in zip(one["seconds"], ours, strict=True)
            ]
            print(f"| {one['name']} | " + " | ".join(cells) + " |")


def times(ratio: float) -> str:
    """Return a ratio with its significant digits."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}" if ratio >= 0.01 else "< 0.01"


def load_fitting(messages: list[Message], limit: Limit) -> tuple[list[Message], HistoryPolicy]:
    """Return the messages with the default policy for this many turns."""
    return messages, HistoryPolicy(max_history_turns=limit.turns)


def load_window_only(messages: list[Message], limit: Limit) -> tuple[list[Message], HistoryPolicy]:
    """Return the messages with a policy that leaves the running turn whole."""
    return messages, HistoryPolicy(max_history_turns=limit.turns, tool_iterations_keep=None)


def fit(state: tuple[list[Message], HistoryPolicy]) -> FittedHistory:
    """Return the fitted history."""
    return fit_history(*state)


def fitted_messages(fitted: FittedHistory) -> list[Message]:
    """Return the messages of a fitted history."""
    return fitted.messages


def load_naive(messages: list[Message], limit: Limit) -> tuple[list[Message], int]:
    """Return the messages and how many of them to keep."""
    return messages, limit.with_question


def last_messages(state: tuple[list[Message], int]) -> list[Message]:
    """Return the system message and the last messages, whatever they are."""
    messages, most = state
    system = [message for message in messages[:1] if message["role"] == "system"]
    return [*system, *messages[len(system) :][-most:]]


def _ours(name: str, documented_as: str, load: Any) -> Rival:
    return Rival(
        name=name,
        package="this project",
        documented_as=documented_as,
        window=lambda limit: f"{limit.turns} turns + the running one",
        applied="call",
        system_apart=False,
        tells_caller="yes: `history_trimmed`; how many turns and messages, which and why: `receipt`",
        tells_model='of turns: a system message "[History trimmed to last 5 turns]"',
        load=load,
        cut=fit,
        back=fitted_messages,
        timed=fit,
    )


OURS = _ours("**fit_history**", "`fit_history(messages, HistoryPolicy(max_history_turns=...))`", load_fitting)
OURS_WINDOW_ONLY = _ours(
    "**fit_history**, running turn whole", "the same with `tool_iterations_keep=None`", load_window_only
)
NAIVE = Rival(
    name="system + last messages",
    package="the usual slice",
    documented_as="`[system, *messages[-11:]]`",
    window=lambda limit: f"{limit.with_question} messages + system",
    applied="call",
    system_apart=False,
    tells_caller="no",
    tells_model="no",
    load=load_naive,
    cut=last_messages,
    back=list,
    timed=last_messages,
)

if __name__ == "__main__":
    main()
