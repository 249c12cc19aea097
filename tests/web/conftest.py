"""An application with a fresh database and a scripted model."""

import html
import io
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from rag_assistant.llm import client as client_module
from rag_assistant.llm import local_servers
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.runtime.background import Probe
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings
from rag_assistant.web import create_app
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.samples import sample
from tests.testkit.stub_model import StubModel
from tests.testkit.unconfined import read_apart, read_here

JSON = "application/json"
PAGE = {"Accept": "text/html"}
LATE_SECONDS = 0.2
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.02, 0.1


@cache
def served_before(migrated: Path, *documents: tuple[str, str]) -> Path:
    """Return the data of an application that has started and ended, to be copied: a first start has more to do.

    So are documents, each a name with its text; the first is number 1. To add one takes longer than most tests.
    """
    folder, stub = Path(tempfile.mkdtemp(dir=migrated.parent)), StubModel()
    with application(folder, migrated, stub) as app:
        services: Services = app.extensions["assistant"]
        until(lambda: services.embeddings.models() and not services.processing.busy)
        for name, text in documents:
            upload(app.test_client(), text, name)
    stub.close()
    if not documents:  # Files belong to an installation; without any, each is one of its own.
        (folder / "data" / "installation").unlink()
    return folder / "data"


@contextmanager
def application(folder: Path, begun: Path, stub: StubModel, **more: str) -> Iterator[Flask]:
    """Run an application for more than one test; its data lie in a folder, and begin as those that are given."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        put_stand_ins(folder, monkeypatch)
        made = create_app(environment_in(folder, begun, stub) | more)
        services: Services = made.extensions["assistant"]
        services.start()
        try:
            yield made
        finally:
            services.close()


no_model = pytest.mark.settings(OPENAI_BASE_URL=None, OPENAI_MODEL=None, OPENAI_API_KEY=None)
both_engines = pytest.mark.parametrize("engine", sample(["sqlite", "postgresql"]), indirect=True)


@pytest.fixture
def environment(
    tmp_path: Path, migrated: Path, stub: StubModel, engine: str, request: pytest.FixtureRequest
) -> dict[str, str]:
    """The settings of a test's application, which begins with what the markers of the test say."""
    library = request.node.get_closest_marker("library")
    made = environment_in(tmp_path, served_before(migrated, *(library.args if library else ())), stub)
    for more in reversed(list(request.node.iter_markers("settings"))):
        made |= more.kwargs
    if engine == "postgresql":
        made["DATABASE_URL"] = request.getfixturevalue("postgres_database")
    return {name: value for name, value in made.items() if value is not None}


def environment_in(folder: Path, begun: Path, stub: StubModel) -> dict[str, str]:
    """Return the settings of an application whose data lie in a folder, and begin as those that are given."""
    shutil.copytree(begun, folder / "data", ignore=shutil.ignore_patterns("*.lock"))
    return {
        "DATA_DIR": str(folder / "data"),
        "SETTINGS_FILE": str(folder / "settings.json"),
        "OPENAI_BASE_URL": stub.url,
        "OPENAI_API_KEY": "sk-canary-secret",
        "OPENAI_MODEL": "stub-model",
        # No machine is so busy that a model which is to be waited for would be given up; see late_soon.
        "CONNECT_TIMEOUT_SECONDS": "60",
        "FIRST_TOKEN_TIMEOUT_SECONDS": "600",
        "TOKEN_TIMEOUT_SECONDS": "600",
        "MAX_RUNNING_ANSWERS": "8",
        # A request more for each follow-up would stand in the way of the tests that count requests.
        "QUERY_REWRITING": "words",
        # To recognise a page takes seconds.
        "OCR": "off",
    }


@pytest.fixture(autouse=True)
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_stand_ins(tmp_path, monkeypatch)


def put_stand_ins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put what is quick in the place of what takes long."""
    monkeypatch.setattr(minilm, "MiniLM", WordHashEmbedder)
    monkeypatch.setattr("rag_assistant.services.GUIDE", folder / "no-guide")
    monkeypatch.setattr("rag_assistant.settings.live.POLL_INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(client_module, "RETRY_BACKOFF_SECONDS", (0.01, 0.01))
    # A third of a first answer is to ask the stub for its limit; tests/web/api/test_endpoint_cuts.py does.
    monkeypatch.setattr(client_module, "OWN_ADDRESSES", {})
    # To start Chroma takes seconds; the exact index answers. Chroma's own tests are in tests/retrieval/test_chroma.py.
    monkeypatch.setattr("rag_assistant.retrieval.indexes.chroma.ChromaIndex.start", lambda _: None)
    read_here(monkeypatch)


@pytest.fixture
def confined_readers(stand_ins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files in processes of their own, as ever."""
    read_apart(monkeypatch)


@pytest.fixture
def late_soon(app: Flask, stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a model that is about to hang for late after a moment; any other one has its time."""
    services: Services = app.extensions["assistant"]

    def settings() -> Settings:
        reply = stub.replies[0] if stub.replies else stub.default
        current = services.settings.current
        if reply.hang_before_headers or reply.hang_at == 0:
            late = ("connect_timeout_seconds", "first_token_timeout_seconds")
        else:
            late = () if reply.hang_at is None else ("token_timeout_seconds",)
        return current.model_copy(update=dict.fromkeys(late, LATE_SECONDS))

    monkeypatch.setattr(services.models.client, "_settings", settings)


def timeouts(**seconds: float) -> Settings:
    """Return settings with other timeouts: connect, first_token, token, answer."""
    return Settings(**{f"{name}_timeout_seconds": float(value) for name, value in seconds.items()})


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try what an embedder failed at again at once."""
    monkeypatch.setattr("rag_assistant.documents.embedding.RETRY_BACKOFF_SECONDS", (0.01, 0.01, 0.01))


@pytest.fixture
def app(environment: dict[str, str], stand_ins: None) -> Iterator[Flask]:  # pytest-flask asks for it before them.
    made = create_app(environment)
    services: Services = made.extensions["assistant"]
    services.start()
    services.load_embedder()  # Or the first question may be searched for by its words alone.
    yield made
    services.close()


@pytest.fixture(scope="module")
def unasked() -> Iterator[StubModel]:
    """The model of ``empty_app``."""
    model = StubModel()
    yield model
    model.close()


@pytest.fixture(scope="module")
def empty_app(tmp_path_factory: pytest.TempPathFactory, migrated: Path, unasked: StubModel) -> Iterator[Flask]:
    """An application for all tests of a module, in which nothing is ever kept; see ``empty``."""
    with application(tmp_path_factory.mktemp("empty"), served_before(migrated), unasked) as made:
        services: Services = made.extensions["assistant"]
        services.load_embedder()
        until(lambda: services.write_probe.state() == "ready")  # The write of the start may come after it.
        services.write_probe = Probe("writes", lambda: "ready", silent="locked")  # It writes now and then.
        until(lambda: not services.processing.busy)
        yield made


@pytest.fixture
def empty(empty_app: Flask, unasked: StubModel) -> Iterator[FlaskClient]:
    """A client whose requests find nothing and change nothing, so that the tests of a module share an application.

    That no row is written and the model is not asked is checked after each of these tests.
    """
    looking = empty_app.extensions["assistant"].database.engine.raw_connection()
    cursor = looking.cursor()
    before = cursor.execute("PRAGMA data_version").fetchall()
    yield empty_app.test_client()
    written = cursor.execute("PRAGMA data_version").fetchall() != before
    looking.close()
    asked = len(unasked.requests)
    unasked.requests.clear()
    assert (written, asked) == (False, 0)


@pytest.fixture
def services(app: Flask) -> Services:
    found: Services = app.extensions["assistant"]
    return found


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def served(app: Flask) -> Iterator[str]:
    """The address of /v1 of the application."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()


def ask(client: FlaskClient, question: str = "Why?", **fields: Any) -> dict[str, Any]:
    """Ask over the JSON API and return the answer."""
    response = client.post("/api/query", json={"question": question} | fields)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json
    return answer


def events_of(body: bytes) -> list[tuple[str, int | None, dict[str, Any]]]:
    """Return name, id and data of the events in a stream's body."""
    found = []
    for block in body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            position = int(lines["id"]) if "id" in lines else None
            found.append((lines["event"], position, json.loads(lines["data"])))
    return found


def post(client: FlaskClient, path: str, **fields: Any) -> tuple[int, str]:
    """Send a form as a browser does; return the status, and where it leads or the page that came."""
    response = client.post(path, data=fields, headers=PAGE)
    return response.status_code, response.headers.get("Location") or html.unescape(response.text)


def upload(
    client: FlaskClient, content: bytes | str, name: str = "note.txt", wait: bool = True, **fields: str
) -> dict[str, Any]:
    """Add a document, wait until it is worked through, and return it."""
    content = content.encode() if isinstance(content, str) else content
    response = client.post("/api/documents", data={"file": (io.BytesIO(content), name)} | fields)
    assert response.status_code == 202, response.text
    document: dict[str, Any] = response.json
    if not wait or document["state"] in ("ready", "failed"):
        return document
    documents = client.application.extensions["assistant"].documents
    until(lambda: documents.get(document["document_id"]).state in ("ready", "failed"))
    worked_through: dict[str, Any] = client.get(f"/api/documents/{document['document_id']}").json
    return worked_through


@pytest.fixture(autouse=True)
def no_local_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what happens to run on the machine."""
    monkeypatch.setattr(local_servers, "PORTS", {"Nobody": 1})


@contextmanager
def owned_by_the_dead(services: Services) -> Iterator[str]:
    """Let turns be accepted as by a process that died, whose name is given."""
    alive, services.turns.owner = services.turns.owner, "dead"
    yield "dead"
    services.turns.owner = alive


def until(true: Any, seconds: float = 120.0) -> None:
    """Wait until something is so; the longer it takes, the less often it is looked at."""
    end, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(pause)
        pause = min(1.5 * pause, LAST_PAUSE_SECONDS)
