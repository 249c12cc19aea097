"""Where settings.json is, and how it comes to be there: made once from the example, then only read."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from rag_assistant.settings.package_files import SETTINGS_EXAMPLE, SETTINGS_SCHEMA, home

log = logging.getLogger(__name__)


def settings_path(environment: Mapping[str, str]) -> Path:
    """Return the file that SETTINGS_FILE names, else settings.json in the folder from which relative paths count."""
    return home() / (environment.get("SETTINGS_FILE") or "settings.json")


def provide_settings_file(environment: Mapping[str, str] | None = None) -> None:
    """Make settings.json and its schema where they are not; a file that is there stays as it is.

    A file that SETTINGS_FILE names is not made: a misspelt name is to be noticed. A folder that cannot be written to
    is one sentence in the log.
    """
    environment = os.environ if environment is None else environment
    path = settings_path(environment)
    if environment.get("SETTINGS_FILE"):
        if not os.access(path, os.F_OK):
            log.warning("There is no %s; every setting has its default.", path)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path, SETTINGS_EXAMPLE.read_bytes())
        _refresh(path.with_name(SETTINGS_SCHEMA.name), SETTINGS_SCHEMA.read_bytes())
    except OSError as error:
        log.warning("%s or its schema cannot be made (%s); we go on without.", path, error.strerror)


def _make(path: Path, content: bytes) -> None:
    """Write a file that is not there, for its owner alone: keys will stand in it."""
    if path.exists():
        return
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except FileExistsError:
        return  # Another process of ours was quicker.
    log.info("%s was made; every setting that it does not name has its default.", path)


def _refresh(path: Path, content: bytes) -> None:
    """Write a file whose content is another one, such as the schema of an older version."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
