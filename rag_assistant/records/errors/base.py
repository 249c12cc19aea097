"""The root of the tree, and errors of storage and settings."""

import re
from typing import Any


class AssistantError(Exception):
    """The root of the tree.

    ``sentence`` is the message, whose places ``values`` fill in order; one without places may be replaced. Without a
    sentence, the single value is the message, and the class says when it is raised.
    ``details`` are figures and choices for the caller, ``param`` is the field that is wrong, and the same may succeed
    after ``retry_after_seconds``: ``None`` if it won't.
    """

    sentence: str | None = None
    details: dict[str, Any] | None = None
    param: str | None = None
    retry_after_seconds: float | None = None

    def __init__(
        self,
        *values: object,
        details: dict[str, Any] | None = None,
        param: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        sentence = self.sentence or ""
        if places := dict.fromkeys(re.findall(r"\{(\w+)\}", sentence)):
            values = (sentence.format(**dict(zip(places, values, strict=True))),)
        super().__init__(*(values or (sentence,)))
        self.details, self.param = details or self.details, param or self.param
        if retry_after_seconds is not None:
            self.retry_after_seconds = retry_after_seconds

    def as_dict(self) -> dict[str, Any]:
        """Return the error in the form in which it is shown."""
        details = {"details": self.details} if self.details else {}
        return {"type": type(self).__name__, "message": str(self)} | details


class NotFound(AssistantError):
    """There is no such thing, or not for this person."""


class Conflict(AssistantError):
    """The current state of the resource does not allow this."""


class Busy(AssistantError):
    """There is too much to do at the moment. Nothing was done, and the same may succeed in a few seconds."""

    retry_after_seconds = 5


class StorageFailed(AssistantError):
    """The database could not read or write, for instance because the disk is full."""


class StorageDamaged(StorageFailed):
    """The database file is damaged. Waiting does not help: restore a backup."""


class DatabaseUnavailable(StorageFailed):
    """The database cannot be reached, or another program keeps it locked; nothing is lost."""


class FilesUnavailable(StorageFailed):
    """The uploaded files cannot be reached at the moment; none of them is lost."""


class BackupFailed(AssistantError):
    """A backup could not be written or restored; what was there before is as it was."""


class SettingsError(AssistantError):
    """A setting is wrong; the message names where it stands, its value and what is allowed."""


class SettingsChanged(Conflict):
    """The settings file has changed since the page with the form was opened; nothing was saved."""
