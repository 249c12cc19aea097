"""How a view reaches the services of its application."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from flask import current_app

if TYPE_CHECKING:
    from rag_assistant.services import Services


def services() -> Services:
    """Return the services of the running application."""
    return cast("Services", current_app.extensions["assistant"])
