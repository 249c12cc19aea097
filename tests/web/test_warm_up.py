"""What is loaded behind the first page: it ends with the application, and whatever it meets is no crash."""

import threading
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.answering.tool_arguments import SearchDocuments
from rag_assistant.records.errors import StorageFailed
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.retrieval.indexes.vector_search import VectorSearch
from rag_assistant.services import Services
from rag_assistant.web import create_app
from rag_assistant.web.request_bodies import QueryBody
from rag_assistant.web.v1.bodies import ChatBody
from tests.testkit.compiled_once import COMPILED_SQL
from tests.testkit.stub_model import StubModel
from tests.web.conftest import application, served_before, until


def made(environment: dict[str, str]) -> Services:
    app: Flask = create_app(environment)
    services: Services = app.extensions["assistant"]
    return services


def warming() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "warm-up"]


def test_an_end_waits_for_what_is_still_being_loaded(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(self: VectorSearch) -> None:
        begun.set()
        go_on.wait(60)
        ended.set()

    monkeypatch.setattr(VectorSearch, "warm_up", slow)
    services = made(environment)
    services.start()
    assert begun.wait(60)
    threading.Timer(1.0, go_on.set).start()
    services.close()
    assert ended.is_set()


def test_a_database_that_fails_meanwhile_is_no_crash(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that a thread lets out would fail this test."""

    def failing(self: Embedders) -> None:
        raise StorageFailed("The database is being closed.")

    monkeypatch.setattr(Embedders, "configured", failing)
    services = made(environment)
    services.start()
    until(lambda: not warming())
    services.close()


def test_a_request_finds_every_type_of_its_body_built(environment: dict[str, str]) -> None:
    made(environment)
    models = [ChatBody, QueryBody, SearchDocuments]
    assert [one.__name__ for one in models if not one.__pydantic_complete__] == []


def test_an_application_compiles_no_statement_again_that_another_one_has(
    client: FlaskClient, tmp_path: Path, migrated: Path, stub: StubModel
) -> None:
    client.get("/api/conversations")
    first = set(COMPILED_SQL)
    with application(tmp_path / "another", served_before(migrated), stub) as another:
        another.test_client().get("/api/conversations")
    assert len(first) > 10
    assert set(COMPILED_SQL) == first
