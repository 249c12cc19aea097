"""The embedded model for real: it answers from a document, with sources, over the API."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.factory import create_app
from rag_assistant.llm import builtin
from rag_assistant.records import BUILT_IN_MODEL
from rag_assistant.runtime.model_files import LANGUAGE_MODEL
from rag_assistant.web.services import Services
from tests.web.conftest import ask, events_of, until, upload

pytestmark = pytest.mark.model

NOTE = """# The lighthouse

The keeper of the lighthouse feeds seventeen geese. The lamp burns oil. The boat is painted green.
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    folder = tmp_path_factory.mktemp("builtin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_assistant.factory.GUIDE", folder / "no-guide")
        made = create_app({"DATA_DIR": str(folder / "data"), "SETTINGS_FILE": str(folder / "settings.json")})
        services: Services = made.extensions["assistant"]
        services.start()
        upload(made.test_client(), NOTE, "lighthouse.md")
        yield made
        services.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def test_it_answers_from_a_document(client: FlaskClient) -> None:
    answer = ask(client, "How many geese does the keeper of the lighthouse feed?")
    assert "seventeen" in answer["answer"].lower()
    assert answer["sources"][0]["document"] == "lighthouse.md"
    assert answer["support"] == "not_checked"
    assert answer["model"] == BUILT_IN_MODEL


def test_the_same_question_has_the_same_answer_in_both_apis(client: FlaskClient) -> None:
    plain = ask(client, "What does the lamp burn?")
    streamed = events_of(client.post("/api/query/stream", json={"question": "What does the lamp burn?"}).data)
    assert "".join(data["text"] for name, _, data in streamed if name == "token") == plain["answer"]
    assert streamed[-1][0] == "end"


@pytest.mark.long
def test_a_conversation_that_grows_too_long_is_trimmed_to_what_it_takes(client: FlaskClient) -> None:
    talk = "The lighthouse keeper feeds geese. " * 110
    first = ask(client, f"How many geese are there? {talk}")
    answer = ask(client, f"Who feeds them? {talk}", conversation_id=first["conversation_id"], max_history_turns=None)
    assert answer["history_trimmed"]
    assert answer["history"]["reason"] == "token_limit"
    assert answer["status"] == "completed"


def test_what_is_beyond_the_documents_is_said_without_the_model(client: FlaskClient) -> None:
    answer = ask(client, "Which parliament votes on taxes?")
    assert answer["answer"].startswith("No matching passages in your documents.")
    assert (answer["support"], answer["history_trimmed"], answer["usage"]) == ("nothing_found", False, None)


def test_it_comes_back_when_its_process_is_killed(app: Flask, client: FlaskClient) -> None:
    child = app.extensions["assistant"].models.built_in.child
    killed = child.pid
    os.kill(killed, signal.SIGKILL)
    until(lambda: child.pid not in (None, killed), 20)
    assert "seventeen" in ask(client, "How many geese does the keeper of the lighthouse feed?")["answer"].lower()


def test_a_damaged_model_file_fails_the_question_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr("rag_assistant.factory.GUIDE", tmp_path / "no-guide")
    monkeypatch.setattr(builtin, "LANGUAGE_MODEL", replace(LANGUAGE_MODEL, sha256="0" * 64))
    monkeypatch.setattr(builtin, "START_TIMEOUT_SECONDS", 3.0)
    made = create_app({"DATA_DIR": str(tmp_path / "data"), "SETTINGS_FILE": str(tmp_path / "settings.json")})
    try:
        response = made.test_client().post("/api/query", json={"question": "Why?"})
        assert response.status_code == 502
        assert "install it again" in response.json["error"]["message"]  # type: ignore[index]
        assert made.test_client().get("/readyz").status_code == 503
    finally:
        made.extensions["assistant"].close()
