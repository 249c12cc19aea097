"""An answer's figures about earlier turns, and the display of its tokens. Pure.

static/js/conversation/gauge.js draws the same on the page while somebody types or tries another window.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from rag_assistant.history.fitting import FittedHistory
from rag_assistant.history.receipt import HistoryReceipt
from rag_assistant.history.words import turns_by_reason
from rag_assistant.records import HistoryFigures, RelatedTurn


def history_figures(
    fitted: FittedHistory,
    passage_tokens: int,
    limit: int | None,
    recalled: Sequence[int],
    missing: Sequence[RelatedTurn],
) -> dict[str, Any]:
    """Return the ``history`` object of an answer. Token figures are estimates, ``limit`` is the model's."""
    receipt = fitted.receipt
    parts = receipt.tokens | {"passages": passage_tokens, "question": receipt.tokens["question"] - passage_tokens}
    shared = HistoryReceipt.__struct_fields__
    return {name: getattr(receipt, name) for name in HistoryFigures.__struct_fields__ if name in shared} | {
        "notice": fitted.notice,
        "left_out": turns_by_reason(receipt.left_out),
        "recalled_turns": list(recalled),
        "missing": [{"turn": turn.number, "why": turn.why, "score": turn.certainty} for turn in missing],
        "endpoint": None,
        "tokens": parts | {"total": sum(parts.values()), "limit": limit, "read": None},
    }


def with_reading(figures: Mapping[str, Any], read: int | None, cut: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the figures with how much of the request the endpoint read, and any ``cut`` it made."""
    figures_read = {**figures, "tokens": figures["tokens"] | {"read": read}}
    return figures_read if cut is None else figures_read | {"endpoint": cut, "reason": "endpoint_limit"}


# In the order of the bar, with the names of the API.
PARTS = {
    "system": "instructions",
    "tools": "tools",
    "summary": "summary",
    "history": "earlier turns",
    "passages": "passages",
    "question": "question",
    "free": "free",
}
# Even the smallest part must be visible.
NARROWEST_PERCENT = 3.0


class TokenPart(Struct, frozen=True):
    """One part of a request: its tokens, and its place in a bar of 100 percent."""

    name: str
    words: str
    tokens: int
    start: float
    width: float


def token_parts(tokens: Mapping[str, Any], with_empty: bool = False) -> list[TokenPart]:
    """Return the parts that have tokens, from ``{"system": 120, ..., "limit": 4096}`` as in the API.

    Without a limit nothing is free, and the parts fill the bar. ``with_empty``: every part, for a bar that moves.
    """
    sizes = {name: int(tokens.get(name) or 0) for name in PARTS if name != "free"}
    sizes["free"] = max(0, (tokens.get("limit") or 0) - sum(sizes.values()))
    whole = sum(sizes.values())
    widths = {name: max(NARROWEST_PERCENT, 100 * size / whole) for name, size in sizes.items() if size}
    if widths:  # The smallest are enlarged at the cost of the largest.
        widths[max(widths, key=lambda name: widths[name])] -= sum(widths.values()) - 100
    parts: list[TokenPart] = []
    start = 0.0
    for name, size in sizes.items():
        width = widths.get(name, 0.0)
        if size or with_empty:
            parts.append(TokenPart(name, PARTS[name], size, round(start, 2), round(width, 2)))
        start += width
    return parts


def tokens_sentence(tokens: Mapping[str, Any]) -> str:
    """Return the figures as a sentence, for screen readers."""
    parts = [f"{part.words} {part.tokens:,}" for part in token_parts(tokens)]
    return f"Estimated tokens: {', '.join(parts)}." if parts else "No tokens."
