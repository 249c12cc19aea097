"""An answer's figures about earlier turns. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assistant.history.fitting import FittedHistory
from rag_assistant.history.words import turns_by_reason
from rag_assistant.records import RelatedTurn


def history_figures(
    fitted: FittedHistory,
    passage_tokens: int,
    limit: int | None,
    recalled: Sequence[int],
    missing: Sequence[RelatedTurn],
) -> dict[str, Any]:
    """Return the ``history`` object of an answer. Token figures are estimates, ``limit`` is the model's."""
    receipt = fitted.receipt
    tokens = receipt.tokens
    parts = {
        "system": tokens["system"],
        "tools": tokens["reserved"],
        "summary": tokens["summary"],
        "history": tokens["history"],
        "passages": passage_tokens,
        "question": tokens["question"] - passage_tokens,
    }
    return {
        "max_history_turns": receipt.max_history_turns,
        "strategy": receipt.strategy,
        "turns_total": receipt.turns_total,
        "turns_kept": receipt.turns_kept,
        "turns_dropped": receipt.turns_dropped,
        "messages_dropped": receipt.messages_dropped,
        "first_kept_turn": receipt.first_kept_turn,
        "reason": receipt.reason,
        "notice": fitted.notice,
        "left_out": turns_by_reason(receipt.left_out),
        "summary_sent": receipt.summary_sent,
        "recalled_turns": list(recalled),
        "missing": [{"turn": turn.number, "why": turn.why, "score": turn.certainty} for turn in missing],
        "iterations_dropped": receipt.iterations_dropped,
        "endpoint": None,
        "tokens": parts | {"total": sum(parts.values()), "limit": limit, "read": None},
    }


def with_reading(figures: Mapping[str, Any], read: int | None, cut: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the figures with how much of the request the endpoint read, and any ``cut`` it made."""
    figures_read = {**figures, "tokens": figures["tokens"] | {"read": read}}
    return figures_read if cut is None else figures_read | {"endpoint": cut, "reason": "endpoint_limit"}
