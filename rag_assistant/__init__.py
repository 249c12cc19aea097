"""A self-hosted assistant that answers from your documents and tells the truth about what it remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_assistant.factory import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    """Load Flask and the rest only for those who ask for the application: history and prompt need none of it."""
    if name == "create_app":
        from rag_assistant.factory import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
