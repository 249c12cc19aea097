"""Folders on this machine, and prefixes of S3 buckets, as read-only sources of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assistant.documents.intake import SourceFile
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
                refuse_strange(path, [self._path])
                yield file_at(path)
            except (InvalidRequest, FileNotFoundError):
                continue

    def holds(self, origin: str) -> bool:
        """Return whether a document's origin is in this folder."""
        return Path(origin).is_relative_to(self._path.resolve())


def file_at(path: Path) -> SourceFile:
    """Return a file of this machine. Raises OSError."""
    status = path.stat()
    mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"
    return SourceFile(str(path.resolve()), path.name, mark, lambda: path.open("rb"))


def is_file(origin: str) -> bool:
    """Return whether the file of an origin still exists."""
    return Path(origin).exists()


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those in folders sorted by name, without hidden ones.

    Pipes and devices in folders are skipped; links aren't, see ``refuse_strange``.
    """
    for path in paths:
        if path.is_dir():
            files = sorted(below for below in path.rglob("*") if below.is_file())
            yield from (below for below in files if not is_hidden(below.relative_to(path).parts))
        else:
            yield path


def refuse_strange(path: Path, given: Iterable[Path]) -> None:
    """Raise InvalidRequest for what isn't a file, a name that isn't UTF-8, and a link out of the given folders."""
    if storable(str(path)) != str(path):
        raise InvalidRequest("The name of this file is not UTF-8. Rename it.")
    if not path.is_file():
        raise InvalidRequest("This is not a file.")
    target = path.resolve()
    if path not in given and not any(target.is_relative_to(folder.resolve()) for folder in given if folder.is_dir()):
        raise InvalidRequest(f"This is a link to {target}, outside the folder. Add that file by its own path.")


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
            for key, mark in self._files.objects():
                if not is_hidden(key.split("/")):
                    name = key.rsplit("/", 1)[-1]
                    yield SourceFile(f"{self._prefix}{key}", name, mark, partial(self._files.open, key))
        except FilesUnavailable as error:
            raise OriginUnavailable(str(error)) from error

    def holds(self, origin: str) -> bool:
        """Return whether a document's origin is below this prefix."""
        return origin.startswith(self._prefix)
