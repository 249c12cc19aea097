"""Folders on this machine, and prefixes of S3 buckets, as read-only sources of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assistant.documents.intake import SourceFile
from rag_assistant.files.store import NotAPlainFile, open_below
from rag_assistant.records.errors import FilesUnavailable, InvalidRequest, OriginUnavailable
from rag_assistant.records.validation import storable

if TYPE_CHECKING:
    from rag_assistant.files.s3 import S3Files


class Folder:
    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._path = path

    def files(self) -> Iterator[SourceFile]:
        """Yield the files in the folder; what isn't a regular file is left out. Raises OriginUnavailable."""
        if not self._path.is_dir():
            raise OriginUnavailable(f"There is no folder {self._path}.")
        for path in files_below([self._path]):
            try:
                yield file_at(path, [self._path])
            except (InvalidRequest, FileNotFoundError):
                continue

    def holds(self, origin: str) -> bool:
        """Return whether a document's origin is in this folder."""
        return Path(origin).is_relative_to(self._path.resolve())


def file_at(path: Path, given: Iterable[Path]) -> SourceFile:
    """Return a file of this machine, which is one of the given ones or in one of the given folders.

    Raises OSError, and InvalidRequest for what isn't a file, a name that isn't UTF-8, and a link out of the folders.
    """
    if storable(str(path)) != str(path):
        raise InvalidRequest("The name of this file is not UTF-8. Rename it.")
    if not path.is_file():
        raise InvalidRequest("This is not a file.")
    target, folders = path.resolve(), [folder.resolve() for folder in given if folder.is_dir()]
    root = target.parent if path in given else next(filter(target.is_relative_to, folders), None)
    if root is None:
        raise InvalidRequest(f"This is a link to {target}, outside the folder. Add that file by its own path.")
    status = target.lstat()
    mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"
    day = datetime.fromtimestamp(status.st_mtime, UTC).date().isoformat()
    return SourceFile(str(target), path.name, mark, partial(_open_in, root, target), day)


def _open_in(root: Path, target: Path) -> BufferedReader:
    """Open a file that was in a folder when that was listed. Raises OSError, and FilesUnavailable for a link by now."""
    try:
        return open_below(root, target.relative_to(root))
    except NotAPlainFile as error:
        raise FilesUnavailable(f"{target} has become a link, or is in a folder that has. It was not read.") from error


def is_file(origin: str) -> bool:
    """Return whether the file of an origin still exists."""
    return Path(origin).exists()


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those in folders sorted by name, without hidden ones.

    Pipes and devices in folders are skipped; links aren't, see ``file_at``.
    """
    for path in paths:
        if path.is_dir():
            files = sorted(below for below in path.rglob("*") if below.is_file())
            yield from (below for below in files if not is_hidden(below.relative_to(path).parts))
        else:
            yield path


def is_hidden(parts: Iterable[str]) -> bool:
    return any(part.startswith(".") for part in parts)


class Bucket:
    """The objects below a prefix, without hidden ones."""

    def __init__(self, address: str, files: S3Files) -> None:
        self.address = address
        self._prefix = f"{address.rstrip('/')}/"
        self._files = files

    def files(self) -> Iterator[SourceFile]:
        """Yield the objects. Raises OriginUnavailable."""
        try:
            for file, mark in self._files.objects():
                key = file.name
                if not is_hidden(key.split("/")):
                    name = key.rsplit("/", 1)[-1]
                    day = datetime.fromtimestamp(file.stored_at, UTC).date().isoformat()
                    yield SourceFile(f"{self._prefix}{key}", name, mark, partial(self._files.open, key), day)
        except FilesUnavailable as error:
            raise OriginUnavailable(str(error)) from error

    def holds(self, origin: str) -> bool:
        """Return whether a document's origin is below this prefix."""
        return origin.startswith(self._prefix)
