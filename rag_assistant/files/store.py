"""The names of files, and the store in a local folder."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from filecmp import cmp
from io import BufferedReader
from pathlib import Path
from typing import IO

from msgspec import Struct

from rag_assistant.records.errors import FileDamaged, FilesUnavailable


class FolderFiles:
    """A folder of files with generated names; see FileStore."""

    is_shared = False

    def __init__(self, folder: Path, owner: str) -> None:
        self.address = str(folder)
        self.owner = owner
        self.incoming = folder

    def keep(self, path: Path, name: str) -> None:
        """Give a file in ``incoming`` its name; once it returns, no crash loses the file."""
        with path.open("rb") as written:
            os.fsync(written.fileno())
        target = self._path(name)
        if target.exists() and not cmp(path, target, shallow=False):
            raise FileDamaged(name)
        path.rename(target)

    @contextmanager
    def local(self, name: str, sha256: str, size_bytes: int | None = None) -> Iterator[Path]:
        """Give the path of a file. Raises FileNotFoundError and FileDamaged."""
        with self.verified(name, sha256, size_bytes):
            yield self._path(name)

    def verified(self, name: str, sha256: str, size_bytes: int | None = None) -> IO[bytes]:  # noqa: ARG002 - it is hashed
        """Open a file, compared with ``sha256`` unless that is empty. Raises FileNotFoundError and FileDamaged."""
        file = self.open(name)
        if sha256 and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            file.close()
            raise FileDamaged(name)
        file.seek(0)
        return file

    def open(self, name: str) -> BufferedReader:
        """Open a file to read it once, from its beginning. Raises FileNotFoundError."""
        try:
            return open_below(self._path(name).parent, Path(name))
        except NotAPlainFile as error:
            raise FileDamaged(name) from error

    def drop(self, name: str) -> None:
        """Delete a file, if it exists."""
        if STORED_NAME.fullmatch(name):
            (self.incoming / name).unlink(missing_ok=True)

    def stored(self) -> Iterator[StoredFile]:
        """Yield all files with generated names, including those being written."""
        if self.incoming.exists():
            for path in filter(lambda one: STORED_NAME.fullmatch(one.name), self.incoming.iterdir()):
                try:
                    about = path.stat()
                except FileNotFoundError:
                    continue
                yield StoredFile(path.name, about.st_size, about.st_mtime)

    def _path(self, name: str) -> Path:
        """Return the path of a file. Invalid names, as a foreign backup may contain, have no file."""
        if not FILE_NAME.fullmatch(name):
            raise FileNotFoundError(name)
        return self.incoming / name

    def check(self) -> None:
        """Raise FilesUnavailable if the folder isn't readable and writable."""
        folder = self.incoming if self.incoming.exists() else self.incoming.parent
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise FilesUnavailable(f"The folder for uploaded files, {self.address}, is not readable and writable.")


class NotAPlainFile(Exception):
    """A path leads over a link, or to something else than a file."""


def open_below(folder: Path, path: Path) -> BufferedReader:
    """Open a regular file by its path below a folder; no link is followed, ever. Raises OSError and NotAPlainFile."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in path.parts:
            # A pipe without a writer would block.
            inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened)
            os.close(opened)
            opened = inner
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return os.fdopen(os.dup(opened), "rb")
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
    finally:
        os.close(opened)
    raise NotAPlainFile(path)


# No name that somebody gave is ever used in a store.
FILE_NAME = re.compile(r"[0-9a-f]{32}")
STORED_NAME = re.compile(rf"{FILE_NAME.pattern}(?:\.part)?")
BYTES_AT_ONCE = 1 << 20


class StoredFile(Struct, frozen=True):
    """A file in a store, with the time it was stored, in seconds since 1970."""

    name: str
    size_bytes: int
    stored_at: float
