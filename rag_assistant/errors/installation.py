"""What the disk, the database and the settings do not give."""

from rag_assistant.errors.base import AssistantError


class StorageFailed(AssistantError):
    """The database did not take or give what was asked, for instance because the disk is full."""


class StorageDamaged(StorageFailed):
    """The database's file cannot be read any more: waiting does not help, a backup does."""


class FilesUnavailable(StorageFailed):
    """The uploaded files cannot be reached at present; nothing of them is lost."""


class BackupFailed(AssistantError):
    """A backup could not be written or restored; what was there before is as it was."""


class SettingsError(AssistantError):
    """A setting is wrong; the message names where it stands, its value and what is allowed."""
