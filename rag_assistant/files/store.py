"""What every store of files can do, and what a file in it is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

# No name that somebody gave is ever used in a store.
FILE_NAME = re.compile(r"[0-9a-f]{32}")
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
