"""Documents over the API to test with: where one stands, what finds it, and a server that starts over the same data."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

from flask.testing import FlaskClient

from rag_assistant.factory import create_app
from rag_assistant.web.services import Services

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
