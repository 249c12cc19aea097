"""Where uploaded files lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rag_assistant.factory.extras import extra_for
from rag_assistant.files.folder import FolderFiles
from rag_assistant.files.store import FileStore
from rag_assistant.runtime.data_dir import installation_id
from rag_assistant.runtime.probe import Probe
from rag_assistant.settings.schema import Settings

if TYPE_CHECKING:
    from rag_assistant.files.s3 import S3Files

MAX_AGE_SECONDS = 10.0


def build_files(values: Settings, data_dir: Path) -> FileStore:
    """Return the store that the settings name; nothing is asked of it yet. Raises SettingsError."""
    return open_files(values.files_url or str(data_dir / "uploads"), values, data_dir)


def open_files(where: str, values: Settings, data_dir: Path) -> FileStore:
    """Return the store at an ``s3://`` address or in a folder. Raises SettingsError.

    What speaks to S3 is loaded only if it is used.
    """
    if not where.startswith("s3://"):
        # Where several processes have one folder of files, what is to be read is any one's.
        return FolderFiles(Path(where), installation_id((data_dir / "uploads").resolve().parent))
    return open_bucket(where, "files_url", values, data_dir)


def open_bucket(where: str, setting: str, values: Settings, data_dir: Path) -> S3Files:
    """Return what is below an ``s3://`` address, which a setting names. Raises SettingsError."""
    with extra_for(setting, "s3"):
        from rag_assistant.files.s3 import S3Files
    return S3Files(where, values.s3_endpoint_url, values.s3_region, values.s3_path_style, data_dir / "transfers")


def files_probe(files: FileStore) -> Probe:
    """Return what asks a store now and then: it is ``ready`` or ``unreachable``."""

    def ask() -> str:
        files.check()
        return "ready"

    return Probe("files", ask, silent="unreachable", max_age_seconds=MAX_AGE_SECONDS)
