"""Where ``documents`` works: on the library of this machine, or of a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import click
from msgspec.structs import fields

from rag_assistant.cli.remote import RefusedThere, RemoteServer
from rag_assistant.records import Document
from rag_assistant.records.errors import DocumentNotFound, SettingsError
from rag_assistant.runtime.data_dir import lock_data_dir

if TYPE_CHECKING:
    from rag_assistant.services import Services

FIELDS = {field.name for field in fields(Document)}


class DocumentsBackend(Protocol):
    """What a terminal needs for documents. Raises AssistantError here, RemoteFailed elsewhere."""

    poll_interval_seconds: float

    def take_in(self, path: Path, tags: Sequence[str]) -> tuple[Document, str]:
        """Add a file; return its document and whether it is new, known and so on. Raises OSError, too."""

    def add_page(self, url: str, tags: Sequence[str]) -> tuple[Document, str]:
        """Fetch a web page; return its document and whether it is new or unchanged."""

    def working(self) -> AbstractContextManager[None]:
        """Let somebody process the library."""

    def every(self, tag: str | None) -> Iterator[Document]:
        """Yield the documents, newest first."""

    def get(self, document_id: int) -> Document:
        """Return a document."""

    def present(self, document_id: int) -> Document | None:
        """Return a document, ``None`` if it is gone."""

    def tag(self, document_id: int, tags: Sequence[str]) -> Document:
        """Replace the tags of a document."""

    def cancel(self, document_id: int) -> Document:
        """Cancel processing."""

    def retry(self, document_id: int) -> Document:
        """Process a document again."""

    def delete(self, document_id: int) -> None:
        """Delete a document permanently."""


class LocalDocuments:
    """Works on the library of this machine."""

    poll_interval_seconds = 0.2

    def __init__(self, services: Services) -> None:
        from rag_assistant.documents.intake import Intake

        services.prepare()
        self._services = services
        self._intake = Intake(services.library, services.documents)

    def take_in(self, path: Path, tags: Sequence[str]) -> tuple[Document, str]:
        """Add a file that is new or has changed."""
        from rag_assistant.documents.sources.folder import file_at, is_file

        return self._intake.take_in(file_at(path), is_file, tags)

    def remove_missing(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Delete the documents whose files are gone."""
        from rag_assistant.documents.sources.folder import Folder, is_file

        folders = [Folder(path) for path in paths]
        for document in self._intake.gone(lambda origin: any(one.holds(origin) for one in folders), is_file):
            self._services.library.remove(document.id)
            yield document

    def add_page(self, url: str, tags: Sequence[str]) -> tuple[Document, str]:
        """Fetch a web page from this machine."""
        document, new = self._services.web_pages.add(url, tags)
        return document, "new" if new else "unchanged"

    def working(self) -> AbstractContextManager[None]:
        """Process it in the running server, or else in this process."""
        return somebody_works(self._services)

    def every(self, tag: str | None) -> Iterator[Document]:
        """Yield the documents, newest first."""
        before: int | None = None
        while page := self._services.documents.page(100, before, tag):
            before = page[-1].id
            yield from page

    def get(self, document_id: int) -> Document:
        """Return a document."""
        return self._services.documents.get(document_id)

    def present(self, document_id: int) -> Document | None:
        """Return a document, ``None`` if it is gone."""
        return None if self._services.documents.missing([document_id]) else self.get(document_id)

    def tag(self, document_id: int, tags: Sequence[str]) -> Document:
        """Replace the tags of a document."""
        return self._services.documents.change(document_id, tags=tags)

    def cancel(self, document_id: int) -> Document:
        """Cancel processing."""
        return self._services.library.cancel(document_id)

    def retry(self, document_id: int) -> Document:
        """Process a document again."""
        return self._services.library.read_again(document_id)

    def delete(self, document_id: int) -> None:
        """Delete a document permanently."""
        self._services.library.remove(document_id)


@contextmanager
def somebody_works(services: Services) -> Iterator[None]:
    """Process the library in the background: in the running server, or else in this process."""
    try:
        lock = lock_data_dir(services.data_dir)
    except SettingsError:
        click.echo("The running server processes them.")
        yield
        return
    services.start_library()
    try:
        yield
    finally:
        services.library.close()
        lock.close()


class RemoteDocuments:
    """Works on the library of whoever a token is for, on a server elsewhere."""

    poll_interval_seconds = 1.0

    def __init__(self, server: RemoteServer) -> None:
        self._server = server

    def take_in(self, path: Path, tags: Sequence[str]) -> tuple[Document, str]:
        """Send a file; the same content is one document."""
        data = self._server.upload("/api/documents", path, {"tags": ",".join(tags)})
        return _document(data), "new" if data["new"] else "known"

    def add_page(self, url: str, tags: Sequence[str]) -> tuple[Document, str]:
        """Let the server fetch a web page."""
        data = self._server.call("POST", "/api/documents/web-page", {"url": url, "tags": list(tags)})
        return _document(data), "new" if data["new"] else "unchanged"

    def working(self) -> AbstractContextManager[None]:
        """Let the server do it."""
        return nullcontext()

    def every(self, tag: str | None) -> Iterator[Document]:
        """Yield the documents, newest first."""
        wanted = f"&tag={quote(tag)}" if tag is not None else ""
        return map(_document, self._server.pages(f"/api/documents?limit=100{wanted}", "documents"))

    def get(self, document_id: int) -> Document:
        """Return a document."""
        return _document(self._server.call("GET", f"/api/documents/{document_id}"))

    def present(self, document_id: int) -> Document | None:
        """Return a document, ``None`` if it is gone."""
        try:
            return self.get(document_id)
        except RefusedThere as refused:
            if refused.kind == DocumentNotFound.__name__:
                return None
            raise

    def tag(self, document_id: int, tags: Sequence[str]) -> Document:
        """Replace the tags of a document."""
        return _document(self._server.call("PATCH", f"/api/documents/{document_id}", {"tags": list(tags)}))

    def cancel(self, document_id: int) -> Document:
        """Cancel processing."""
        return _document(self._server.call("POST", f"/api/documents/{document_id}/cancel", {}))

    def retry(self, document_id: int) -> Document:
        """Process a document again."""
        return _document(self._server.call("POST", f"/api/documents/{document_id}/retry", {}))

    def delete(self, document_id: int) -> None:
        """Delete a document permanently."""
        self._server.call("DELETE", f"/api/documents/{document_id}")


def _document(data: dict[str, Any]) -> Document:
    """Return a document as the API lists it."""
    known = {name: value for name, value in data.items() if name in FIELDS}
    created_at = datetime.fromisoformat(data["created_at"])
    return Document(**known | {"id": data["document_id"], "created_at": created_at, "tags": tuple(data["tags"])})
