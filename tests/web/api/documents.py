"""Documents over the API to test with: where one stands, what finds it, and a server that starts over the same data."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Connection

from rag_assistant.services import Services
from rag_assistant.storage.database import Database
from rag_assistant.web import create_app
from tests.web.conftest import until

FACT = "The lighthouse keeper feeds seventeen geese."


def path(document: dict[str, object]) -> str:
    return f"/api/documents/{document['document_id']}"


def found(client: FlaskClient, query: str, **more: object) -> list[dict[str, object]]:
    passages: list[dict[str, object]] = client.get("/api/search", query_string={"q": query} | more).json["passages"]
    return passages


def as_file(text: str) -> io.BytesIO:
    return io.BytesIO(text.encode())


@contextmanager
def running(environment: dict[str, str], **more: str) -> Iterator[tuple[FlaskClient, Services]]:
    """Start the application with other settings over the same data."""
    app = create_app(environment | more)
    services: Services = app.extensions["assistant"]
    services.start()
    try:
        yield app.test_client(), services
    finally:
        services.close()


def replace_after_each_read(
    services: Services, number: int, versions: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replace a document by a newer version each time this thread has read the database."""
    read, here, replacing = Database.read, threading.current_thread(), threading.Lock()

    @contextmanager
    def read_and_replace(database: Database) -> Iterator[Connection]:
        with read(database) as connection:
            yield connection
        if threading.current_thread() is not here or not versions or not replacing.acquire(blocking=False):
            return
        newer = versions.pop(0)
        services.library.accept(io.BytesIO(newer), "newer.txt", replaces=number)
        until(lambda: services.documents.get(number).size_bytes == len(newer))
        replacing.release()

    monkeypatch.setattr(Database, "read", read_and_replace)
