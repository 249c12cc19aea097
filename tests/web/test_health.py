"""How the server says how it is."""

from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant import __version__
from rag_assistant.factory import create_app
from rag_assistant.settings.schema import SECRET, Settings
from rag_assistant.web.services import Services
from testkit.stub_model import StubModel
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
        "parts": {"database": "ready", "model": "not_checked", "embedder": "ready", "chroma": "off"},
        "settings_problem": None,
        "restart_required": [],
    }


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
    services.embedders.configured()
    monkeypatch.setattr(services.embedders, "_configured", None)
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
