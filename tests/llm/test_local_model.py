"""A model of a GGUF file, for real: it answers over the API, and whatever is wrong with it is said."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient, Retrying, collect
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.local_model import LocalModel
from rag_assistant.llm.models import IN_QUEUE, RESTARTING, LanguageModels
from rag_assistant.llm.reader import PromptProgress
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import AnswerStopped, ModelUnreachable
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.gguf import carried_gguf
from tests.testkit.samples import sample
from tests.testkit.stub_model import StubModel
from tests.web.api.documents import running
from tests.web.conftest import ask, timeouts, until, upload

NOTE = "The keeper of the lighthouse feeds seventeen geese. The lamp burns oil. The boat is painted green."


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    folder = tmp_path_factory.mktemp("local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_assistant.services.GUIDE", folder / "no-guide")
        environment = {"LOCAL_MODEL": str(carried_gguf()), "MAX_ANSWER_TOKENS": "8", "TEMPERATURE": "0"}
        made = create_app(
            environment | {"DATA_DIR": str(folder / "data"), "SETTINGS_FILE": str(folder / "settings.json")}
        )
        services: Services = made.extensions["assistant"]
        services.start()
        upload(made.test_client(), NOTE, "lighthouse.md")
        yield made
        services.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.mark.model
def test_it_answers_under_its_own_name_with_its_own_limit_and_the_tools_of_its_template() -> None:
    model = LocalModel(str(carried_gguf()))
    try:
        endpoint = model.endpoint()
        with closing(ModelClient(lambda: timeouts(connect=60, first_token=60, token=60, answer=120))) as client:
            request = ModelRequest(({"role": "user", "content": "Why?"},), max_tokens=4)
            parts = list(client.stream(endpoint, request, ModelCall()))
    finally:
        model.process.close()
    assert collect(parts)[0]
    told = [one for one in parts if isinstance(one, PromptProgress)]
    assert told[-1].read <= told[-1].total
    assert endpoint.is_small
    assert (endpoint.model, endpoint.context_tokens) == (carried_gguf().stem, 8192)
    assert endpoint.local
    assert not endpoint.takes_tools


@pytest.mark.long  # To read what a question is sent with takes longer than to load the model.
@pytest.mark.model
def test_a_question_is_answered_with_its_sources(app: Flask, client: FlaskClient) -> None:
    answer = ask(client, "How many geese does the keeper of the lighthouse feed?")
    assert (answer["status"], answer["model"]) == ("completed", carried_gguf().stem)
    assert answer["answer"]
    assert answer["usage"]["prompt_tokens"] > 0
    assert answer["sources"][0]["document"] == "lighthouse.md"
    assert answer["history"]["tokens"]["limit"] == 8192
    endpoint = app.extensions["assistant"].models.known_endpoint()
    assert endpoint.local
    assert not endpoint.takes_tools


@pytest.mark.long
@pytest.mark.model
def test_it_comes_back_when_its_process_is_killed(app: Flask, client: FlaskClient) -> None:
    child = app.extensions["assistant"].models._local.process
    killed = child.pid
    os.kill(killed, signal.SIGKILL)
    until(lambda: child.pid not in (None, killed), 20)
    assert ask(client, "What does the lamp burn?")["status"] == "completed"


class Restarted:
    """A local model whose process, killed while it read, listens at another port once it is back."""

    def __init__(self, url: str) -> None:
        self.again = Endpoint(url, None, "m", local=True)
        self.real = LocalModel("m.gguf")
        self.place = self.real.place

    def endpoint(self, _ended: Callable[[], bool]) -> Endpoint:
        return self.again


@pytest.mark.long
def test_a_killed_local_model_is_waited_for(stub: StubModel) -> None:
    models = models_with(Restarted(stub.url))
    gone = Endpoint("http://127.0.0.1:9/v1", None, "m", local=True)
    parts = list(models.stream(gone, ModelRequest(({"role": "user", "content": "Why?"},)), ModelCall()))
    models.client.close()
    assert [one.why for one in parts if isinstance(one, Retrying)][-1] == RESTARTING
    assert "".join(one for one in parts if isinstance(one, str)) == "An answer."
    assert len(stub.requests) == 1


class Away(Restarted):
    """A local model whose process doesn't come back."""

    def endpoint(self, ended: Callable[[], bool]) -> Endpoint:
        while not ended():
            time.sleep(0.01)
        raise ModelUnreachable("The local model is not running.")


@pytest.mark.long
def test_who_stops_while_it_is_restarted_has_stopped_it(stub: StubModel) -> None:
    models, call = models_with(Away(stub.url)), ModelCall()
    gone = Endpoint("http://127.0.0.1:9/v1", None, "m", local=True)
    parts = models.stream(gone, ModelRequest(({"role": "user", "content": "Why?"},)), call)
    while next(parts) != Retrying(RESTARTING):
        pass
    call.stop()
    with pytest.raises(AnswerStopped):
        next(parts)
    models.client.close()


@pytest.mark.long
def test_time_in_the_local_models_queue_is_no_time_without_text(stub: StubModel) -> None:
    local = LocalModel("m.gguf")
    models = models_with(local, first_token=0.5, answer=0.5)
    endpoint = Endpoint(stub.url, None, "m", local=True)
    request, first, second = ModelRequest(({"role": "user", "content": "Why?"},)), ModelCall(), ModelCall()
    with local.place(first):
        parts = models.stream(endpoint, request, second)
        waiting = next(parts)
        time.sleep(1)
        assert not stub.requests
    text, _ = collect(parts)
    assert (waiting, text) == (Retrying(IN_QUEUE.format(n=1)), "An answer.")
    with local.place(first), pytest.raises(AnswerStopped):
        parts = models.stream(endpoint, request, second)
        next(parts)
        second.stop()
        next(parts)
    models.client.close()
    assert local._queue == []


def models_with(local: Any, **limits: float) -> LanguageModels:
    found = timeouts(**({"connect": 60, "first_token": 60, "token": 60, "answer": 120} | limits))
    return LanguageModels(lambda: found, lambda: None, lambda *_: None, local)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read: No such file or directory."), (b"<html>", "which is not a GGUF file.")],
)
def test_a_file_that_is_no_model_is_named(tmp_path: Path, content: bytes | None, problem: str) -> None:
    file = tmp_path / "some.gguf"
    if content is not None:
        file.write_bytes(content)
    model = LocalModel(str(file))
    try:
        with pytest.raises(
            ModelUnreachable, match=rf"local_model is {file}, {'which ' if content is None else ''}{problem}"
        ):
            model.endpoint()
        assert model.process.state == "failed"
    finally:
        model.process.close()


@pytest.mark.model
@pytest.mark.parametrize(
    ("content", "problem"),
    sample(
        [
            (lambda whole: whole[:3_000_000], "data is not within the file bounds, model is corrupted or incomplete."),
            (
                lambda _: b"GGUF" + (99).to_bytes(4, "little") + bytes(100),
                "is version 99 but this software only supports",
            ),
        ]
    ),
    ids=["cut", "of another version"],
)
def test_why_llama_cpp_cannot_load_a_file_is_said_in_its_words(
    tmp_path: Path, content: Callable[[bytes], bytes], problem: str
) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(content(carried_gguf().read_bytes()))
    model = LocalModel(str(file))
    try:
        with pytest.raises(ModelUnreachable) as raised:
            model.endpoint()
    finally:
        model.process.close()
    assert f"The file {file} cannot be loaded. llama.cpp says: " in str(raised.value)
    assert problem in str(raised.value)


def test_without_its_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.llm.local_model.importlib.util.find_spec", lambda _name: None)
    model = LocalModel(str(tmp_path / "some.gguf"))
    try:
        with pytest.raises(ModelUnreachable, match=r"\.\[local-model\]"):
            model.endpoint()
    finally:
        model.process.close()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlaskClient]:
    """Give the assistant in front of a real llama.cpp server that takes 1,024 tokens."""
    command = [sys.executable, "-m", "rag_assistant.llm.local_model_server", str(carried_gguf()), "1024"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        print("sk-small-context", file=server.stdin, flush=True)
        address = json.loads(server.stdout.readline())["address"]
        monkeypatch.setattr("rag_assistant.services.GUIDE", tmp_path / "no-guide")
        environment = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-small-context", "TEMPERATURE": "0"}
        with running(environment | {"DATA_DIR": str(tmp_path), "MAX_HISTORY_TURNS": "9"}) as (client, _):
            yield client
        server.stdin.close()


@pytest.mark.long
@pytest.mark.model
def test_a_real_server_refuses_what_is_too_long_and_is_sent_what_fits(small: FlaskClient) -> None:
    turns = [{"role": ("user", "assistant")[n % 2], "content": f"{n}. {NOTE * 8}"} for n in range(12)]
    asked = {"model": "rag-assistant-plain", "messages": [*turns, {"role": "user", "content": "Why?"}], "max_tokens": 4}
    answer = json.loads(small.post("/v1/chat/completions", json=asked).data)
    history = answer["rag_assistant"]["history"]
    assert (answer["history_trimmed"], history["reason"], history["tokens"]["limit"]) == (True, "token_limit", 1024)
    assert answer["usage"]["prompt_tokens"] == history["tokens"]["read"] < 1024
    assert answer["choices"][0]["finish_reason"] == "length"
    assert "maximum length of 4 tokens" in " ".join(answer["rag_assistant"]["notes"])
