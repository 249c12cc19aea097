"""How the tokens of a request are shown: its parts in the order in which they are sent, and what is free behind them.

Pure. The same is drawn on the page by static/js/conversation/gauge.js while somebody types or tries another window.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

# The order is that of the bar. The names are those of the API.
PARTS = {
    "system": "instructions",
    "tools": "tools",
    "summary": "summary",
    "history": "earlier turns",
    "passages": "passages",
    "question": "question",
    "free": "free",
}
# What is there is seen, however small its share is.
NARROWEST_PERCENT = 3.0


class TokenPart(Struct, frozen=True):
    """One part of a request: its tokens, and where it lies in a bar of 100 percent."""

    name: str
    words: str
    tokens: int
    start: float
    width: float


def token_parts(tokens: Mapping[str, Any], with_empty: bool = False) -> list[TokenPart]:
    """Return the parts that have tokens, from ``{"system": 120, ..., "limit": 4096}`` as the API has it.

    Without a limit there is nothing free, and the parts fill the bar. ``with_empty``: every part, for a bar that moves.
    """
    sizes = {name: int(tokens.get(name) or 0) for name in PARTS if name != "free"}
    sizes["free"] = max(0, (tokens.get("limit") or 0) - sum(sizes.values()))
    widths = _widths({name: size for name, size in sizes.items() if size})
    parts: list[TokenPart] = []
    start = 0.0
    for name, size in sizes.items():
        width = widths.get(name, 0.0)
        if size or with_empty:
            parts.append(TokenPart(name, PARTS[name], size, round(start, 2), round(width, 2)))
        start += width
    return parts


def tokens_sentence(tokens: Mapping[str, Any]) -> str:
    """Return the figures as a sentence, for those who do not see the bar."""
    parts = [f"{part.words} {part.tokens:,}" for part in token_parts(tokens)]
    return f"Estimated tokens: {', '.join(parts)}." if parts else "No tokens."


def _widths(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the share of each in percent; what the smallest are given more, the largest gives."""
    whole = sum(sizes.values())
    widths = {name: max(NARROWEST_PERCENT, 100 * size / whole) for name, size in sizes.items()}
    if widths:
        widths[max(widths, key=lambda name: widths[name])] -= sum(widths.values()) - 100
    return widths
