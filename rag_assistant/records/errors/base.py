"""The root of the tree."""

from typing import Any


class AssistantError(Exception):
    """The root of the tree.

    ``details`` are figures and choices by which a caller can decide, ``param`` is the field that is wrong, and after
    ``retry_after_seconds`` the same may succeed: ``None`` where there is no such thing.
    """

    details: dict[str, Any] | None = None
    param: str | None = None
    retry_after_seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the error in the one shape in which it is shown."""
        details = {"details": self.details} if self.details else {}
        return {"type": type(self).__name__, "message": str(self)} | details
