"""Files in a folder of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from filecmp import cmp
from pathlib import Path
from typing import IO

from rag_assistant.files.store import StoredFile
from rag_assistant.records.errors import FileDamaged, FilesUnavailable


class FolderFiles:
    """A folder of files with names of ours; see FileStore."""

    is_shared = False

    def __init__(self, folder: Path, owner: str) -> None:
        self.address = str(folder)
        self.owner = owner
        self.incoming = folder

    def keep(self, path: Path, name: str) -> None:
        """Give a file that was written here its name."""
        with path.open("rb") as written:
            os.fsync(written.fileno())
        target = self.incoming / name
        if target.exists() and not cmp(path, target, shallow=False):
            raise FileDamaged(name, self.address)
        path.rename(target)

    @contextmanager
    def local(self, name: str, sha256: str) -> Iterator[Path]:  # noqa: ARG002 - nothing came over a network
        """Give where a file lies. Raises FileNotFoundError."""
        path = self.incoming / name
        path.stat()
        yield path

    def open(self, name: str) -> IO[bytes]:
        """Open a file. Raises FileNotFoundError."""
        return (self.incoming / name).open("rb")

    def drop(self, name: str) -> None:
        """Delete a file, if it is there."""
        (self.incoming / name).unlink(missing_ok=True)

    def stored(self) -> Iterator[StoredFile]:
        """Yield all files, those included that are being written."""
        if self.incoming.exists():
            for path in self.incoming.iterdir():
                try:
                    about = path.stat()
                except FileNotFoundError:
                    continue
                yield StoredFile(path.name, about.st_size, about.st_mtime)

    def check(self) -> None:
        """Raise FilesUnavailable if files can be neither read nor written there."""
        found = self.incoming if self.incoming.exists() else self.incoming.parent
        if not os.access(found, os.R_OK | os.W_OK | os.X_OK):
            raise FilesUnavailable(f"The folder of the uploaded files, {self.address}, cannot be read and written.")
