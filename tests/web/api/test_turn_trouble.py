"""What goes wrong around a turn: silent endpoints, busy databases, broken texts. The conversation goes on."""

import threading
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.stream import LiveTurn, LiveTurns
from rag_assistant.errors import StorageFailed
from rag_assistant.factory import create_app
from rag_assistant.llm.calls import ModelCall
from rag_assistant.records import Question
from rag_assistant.storage.conversations.answer_log import AnswerLog
from rag_assistant.web.services import Services
from testkit.stub_model import Reply, StubModel
from tests.web.api.test_turn_life import start
from tests.web.conftest import ask, upload


def test_an_endpoint_that_never_lists_its_models_can_be_stopped(environment: dict[str, str], stub: StubModel) -> None:
    stub.models_hang = True
    made = create_app({name: value for name, value in environment.items() if name != "OPENAI_MODEL"})
    made.extensions["assistant"].start()
    response = made.test_client().post(f"/api/turns/{start(made)}/stop")
    assert response.json["status"] == "stopped"
    made.extensions["assistant"].close()


def test_the_model_that_starts_can_be_stopped(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()

    def slow(_self: object) -> Any:
        given_up.wait(60)
        raise OSError("not today")

    monkeypatch.setattr("rag_assistant.llm.local_model.LocalModel._launch", slow)
    own = {name: value for name, value in environment.items() if not name.startswith("OPENAI")}
    made = create_app(own | {"LOCAL_MODEL": "some.gguf"})
    made.extensions["assistant"].start()
    response = made.test_client().post(f"/api/turns/{start(made)}/stop")
    assert response.json["status"] == "stopped"
    given_up.set()
    made.extensions["assistant"].close()


def test_a_reason_that_no_database_keeps_is_kept_without_what_is_no_character(
    client: FlaskClient, stub: StubModel
) -> None:
    stub.default = Reply(status=400, body=b'{"error": {"message": "bad \\ud83d and \\u0000 end sk-canary-secret"}}')
    response = client.post("/api/query", json={"question": "Why?"})
    assert response.status_code == 502
    message = response.json["error"]["message"]
    assert "bad \ufffd and  end [the key]" in message
    assert client.get("/api/turns/1").json["status"] == "failed"


def test_a_turn_whose_end_cannot_be_kept_as_it_is_frees_its_conversation(
    client: FlaskClient, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = services.turns.finish

    def broken(turn: Any, status: str, answer: str, **how: Any) -> Any:
        if how.get("usage"):
            raise UnicodeEncodeError("utf-8", "x", 0, 1, "broken")
        return finish(turn, status, answer, **how)

    monkeypatch.setattr(services.turns, "finish", broken)
    stub.default = Reply("one two")
    answer = client.post("/api/query", json={"question": "Why?"}).json
    assert (answer["status"], answer["answer"], answer["error"]["type"]) == ("interrupted", "one two", "StorageFailed")
    monkeypatch.undo()
    assert ask(client, "And?", conversation_id=answer["conversation_id"])["status"] == "completed"


def test_text_that_cannot_be_committed_at_once_is_tried_again(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = AnswerLog.append, [StorageFailed("busy"), StorageFailed("busy")]

    def sometimes(self: AnswerLog, turn_id: int, position: int, text: str) -> None:
        if failures:
            raise failures.pop()
        append(self, turn_id, position, text)

    monkeypatch.setattr(AnswerLog, "append", sometimes)
    monkeypatch.setattr("rag_assistant.answering.writer.RETRY_INTERVAL_SECONDS", 0.01)
    assert ask(client)["answer"] == "An answer."


def test_a_thread_that_does_not_start_leaves_a_failed_turn_and_a_free_conversation(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_thread = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name.startswith("turn "):
            raise RuntimeError("can't start new thread")
        start_thread(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    response = client.post("/api/query", json={"question": "Why?"})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    monkeypatch.undo()
    assert client.get("/api/turns/1").json["status"] == "failed"
    assert client.post("/api/turns/1/retry").status_code in (200, 202)
    assert services.assistant.wait(1).status == "completed"


def test_a_retry_keeps_its_place_when_the_old_answer_leaves() -> None:
    turns = LiveTurns(1)
    old, new = LiveTurn(ModelCall()), LiveTurn(ModelCall())
    turns.reserve()
    turns.enter(1, old)
    turns.enter(1, new)
    turns.leave(1, old)
    assert turns.get(1) is new


def test_a_crash_before_the_first_word_leaves_a_turn_that_can_be_retried(
    client: FlaskClient, services: Services
) -> None:
    turn, _ = services.turns.accept(Question("Why?"), "Why?")
    services.assistant.recover()
    found = client.get(f"/api/turns/{turn.id}").json
    assert (found["status"], found["error"]["type"]) == ("failed", "AnswerInterrupted")
    assert "Your question was kept" in found["error"]["message"]
    client.post(f"/api/turns/{turn.id}/retry")
    assert services.assistant.wait(turn.id).status == "completed"


def test_passages_leave_before_a_question_is_refused(environment: dict[str, str], stub: StubModel) -> None:
    made = create_app(environment | {"MODEL_CONTEXT_TOKENS": "1200"})
    client = made.test_client()
    for number in range(6):
        upload(
            client, f"Note {number} about geese. " + "The keeper feeds the geese every morning. " * 18, f"{number}.txt"
        )
    answer = ask(client, "What about the geese?")
    assert 0 < len(answer["sources"]) < 6
    assert stub.requests[-1].messages[-1]["content"].count("[") >= len(answer["sources"])
    made.extensions["assistant"].close()
