"""How the server says how it is."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant import __version__
from rag_assistant.services import Services
from rag_assistant.settings.schema import SECRET, Settings
from rag_assistant.storage.database import sqlite_module
from rag_assistant.storage.failures import failures_named
from rag_assistant.storage.scheduled_backups import BackupStatus
from rag_assistant.web import create_app
from tests.testkit.stub_model import StubModel
from tests.web.conftest import ask, until


def test_health_needs_nothing(environment: dict[str, str]) -> None:
    app = create_app(environment)
    response = app.test_client().get("/healthz")
    assert (response.json, response.headers["X-Version"]) == ({"status": "ok"}, __version__)
    app.extensions["assistant"].close()


def test_readiness_names_each_part(client: FlaskClient) -> None:
    until(lambda: client.get("/readyz").status_code == 200)
    assert client.get("/readyz").json == {
        "ready": True,
        "parts": {
            "server": "ready",
            "database": "ready",
            "files": "ready",
            "model": "not_checked",
            "embedder": "ready",
            "backup": "off",
            "keywords": "ready",
            "chroma": "off",
            "pgvector": "off",
            "worker": "ready",
        },
        "settings_problem": None,
        "restart_required": [],
    }


def database_state(client: FlaskClient) -> tuple[int, str]:
    response = client.get("/readyz")
    return response.status_code, response.json["parts"]["database"]


def test_a_database_that_is_gone_or_another_one_is_503(client: FlaskClient, services: Services) -> None:
    until(lambda: database_state(client) == (200, "ready"))
    file = services.database.file
    kept = file.rename(file.with_name("kept.db"))
    assert database_state(client) == (503, "missing")
    shutil.copy(kept, file)
    assert database_state(client) == (503, "missing")
    kept.replace(file)
    assert database_state(client) == (200, "ready")


def test_who_watches_does_not_wait_for_a_database_that_hangs(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: database_state(client) == (200, "ready"))
    asked: list[str] = []
    monkeypatch.setattr(services.probe, "state", lambda: "failed")
    monkeypatch.setattr(services.accounts, "any", lambda: asked.append("who comes in"))
    assert database_state(client) == (503, "failed")
    assert client.get("/healthz").status_code == 200
    assert asked == []


def test_a_damaged_database_is_503_and_is_named_so(
    client: FlaskClient, services: Services, environment: dict[str, str]
) -> None:
    turn = ask(client)
    services.database.checkpoint()
    with services.database.file.open("r+b") as file:
        file.write(b"geese" * 20_000)
    services.accounts._looked_at = None  # It is time to look again whether there are accounts.
    assert database_state(client) == (503, "failed")
    services.database.close()
    for path, method in ((f"/api/turns/{turn['turn_id']}", client.get), ("/api/query", client.post)):
        response = method(path, json={"question": "Why?"} if path == "/api/query" else None)
        assert response.status_code == 507
        assert response.json["error"]["type"] == "StorageDamaged"
        assert "Nothing that was stored is lost" not in response.json["error"]["message"]
    findings = [finding.sentence for finding in services.doctor().examine()]
    assert findings == ["The database is damaged: file is not a database. Restore a backup."]


@pytest.mark.long
def test_a_database_that_does_not_answer_in_time_is_503(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: database_state(client) == (200, "ready"))
    waiting = threading.Event()
    monkeypatch.setattr("rag_assistant.storage.usage.MAX_SECONDS", 0.05)
    monkeypatch.setattr(services.database, "file_is_ours", lambda: waiting.wait(20))
    for _ in range(2):
        assert database_state(client) == (503, "failed")
    assert [thread.name for thread in threading.enumerate()].count("database-probe") == 1
    waiting.set()
    until(lambda: database_state(client) == (200, "ready"))


def test_no_request_looks_into_the_backup_folder(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: "warm-up" not in {thread.name for thread in threading.enumerate()})
    services.backups.last_status = BackupStatus("failed", None, 7.0)
    monkeypatch.setattr(services.backups, "status", None)  # Its disk may hang.
    assert client.get("/readyz").json["parts"]["backup"] == "failed"
    assert "rag_assistant_backup_age_seconds 7.0" in client.get("/metrics").text
    assert "The last backup failed" in client.get("/", headers={"Accept": "text/html"}).text


def look_again(services: Services) -> None:
    services.write_probe._asked_at = 0.0  # Ten seconds have passed.


def test_a_disk_without_room_is_503_and_pages_say_so(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: database_state(client) == (200, "ready"))
    monkeypatch.setattr("rag_assistant.storage.failures.MIN_FREE_BYTES", 10**18)
    look_again(services)
    assert database_state(client) == (503, "full")
    page = client.get("/", headers={"Accept": "text/html"}).text
    assert "The disk is full, so nothing new is stored." in page
    monkeypatch.undo()
    look_again(services)
    assert database_state(client) == (200, "ready")


def test_a_database_that_another_program_keeps_locked_is_503_until_it_lets_go(
    client: FlaskClient, services: Services
) -> None:
    until(lambda: database_state(client) == (200, "ready"))
    other = sqlite_module().connect(str(services.database.file), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    look_again(services)
    assert database_state(client) == (503, "locked")
    other.execute("COMMIT")
    other.close()
    until(lambda: database_state(client) == (200, "ready"))


def test_a_write_that_fails_is_503_though_reading_works(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: database_state(client) == (200, "ready"))
    for reason, state in (("attempt to write a readonly database", "failed"), ("database or disk is full", "full")):
        with monkeypatch.context() as patch:
            patch.setattr(services.database, "write", lambda reason=reason: failing(reason))
            look_again(services)
            assert database_state(client) == (503, state)


@contextmanager
def failing(reason: str) -> Iterator[None]:
    with failures_named(sqlite_module(), is_sqlite=True):
        raise sqlite_module().OperationalError(reason)
    yield


def test_an_endpoint_is_as_it_was_when_it_was_asked_last(client: FlaskClient, stub: StubModel) -> None:
    def state() -> tuple[int, str]:
        response = client.get("/readyz")
        return response.status_code, response.json["parts"]["model"]

    until(lambda: state() == (200, "not_checked"))
    ask(client)
    assert state() == (200, "ready")
    stub.close()
    assert client.post("/api/query", json={"question": "Are you there?"}).status_code == 502
    assert state() == (200, "unreachable")


def test_a_part_that_is_not_there_yet_is_503(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(services.embedders), "loaded", False)  # Another thread may load it meanwhile.
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json["parts"]["embedder"] == "starting"


def test_a_broken_settings_file_is_named_and_changes_nothing(
    client: FlaskClient, environment: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    file = Path(environment["SETTINGS_FILE"])
    file.write_text('{"max_history_turns": 2}')
    until(lambda: value(client, "max_history_turns") == 2)
    file.write_text('{"max_history_turns": -1}')
    until(lambda: client.get("/readyz").json["settings_problem"])
    problem = client.get("/readyz").json["settings_problem"]
    assert problem.startswith("settings.json line 1: max_history_turns is -1; it must be a whole number, 0 or more")
    assert value(client, "max_history_turns") == 2
    assert problem in caplog.text
    assert client.get("/readyz").status_code == 200


def test_every_setting_is_listed_and_no_secret_is_shown(client: FlaskClient, app: Flask) -> None:
    response = client.get("/api/settings")
    rows = {row["name"]: row for row in response.json["settings"]}
    assert list(rows) == list(Settings.model_fields)
    assert all(set(rows[name]) >= {"set"} and "value" not in rows[name] for name in SECRET)
    assert rows["openai_model"]["origin"] == "environment"
    assert "sk-canary-secret" not in response.text


def value(client: FlaskClient, name: str) -> object:
    return {row["name"]: row.get("value") for row in client.get("/api/settings").json["settings"]}[name]
