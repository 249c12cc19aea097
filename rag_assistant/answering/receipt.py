"""The receipt of a request: exactly what is sent, each left-out turn with its reason, and the cost."""

import logging
from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from rag_assistant.answering.request import BuiltRequest
from rag_assistant.history.words import seen, turns_by_reason
from rag_assistant.records import ModelReply

log = logging.getLogger(__name__)

# What a receipt has as the history's does.
OF_HISTORY = ("explanation", "results_shortened", "results_cut", "iterations_kept", "iterations_dropped")


def receipt_of(built: BuiltRequest, sent: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the receipt of a request; ``sent`` are the bodies of the answer's requests, this one last."""
    receipt, draft = built.fitted.receipt, built.draft
    guess, running = draft.profile.endpoint.guess, 1 + len(draft.iterations) - receipt.iteration_messages_dropped
    return {
        "quotes": draft.profile.endpoint.quotes,
        "local": draft.profile.endpoint.local,
        "request": sent[-1],
        "earlier_requests": list(sent[:-1]),
        "search": draft.found.record,
        "rewrite": draft.found.rewrite,
        "reading": list(draft.found.reading),
        "left_out": [asdict(run) for run in receipt.left_out],
        "kept_turns": list(receipt.kept_turns),
        **{name: getattr(receipt, name) for name in OF_HISTORY},
        "recalled_turns": sorted(turn.number for turn in draft.recalled),
        "limit_guess": guess.sentence if guess is not None else None,
        "past_turns": built.past_turns,
        "small_model": draft.profile.small_model,
        "notes": [note.id for note in draft.notes],
        "prefix_messages": len(built.fitted.messages) - running,
    }


def usage_of(replies: Sequence[ModelReply]) -> dict[str, Any] | None:
    """Return the sum of the usage that a provider reports in an answer's replies; ``None`` if it reports none."""
    usage: dict[str, Any] = {}
    for reply in replies:
        if reply.finish_reason is not None:
            usage["finish_reason"] = reply.finish_reason
        if reply.usage is not None:
            for name, value in ({"requests": 1} | reply.usage).items():
                usage[name] = usage.get(name, 0) + value
    return usage or None


def log_what_was_left_out(log_name: str, built: BuiltRequest) -> None:
    """Log the figures of a trimmed request."""
    receipt = built.fitted.receipt
    if built.fitted.history_trimmed:
        dropped, view = receipt.messages_dropped, seen(receipt.turns_kept, turns_by_reason(receipt.left_out))
        log.info("%s: history trimmed, %s messages left out; the model sees %s.", log_name, dropped, view)
    if receipt.iterations_dropped:
        dropped, total = receipt.iteration_messages_dropped, 1 + len(built.draft.iterations)
        figures = total - dropped, total, receipt.iterations_kept, dropped
        log.info("%s: keeping %s of %s messages, %s iterations, %s left out.", log_name, *figures)
