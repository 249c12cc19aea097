"""Whether the connected model answers: asked by a button, over the API, and never at an address from a request."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.factory import create_app
from rag_assistant.llm import local_servers
from testkit.stub_model import Reply, StubModel

AppWith = Callable[..., Flask]
ELSEWHERE = {"openai_base_url": "http://127.0.0.1:1/v1"}


@pytest.fixture
def app_with(tmp_path: Path) -> Iterator[AppWith]:
    """Return what makes an application with further variables of its environment."""
    made: list[Flask] = []

    def make(**environment: str) -> Flask:
        folder = tmp_path / str(len(made))
        made.append(create_app({"DATA_DIR": str(folder), "SETTINGS_FILE": str(folder / "none.json")} | environment))
        return made[-1]

    yield make
    for app in made:
        app.extensions["assistant"].close()


def problem_of(app: Flask) -> str:
    found = app.test_client().post("/api/model/test").json
    assert found["ok"] is False
    assert found["seconds"] is None
    return str(found["problem"])


def test_a_model_that_answers_is_named_with_its_list(client: FlaskClient, stub: StubModel) -> None:
    stub.models = [{"id": "stub-model"}, {"id": "other"}]
    found = client.post("/api/model/test").json
    assert found["ok"] is True
    assert (found["model"], found["models"], found["problem"]) == ("stub-model", ["stub-model", "other"], None)
    assert stub.requests[-1].body["max_tokens"] <= 16
    assert client.get("/readyz").json["parts"]["model"] == "ready"
    assert client.get("/api/conversations").json["conversations"] == [], "nothing is stored"


def test_an_address_in_the_request_is_not_asked(client: FlaskClient, stub: StubModel) -> None:
    refused = client.post("/api/model/test", json=ELSEWHERE)
    assert refused.status_code == 422
    assert stub.requests == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(status=401), "rejected the API key (401)"),
        (Reply(status=404), "Check openai_base_url, which mostly ends in /v1."),
        (
            Reply(body=b"<html>Welcome</html>", headers={"Content-Type": "text/html"}),
            "A web page came instead of an answer.",
        ),
    ],
    ids=["key", "path", "page"],
)
def test_what_stands_in_the_way_is_said(app: Flask, stub: StubModel, reply: Reply, words: str) -> None:
    stub.default = reply
    problem = problem_of(app)
    assert words in problem
    assert "question" not in problem


def test_a_model_that_is_not_there_is_told_with_those_that_are(app: Flask, stub: StubModel) -> None:
    stub.models = [{"id": f"model-{n}"} for n in range(7)]
    stub.default = Reply(status=404, body=b'{"error": {"message": "no such model"}}')
    assert problem_of(app).endswith(
        'openai_model is "stub-model"; the endpoint lists model-0, model-1, model-2, model-3, model-4 and 2 more.'
    )


def test_why_there_is_no_connection_is_said(app_with: AppWith, stub: StubModel) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        nobody = app_with(OPENAI_BASE_URL=address, OPENAI_MODEL="m")
        assert "could not be reached: nothing listens there" in problem_of(nobody)
    no_name = app_with(OPENAI_BASE_URL="http://models.invalid/v1", OPENAI_MODEL="m")
    assert "could not be reached: no machine of that name is known." in problem_of(no_name)
    no_tls = app_with(OPENAI_BASE_URL=stub.url.replace("http:", "https:"), OPENAI_MODEL="m")
    assert "could not be reached: it does not speak TLS there" in problem_of(no_tls)


def test_without_an_endpoint_there_is_nothing_to_test(app_with: AppWith) -> None:
    refused = app_with().test_client().post("/api/model/test")
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "NoEndpoint")


def test_the_settings_page_tests_the_connection_without_scripts(client: FlaskClient, stub: StubModel) -> None:
    headers = {"Accept": "text/html"}
    page = client.post("/settings/test", headers=headers).text
    assert "<b>stub-model</b> answered in" in page
    stub.default = Reply(status=401)
    assert "rejected the API key (401)" in client.post("/settings/test", headers=headers).text


def test_a_server_on_this_machine_is_offered(
    app_with: AppWith, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.models = [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}]
    port = int(stub.url.split(":")[2].split("/")[0])
    monkeypatch.setattr(local_servers, "PORTS", {"Ollama": port, "LM Studio": _unused_port()})
    page: Any = app_with().test_client().get("/settings", headers={"Accept": "text/html"}).text
    assert "Ollama is running on this machine" in page
    assert f"&#34;http://127.0.0.1:{port}/v1&#34;" in page
    assert "qwen3:8b" in page
    assert "LM Studio is running" not in page


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
