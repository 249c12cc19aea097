"""Files and folders of this machine: what is new, changed, moved or gone since they were taken in last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from rag_assistant.documents.library import Library
from rag_assistant.documents.uploads import clean_name, sha256_of
from rag_assistant.errors import InvalidRequest, SameContent
from rag_assistant.records import Document
from rag_assistant.storage.documents.documents import GIVEN_UP, DocumentStore
from rag_assistant.validation import storable

Outcome = Literal["new", "unchanged", "changed", "moved", "known"]


class Folders:
    """Takes in files, each of which is known again by its path and its content."""

    def __init__(self, library: Library, documents: DocumentStore) -> None:
        self._library = library
        self._documents = documents

    @cached_property
    def _known(self) -> dict[str, Document]:
        return self._documents.by_origin()

    def take_in(self, path: Path, tags: Sequence[str] = ()) -> tuple[Document, Outcome]:
        """Take in one file: an unchanged one is skipped, a changed one replaces its older version once it is ready.

        ``moved``: its content was read from a file that is not there any more. ``known``: another document has the
        same content. Raises what ``Library.accept`` raises, and OSError.
        """
        origin = str(path.resolve())
        known = self._known.get(origin)
        if known is not None and self._documents.missing([known.id]):
            known = None
        if known is None:
            return self._take_in_new(path, origin, tags)
        known = self._documents.get(known.id)
        if known.sha256 == sha256_of(path):
            return self._leave(known, tags), "unchanged"
        try:
            with path.open("rb") as file:
                document, _ = self._library.accept(file, path.name, replaces=known.id, tags=tags)
        except SameContent as error:
            document = self._documents.get(error.document_id)
            if document.state == "ready" and document.replaces is None:
                self._library.remove(known.id)  # It became what another document is already.
            return document, "known"
        return document, "unchanged" if document.id == known.id else "changed"

    def _take_in_new(self, path: Path, origin: str, tags: Sequence[str]) -> tuple[Document, Outcome]:
        with path.open("rb") as file:
            document, new = self._library.accept(file, path.name, origin=origin, tags=tags)
        self._known[origin] = document
        if new:
            return document, "new"
        if document.origin not in (None, origin) and not Path(document.origin or "").exists():
            return self._documents.change(document.id, name=clean_name(path.name), origin=origin), "moved"
        return document, "known"

    def _leave(self, known: Document, tags: Sequence[str]) -> Document:
        """Return an unchanged document with the tags; one that failed or was cancelled is read again."""
        if known.state in GIVEN_UP:
            known = self._library.read_again(known.id)
        if not set(tags) <= set(known.tags):
            known = self._documents.change(known.id, tags=[*known.tags, *tags])
        return known

    def gone_below(self, folders: Iterable[Path]) -> list[Document]:
        """Return the documents that came from files below some folders which are not there any more."""
        roots = [folder.resolve() for folder in folders]
        return [
            document
            for origin, document in self._documents.by_origin().items()
            if any(Path(origin).is_relative_to(root) for root in roots) and not Path(origin).exists()
        ]


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those below folders in the order of their names, without hidden ones.

    Below a folder, pipes and devices are passed over; a link is not, see ``refuse_strange``.
    """
    for path in paths:
        if path.is_dir():
            found = sorted(below for below in path.rglob("*") if below.is_file())
            yield from (below for below in found if not _hidden(below, path))
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


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
