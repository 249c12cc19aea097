"""What the disk, the database and the settings do not give."""

from rag_assistant.records.errors.base import AssistantError


class StorageFailed(AssistantError):
    """The database could not read or write, for instance because the disk is full."""


class StorageDamaged(StorageFailed):
    """The database file cannot be read any more: waiting does not help, restoring a backup does."""


class FilesUnavailable(StorageFailed):
    """The uploaded files cannot be reached at the moment; none of them is lost."""


class BackupFailed(AssistantError):
    """A backup could not be written or restored; what was there before is as it was."""


class SettingsError(AssistantError):
    """A setting is wrong; the message names where it stands, its value and what is allowed."""
