"""Whether the connected model answers: asked by a button, over the API, and never at an address from a request."""

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.llm import connection_check
from rag_assistant.web import create_app
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import served_before

AppWith = Callable[..., Flask]
ELSEWHERE = {"openai_base_url": "http://127.0.0.1:1/v1"}


@pytest.fixture
def app_with(tmp_path: Path, migrated: Path, stand_ins: None) -> Iterator[AppWith]:
    """Return what makes an application with further variables of its environment."""
    made: list[Flask] = []

    def make(**environment: str) -> Flask:
        folder = tmp_path / str(len(made))
        shutil.copytree(served_before(migrated), folder)
        made.append(create_app({"DATA_DIR": str(folder), "SETTINGS_FILE": str(folder / "none.json")} | environment))
        return made[-1]

    yield make
    for app in made:
        app.extensions["assistant"].close()


def steps_of(app: Flask) -> dict[str, tuple[bool, str]]:
    """Test the connection; return the steps by name."""
    response = app.test_client().post("/api/model/test")
    assert response.status_code == 200, response.text
    steps = {step["name"]: (step["ok"], step["message"]) for step in response.json["steps"]}
    assert list(steps)[-1] != "context" or steps.pop("context")[0] is response.json["ok"]
    assert response.json["ok"] is all(ok for ok, _ in steps.values())
    return steps


def problem_of(app: Flask) -> str:
    """Return what the last step says, which failed."""
    ok, message = list(steps_of(app).values())[-1]
    assert not ok
    return message


def test_a_model_that_answers_is_named_with_its_list(client: FlaskClient, stub: StubModel) -> None:
    stub.models = [{"id": "stub-model"}, {"id": "other"}]
    found = client.post("/api/model/test").json
    assert found["ok"] is True
    assert (found["model"], found["models"]) == ("stub-model", ["stub-model", "other"])
    assert [(step["name"], step["ok"], step["message"]) for step in found["steps"][:2]] == [
        ("models", True, "2 models listed, including stub-model."),
        ("answer", True, "stub-model answered."),
    ]
    assert all(step["seconds"] >= 0 for step in found["steps"])
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
        (Reply(status=404), "Check openai_base_url; it usually ends in /v1."),
        (
            Reply(body=b"<html>Welcome</html>", headers={"Content-Type": "text/html"}),
            "The endpoint returned a web page instead of an answer.",
        ),
    ],
    ids=["key", "path", "page"],
)
def test_what_stands_in_the_way_is_said(app: Flask, stub: StubModel, reply: Reply, words: str) -> None:
    stub.default = reply
    problem = problem_of(app)
    assert words in problem
    assert "Your question" not in problem


def test_a_model_that_is_not_there_is_told_with_those_that_are(app: Flask, stub: StubModel) -> None:
    stub.models = [{"id": f"model-{n}"} for n in range(7)]
    stub.default = Reply(status=404, body=b'{"error": {"message": "no such model"}}')
    steps = steps_of(app)
    assert steps["models"] == (
        True,
        "7 models listed, but not stub-model: model-0, model-1, model-2, model-3, model-4 and 2 more.",
    )
    message = f'There is no model "stub-model" at {stub.url} (404): no such model. Check openai_model.'
    assert steps["answer"] == (False, message)


def test_a_model_may_be_named_without_its_tag_or_not_at_all(app_with: AppWith, stub: StubModel) -> None:
    stub.models = [{"id": "qwen3:latest"}]
    named = app_with(OPENAI_BASE_URL=stub.url, OPENAI_MODEL="qwen3")
    assert steps_of(named)["models"] == (True, "1 model listed, including qwen3.")
    unnamed = steps_of(app_with(OPENAI_BASE_URL=stub.url))
    assert unnamed["models"] == (
        True,
        "1 model listed. openai_model is not set, so qwen3:latest is used.",
    )
    assert unnamed["answer"] == (True, "qwen3:latest answered.")
    stub.models += [{"id": "nomic-embed"}]
    several = steps_of(app_with(OPENAI_BASE_URL=stub.url))["models"][1]
    assert several == "2 models listed. openai_model is not set, so qwen3:latest is used. Also listed: nomic-embed."


def test_an_endpoint_without_a_list_is_asked_all_the_same(app: Flask, stub: StubModel) -> None:
    stub.models = [{"name": "no id"}]
    assert steps_of(app) == {"answer": (True, "stub-model answered.")}


def test_a_busy_model_is_asked_once(app: Flask, stub: StubModel) -> None:
    stub.default = Reply(status=429, headers={"Retry-After": "1"})
    assert "is too busy (429)" in problem_of(app)
    assert len(stub.requests) == 1


def test_a_model_that_is_silent_may_still_be_loading(
    app: Flask, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_check, "TIMEOUT_SECONDS", 0.1)
    stub.default = Reply(hang_before_headers=True)
    assert problem_of(app).endswith("A local model may still be loading; test again in a minute.")
    assert app.test_client().get("/readyz").json["parts"]["model"] == "unreachable"


def test_an_embedding_endpoint_is_tested_too(app_with: AppWith, stub: StubModel) -> None:
    own = {"EMBEDDER": "endpoint:e", "EMBEDDING_BASE_URL": stub.url}
    alone = app_with(**own)
    ok, message = steps_of(alone)["embeddings"]
    assert ok, message
    assert re.fullmatch(r"The embedding model answered with \d+ dimensions\.", message)
    both = app_with(OPENAI_BASE_URL=stub.url, **own)
    assert list(steps_of(both)) == ["models", "answer", "context", "embeddings"]
    stub.close()
    away = app_with(**own)
    assert "could not be reached: nothing is listening there" in steps_of(away)["embeddings"][1]


def test_why_there_is_no_connection_is_said(app_with: AppWith, stub: StubModel) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        nobody = app_with(OPENAI_BASE_URL=address, OPENAI_MODEL="m")
        assert list(steps_of(nobody)) == ["models"]
        assert "could not be reached: nothing is listening there" in problem_of(nobody)
        assert nobody.test_client().get("/readyz").json["parts"]["model"] == "unreachable"
    no_name = app_with(OPENAI_BASE_URL="http://models.invalid/v1", OPENAI_MODEL="m")
    assert "could not be reached: the host name could not be found." in problem_of(no_name)
    no_tls = app_with(OPENAI_BASE_URL=stub.url.replace("http:", "https:"), OPENAI_MODEL="m")
    assert "could not be reached: the server doesn't use TLS" in problem_of(no_tls)


def test_without_an_endpoint_there_is_nothing_to_test(app_with: AppWith) -> None:
    refused = app_with().test_client().post("/api/model/test")
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "NoEndpoint")


def test_the_settings_page_tests_the_connection_without_scripts(client: FlaskClient, stub: StubModel) -> None:
    headers = {"Accept": "text/html"}
    assert "stub-model answered." in client.post("/settings", data={"test": 1}, headers=headers).text
    stub.default = Reply(status=401)
    assert "rejected the API key (401)" in client.post("/settings", data={"test": 1}, headers=headers).text


# --- a word at the front of a long prompt


def context_step(client: FlaskClient) -> tuple[bool, str]:
    """Test the connection; return what came of the long prompt."""
    (step,) = (step for step in client.post("/api/model/test").json["steps"] if step["name"] == "context")
    return step["ok"], step["message"]


def tokens_in(messages: list[dict[str, Any]]) -> int:
    """Return how many tokens a server counts."""
    return sum(len(message["content"]) // 4 for message in messages)


def test_a_word_at_the_front_of_a_long_prompt_is_looked_for_in_the_answer(client: FlaskClient, stub: StubModel) -> None:
    stub.default, stub.count = Reply(" ".join(connection_check.CODE_WORDS)), tokens_in
    ok, message = context_step(client)
    sent = tokens_in(stub.requests[-1].messages)
    assert sent > 4096
    assert (ok, message) == (True, f"The model repeated a word from the start of a prompt of {sent:,} tokens.")
    assert any(word in stub.requests[-1].messages[0]["content"][:40] for word in connection_check.CODE_WORDS)


def test_a_long_prompt_that_is_cut_is_told_and_the_limit_is_kept(client: FlaskClient, stub: StubModel) -> None:
    stub.count = lambda messages: min(2050, tokens_in(messages))
    ok, message = context_step(client)
    assert not ok
    assert message.startswith("The model server read only 2,050 of ")
    assert client.post("/api/query", json={"question": "Why?"}).json["history"]["tokens"]["limit"] == 4096
    stub.count = tokens_in  # Its context was raised.
    assert context_step(client)[0]
    assert client.post("/api/query", json={"question": "Why?"}).json["history"]["tokens"]["limit"] is None


def test_where_nobody_counts_and_nothing_is_repeated_nothing_is_claimed(client: FlaskClient, stub: StubModel) -> None:
    assert "It is unclear" in context_step(client)[1]
    stub.count = tokens_in
    assert "although the model did not repeat" in context_step(client)[1]


def test_a_long_prompt_that_is_refused_tells_the_limit(client: FlaskClient, stub: StubModel) -> None:
    body = b'{"error": {"type": "exceed_context_size_error", "n_ctx": 2048, "n_prompt_tokens": 5000}}'
    stub.replies.extend([Reply(), Reply(status=400, body=body)])
    assert context_step(client) == (True, "The request is longer than the model accepts; it accepts 2048 tokens.")
