"""The receipt of a request: exactly what is sent, every turn that is left out with its reason, and what it cost."""

from __future__ import annotations

import logging
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import orjson

from rag_assistant.answering.progress import Progress
from rag_assistant.history import FittedHistory
from rag_assistant.presenters.history import seen, turns_by_reason
from rag_assistant.records import LARGEST_NUMBER, ModelReply

log = logging.getLogger(__name__)


def receipt_of(progress: Progress, fitted: FittedHistory) -> dict[str, Any]:
    """Return the receipt of the newest request as it is kept.

    ``prefix_sha256`` is that of the JSON of the messages before the question: where two requests have the same one, a
    provider can serve these messages from its cache.
    """
    receipt = fitted.receipt
    prefix = fitted.messages[: len(fitted.messages) - _length_of_running_turn(progress, fitted)]
    return {
        "built_in": progress.endpoint.built_in,
        "request": progress.requests[-1],
        "earlier_requests": progress.requests[:-1],
        "search": progress.turn.search,
        "rewrite": progress.rewrite,
        "left_out": [asdict(run) for run in receipt.left_out],
        "kept_turns": list(receipt.kept_turns),
        "explanation": receipt.explanation,
        "results_shortened": receipt.results_shortened,
        "results_cut": receipt.results_cut,
        "iterations_kept": receipt.iterations_kept,
        "iterations_dropped": receipt.iterations_dropped,
        "recalled_turns": [turn.number for turn in progress.recalled],
        "prefix_messages": len(prefix),
        "prefix_sha256": sha256(orjson.dumps(prefix)).hexdigest(),
    }


def _length_of_running_turn(progress: Progress, fitted: FittedHistory) -> int:
    return 1 + len(progress.iterations) - fitted.receipt.iteration_messages_dropped


def add_usage(usage: dict[str, Any], reply: ModelReply) -> None:
    """Add what a provider reports of one request to the figures of the answer."""
    if reply.finish_reason is not None:
        usage["finish_reason"] = reply.finish_reason
    if reply.usage is None:
        return
    usage["requests"] = usage.get("requests", 0) + 1
    details = reply.usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        _add(usage, name, reply.usage.get(name))
    _add(usage, "cached_tokens", cached)


def _add(usage: dict[str, Any], name: str, value: object) -> None:
    """Add a figure, if it is one."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_NUMBER:
        usage[name] = usage.get(name, 0) + value


def log_what_was_left_out(progress: Progress, fitted: FittedHistory) -> None:
    """Write the figures of a request from which something was left out into the log."""
    receipt = fitted.receipt
    if fitted.history_trimmed:
        log.info(
            "Turn %s: history trimmed, %s messages left out; the model sees %s.",
            progress.turn.id,
            receipt.messages_dropped,
            seen(receipt.turns_kept, turns_by_reason(receipt.left_out)),
        )
    if receipt.iterations_dropped:
        total = 1 + len(progress.iterations)
        log.info(
            "Turn %s: keeping %s of %s messages, %s iterations, %s left out.",
            progress.turn.id,
            total - receipt.iteration_messages_dropped,
            total,
            receipt.iterations_kept,
            receipt.iteration_messages_dropped,
        )
