"""What lies below a prefix of an S3 bucket, as a source of documents. It is read and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from rag_assistant.documents.intake import SourceFile
from rag_assistant.records.errors import FilesUnavailable, OriginUnavailable

if TYPE_CHECKING:
    from rag_assistant.files.s3 import S3Files


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
                if not any(part.startswith(".") for part in key.split("/")):
                    name = key.rsplit("/", 1)[-1]
                    yield SourceFile(f"{self._prefix}{key}", name, mark, partial(self._files.open, key))
        except FilesUnavailable as error:
            raise OriginUnavailable(str(error)) from error

    def holds(self, origin: str) -> bool:
        """Tell whether a document that came from there came from below this prefix."""
        return origin.startswith(self._prefix)
