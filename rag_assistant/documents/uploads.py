"""The uploaded files: received under names of ours, named for people, dropped when nobody needs them."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rag_assistant.errors import BodyTooLarge, InvalidRequest
from rag_assistant.extraction.loaders import media_type_of

BYTES_AT_ONCE = 1 << 20
BYTES_LOOKED_AT = 4096
MAX_NAME_CHARS = 255
STRAY_AFTER_SECONDS = 3600.0


@dataclass(frozen=True)
class Received:
    """A file that is on the disk: ``file`` is its name there, ``name`` the one that people gave it."""

    file: str
    name: str
    media_type: str
    size_bytes: int
    sha256: str


class Uploads:
    """A folder of files with names of ours. No name that somebody gave is ever used as a path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def receive(self, file: IO[bytes], name: str, max_mb: int) -> Received:
        """Write a file to the disk. Raises UnsupportedDocument, BodyTooLarge, InvalidRequest; then nothing is left."""
        name = clean_name(name)
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{uuid.uuid4().hex}.part"
        try:
            size, sha256, head = _write(file, path, max_mb)
            media_type = media_type_of(head, name)
            kept = path.with_suffix("")
            path.rename(kept)
        finally:
            path.unlink(missing_ok=True)
        return Received(kept.name, name, media_type, size, sha256)

    def path_of(self, file: str) -> Path:
        """Return where a file lies."""
        return self._folder / file

    def drop(self, file: str) -> None:
        """Delete a file, if it is there."""
        (self._folder / file).unlink(missing_ok=True)

    def names(self) -> set[str]:
        """Return the names of all files that are there."""
        return {path.name for path in self._folder.iterdir()} if self._folder.exists() else set()

    def strays(self, known: Collection[str]) -> list[str]:
        """Return old files that are not known: what an aborted upload or a crash in a deletion left behind."""
        before = time.time() - STRAY_AFTER_SECONDS
        return [name for name in self.names().difference(known) if (self._folder / name).stat().st_mtime < before]

    def drop_strays(self, known: Collection[str]) -> None:
        """Delete old files that are not known."""
        for name in self.strays(known):
            self.drop(name)


def clean_name(name: str) -> str:
    """Return a file's name for people: no folders, nothing that cannot be seen."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    seen = "".join(character for character in last if character.isprintable()).strip()
    return seen[:MAX_NAME_CHARS] or "unnamed"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(file: IO[bytes], path: Path, max_mb: int) -> tuple[int, str, bytes]:
    """Write a file to the disk; return its size, its SHA-256 and its first bytes."""
    size, digest, head = 0, hashlib.sha256(), b""
    with path.open("xb") as kept:
        while piece := file.read(BYTES_AT_ONCE):
            size += len(piece)
            if size > max_mb * 1_000_000:
                raise BodyTooLarge(f"The file is larger than {max_mb} MB, the largest that is accepted.")
            head = head or piece[:BYTES_LOOKED_AT]
            digest.update(piece)
            kept.write(piece)
        kept.flush()
        os.fsync(kept.fileno())
    if not size:
        raise InvalidRequest("The file is empty.")
    return size, digest.hexdigest(), head
