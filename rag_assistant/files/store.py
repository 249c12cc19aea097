"""What every store of files can do, what a file in it is called, and the store in a folder of this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from filecmp import cmp
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

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
        target = self._path(name)
        if target.exists() and not cmp(path, target, shallow=False):
            raise FileDamaged(name)
        path.rename(target)

    @contextmanager
    def local(self, name: str, sha256: str) -> Iterator[Path]:  # noqa: ARG002 - nothing came over a network
        """Give where a file lies. Raises FileNotFoundError."""
        path = self._path(name)
        path.stat()
        yield path

    def open(self, name: str) -> IO[bytes]:
        """Open a file. Raises FileNotFoundError."""
        return self._path(name).open("rb")

    def drop(self, name: str) -> None:
        """Delete a file, if it is there."""
        if STORED_NAME.fullmatch(name):
            (self.incoming / name).unlink(missing_ok=True)

    def stored(self) -> Iterator[StoredFile]:
        """Yield all files that have names of ours, those included that are being written."""
        if self.incoming.exists():
            for path in filter(lambda one: STORED_NAME.fullmatch(one.name), self.incoming.iterdir()):
                try:
                    about = path.stat()
                except FileNotFoundError:
                    continue
                yield StoredFile(path.name, about.st_size, about.st_mtime)

    def _path(self, name: str) -> Path:
        """Return where a file lies. A name that is none of ours, as a foreign backup may hold, is that of no file."""
        if not FILE_NAME.fullmatch(name):
            raise FileNotFoundError(name)
        return self.incoming / name

    def check(self) -> None:
        """Raise FilesUnavailable if files can be neither read nor written there."""
        folder = self.incoming if self.incoming.exists() else self.incoming.parent
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise FilesUnavailable(f"The folder for uploaded files, {self.address}, is not readable and writable.")


# No name that somebody gave is ever used in a store.
FILE_NAME = re.compile(r"[0-9a-f]{32}")
STORED_NAME = re.compile(rf"{FILE_NAME.pattern}(?:\.part)?")
BYTES_AT_ONCE = 1 << 20


class StoredFile(Struct, frozen=True):
    """A file that is in a store, with the moment at which it came there, in seconds since 1970."""

    name: str
    size_bytes: int
    stored_at: float


class FileStore(Protocol):
    """Keeps files under names that are given once, so that no file ever takes another one's place.

    Every method raises FilesUnavailable where the store does not do what was asked and may do so later.
    """

    # Where it is, as a person writes it.
    address: str
    # By what a document's row says that its file lies here.
    owner: str
    # Whether other servers reach the same files.
    is_shared: bool
    # The folder in which files are written before they are kept.
    incoming: Path

    def keep(self, path: Path, name: str) -> None:
        """Take a file out of ``incoming``; when it returns, no crash loses the file."""

    def local(self, name: str, sha256: str) -> AbstractContextManager[Path]:
        """Give the path of a file on this machine, for as long as it is worked with.

        Raises FileNotFoundError, and FileDamaged if its content is known not to be what ``sha256`` says.
        """

    def open(self, name: str) -> IO[bytes]:
        """Open a file to be read from any position. Raises FileNotFoundError."""

    def drop(self, name: str) -> None:
        """Delete a file, if it is there."""

    def stored(self) -> Iterator[StoredFile]:
        """Yield all files that are there."""

    def check(self) -> None:
        """Raise FilesUnavailable, with the reason, if the store cannot be used."""
