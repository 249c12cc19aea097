"""What came of rated questions that were asked again, in words: for the terminal and the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

VERDICTS = ("worse", "failed", "better", "same")
WORSE = {
    "found": "the passages that it needs are no longer found",
    "cited": "it no longer cites them",
    "claims": "more citations are doubtful",
    "answer": "it has less of the right answer",
}


def figures_in_words(result: Mapping[str, Any]) -> dict[str, str]:
    """Return what was measured: ``found``, ``cited``, ``doubts`` and ``answer``, with an arrow where it changed."""
    before, now = _measured(result["before"]), _measured(result["now"])
    return {
        name: shown if shown == before[name] else f"{before[name]} \N{RIGHTWARDS ARROW} {shown}"
        for name, shown in now.items()
    }


def _measured(score: Mapping[str, Any]) -> dict[str, str]:
    found, cited, share = score["found"], score["cited"], score["share"]
    return {
        "found": "-" if found is None else f"#{found}" if found else "no",
        "cited": "-" if cited is None else "yes" if cited else "no",
        "doubts": str(score["doubts"]),
        "answer": "-" if share is None else f"{share:.0%}",
    }


def what_is_worse(checks: Mapping[str, str]) -> str:
    """Return in a sentence what no longer holds of an answer, an empty text if all does."""
    sentence = "; ".join(words for check, words in WORSE.items() if checks.get(check) == "worse")
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def count_verdicts(verdicts: Iterable[str]) -> dict[str, int]:
    """Return how many verdicts there are of each kind, the worst first; a kind without any is left out."""
    verdicts = list(verdicts)
    return {kind: verdicts.count(kind) for kind in VERDICTS if kind in verdicts}


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return a count of verdicts in words: "1 worse, 3 same"."""
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())
