"""Files from elsewhere: new, changed, moved or deleted since the last import."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from io import BufferedReader
from typing import Literal

from msgspec import Struct

from rag_assistant.documents.library import Library
from rag_assistant.documents.uploads import clean_name
from rag_assistant.records import Document
from rag_assistant.records.errors import SameContent
from rag_assistant.storage.documents.documents import GIVEN_UP

Outcome = Literal["new", "unchanged", "changed", "moved", "known"]


class SourceFile(Struct, frozen=True):
    """A file elsewhere: ``origin`` identifies it, ``mark`` changes with its content, last on the day ``modified``."""

    origin: str
    name: str
    mark: str
    open: Callable[[], BufferedReader]
    modified: str | None = None


class Intake:
    """Imports files, recognising each by origin and content."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._documents = library.documents

    @cached_property
    def by_origin(self) -> dict[str, Document]:
        """The documents imported from elsewhere, by origin."""
        return self._documents.by_origin()

    def take_in(
        self, file: SourceFile, is_there: Callable[[str], bool], tags: Sequence[str] = (), *, retry: bool = True
    ) -> tuple[Document, Outcome]:
        """Import one file: an unchanged one is skipped, a changed one replaces its older version once it is ready.

        ``moved``: the file its content was read from is gone, as ``is_there`` tells of its origin. ``known``: another
        document has the same content. With ``retry`` an unchanged one that failed or was cancelled is read again.
        Raises what ``Library.accept`` raises, FilesUnavailable and OSError.
        """
        earlier = self.by_origin.get(file.origin)
        if earlier is None or self._documents.missing([earlier.id]):
            return self._take_in_new(file, is_there, tags)
        document_here = self._documents.get(earlier.id)
        with file.open() as content:
            is_same = document_here.sha256 == hashlib.file_digest(content, "sha256").hexdigest()
        if is_same:
            if retry and document_here.state in GIVEN_UP:
                document_here = self._library.read_again(document_here.id)
            if not set(tags) <= set(document_here.tags):
                document_here = self._documents.change(document_here.id, tags=[*document_here.tags, *tags])
            return document_here, "unchanged"
        try:
            with file.open() as content:
                document, _ = self._library.accept(
                    content, file.name, replaces=document_here.id, tags=tags, modified=file.modified
                )
        except SameContent as error:
            document = self._documents.get(error.document_id)
            if document.state == "ready" and document.replaces is None:
                self._library.remove(document_here.id)  # It now has the content of another document.
            return document, "known"
        return document, "unchanged" if document.id == document_here.id else "changed"

    def _take_in_new(
        self, file: SourceFile, is_there: Callable[[str], bool], tags: Sequence[str]
    ) -> tuple[Document, Outcome]:
        with file.open() as content:
            document, new = self._library.accept(
                content, file.name, origin=file.origin, tags=tags, modified=file.modified
            )
        self.by_origin[file.origin] = document
        if new:
            return document, "new"
        if document.origin not in (None, file.origin) and not document.is_web_page and not is_there(document.origin):
            moved = self._documents.change(document.id, name=clean_name(file.name), origin=file.origin)
            self.by_origin[file.origin] = moved
            return moved, "moved"
        return document, "known"

    def gone(self, belongs: Callable[[str], bool], is_there: Callable[[str], bool]) -> list[Document]:
        """Return the documents whose origin belongs to a source but no longer exists."""
        by_origin = self._documents.by_origin()
        return [document for origin, document in by_origin.items() if belongs(origin) and not is_there(origin)]
