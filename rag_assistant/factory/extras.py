"""What some settings need is installed apart, with an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rag_assistant.records.errors import SettingsError
from rag_assistant.settings.package_files import command_for_extra


@contextmanager
def extra_for(setting: str, extra: str) -> Iterator[None]:
    """Say how the extra is installed if a package that it brings is missing. Raises SettingsError."""
    try:
        yield
    except ImportError as error:
        raise SettingsError(
            f"{setting} needs the package {error.name}, which is not installed. Run `{command_for_extra(extra)}`."
        ) from error
