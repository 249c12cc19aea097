"""Folders of this machine, and prefixes of S3 buckets, as sources of documents. They are read and never changed."""

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
    """The files below a folder."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._path = path

    def files(self) -> Iterator[SourceFile]:
        """Yield the files that are there; what is no file of the folder is left out. Raises OriginUnavailable."""
        if not self._path.is_dir():
            raise OriginUnavailable(f"There is no folder {self._path}.")
        for path in files_below([self._path]):
            try:
                refuse_strange(path, [self._path])
                yield file_at(path)
            except (InvalidRequest, FileNotFoundError):
                continue

    def holds(self, origin: str) -> bool:
        """Tell whether a document that came from there came from this folder."""
        return Path(origin).is_relative_to(self._path.resolve())


def file_at(path: Path) -> SourceFile:
    """Return a file of this machine. Raises OSError."""
    status = path.stat()
    mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"
    return SourceFile(str(path.resolve()), path.name, mark, lambda: path.open("rb"))


def is_file(origin: str) -> bool:
    """Tell whether there is still a file where a document came from."""
    return Path(origin).exists()


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those below folders in the order of their names, without hidden ones.

    Below a folder, pipes and devices are passed over; a link is not, see ``refuse_strange``.
    """
    for path in paths:
        if path.is_dir():
            files = sorted(below for below in path.rglob("*") if below.is_file())
            yield from (below for below in files if not is_hidden(below.relative_to(path).parts))
        else:
            yield path


def refuse_strange(path: Path, given: Iterable[Path]) -> None:
    """Refuse what is no file, a path that is no text, and a link out of the given folders. Raises InvalidRequest."""
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
    """The objects below a prefix; hidden ones are left out."""

    def __init__(self, address: str, files: S3Files) -> None:
        self.address = address
        self._prefix = f"{address.rstrip('/')}/"
        self._files = files

    def files(self) -> Iterator[SourceFile]:
        """Yield the objects that are there. Raises OriginUnavailable."""
        try:
            for key, mark in self._files.objects():
                if not is_hidden(key.split("/")):
                    name = key.rsplit("/", 1)[-1]
                    yield SourceFile(f"{self._prefix}{key}", name, mark, partial(self._files.open, key))
        except FilesUnavailable as error:
            raise OriginUnavailable(str(error)) from error

    def holds(self, origin: str) -> bool:
        """Tell whether a document that came from there came from below this prefix."""
        return origin.startswith(self._prefix)
