"""What goes wrong around a turn: silent endpoints, busy databases, broken texts. The conversation goes on."""

import json
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.answering.live import LiveTurn, LiveTurns
from rag_assistant.answering.request import FEWER_PASSAGES
from rag_assistant.records import Question, Turn
from rag_assistant.records.errors import Overloaded, StorageDamaged, StorageFailed
from rag_assistant.services import Services
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from rag_assistant.storage.tables import now
from rag_assistant.web import create_app
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.documents import running
from tests.web.api.test_turn_life import start
from tests.web.conftest import ask, events_of, owned_by_the_dead, until, upload


def test_an_endpoint_that_never_lists_its_models_can_be_stopped(environment: dict[str, str], stub: StubModel) -> None:
    stub.models_hang = True
    made = create_app({name: value for name, value in environment.items() if name != "OPENAI_MODEL"})
    made.extensions["assistant"].start()
    response = made.test_client().post(f"/api/turns/{start(made)}/stop")
    assert response.json["status"] == "stopped"
    made.extensions["assistant"].close()


def test_the_model_that_starts_can_be_stopped(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()

    def launched(_self: object) -> Any:
        return subprocess.Popen(["cat"], stdin=subprocess.PIPE)

    def slow(_self: object, _process: object) -> Any:
        given_up.wait(60)
        raise OSError("not today")

    monkeypatch.setattr("rag_assistant.llm.local_model.LocalModel._launch", launched)
    monkeypatch.setattr("rag_assistant.llm.local_model.LocalModel._ready", slow)
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


def test_a_model_that_only_thinks_is_told_from_one_that_says_nothing(client: FlaskClient, stub: StubModel) -> None:
    thought = b'data: {"choices": [{"delta": {"reasoning_content": "Geese, then."}, "finish_reason": "length"}]}\n\n'
    for body, sentence in ((thought, "thought but wrote no answer"), (b"data: [DONE]\n\n", "an empty answer")):
        stub.replies.append(Reply(body=body, headers={"Content-Type": "text/event-stream"}))
        response = client.post("/api/query", json={"question": "Why?"})
        assert response.status_code == 502
        assert sentence in response.json["error"]["message"]
    assert len(stub.requests) == 2


def test_what_a_filter_or_the_model_itself_refused_is_said(client: FlaskClient, stub: StubModel) -> None:
    def reply(delta: str, ending: str) -> Reply:
        chunk = f'data: {{"choices": [{{"delta": {delta}, "finish_reason": "{ending}"}}]}}\n\ndata: [DONE]\n\n'
        return Reply(body=chunk.encode(), headers={"Content-Type": "text/event-stream"})

    stub.replies += [
        reply('{"content": "Geese"}', "content_filter"), reply("{}", "content_filter"),
        reply('{"refusal": "I cannot help with that."}', "stop"),
    ]  # fmt: skip
    cut, blocked, refused = (client.post("/api/query", json={"question": "Why?"}).json for _ in range(3))
    assert (cut["answer"], "content filter" in " ".join(cut["notes"])) == ("Geese", True)
    assert "content filter" in blocked["error"]["message"]
    assert (refused["answer"], "refused to answer" in " ".join(refused["notes"])) == ("I cannot help with that.", True)


LENGTH = "The answer reached its maximum length of 90 tokens."
NO_ROOM = "The answer reached the maximum length of the model server."
UNSURE = "The model server did not mark this answer as complete."


@pytest.mark.parametrize(
    ("reason", "set_tokens", "sentence"),
    [("length", "90", LENGTH), ("length", None, NO_ROOM), ("model_length", None, NO_ROOM), (None, "90", UNSURE)],
)
def test_an_answer_that_did_not_end_by_itself_says_why(
    environment: dict[str, str], stub: StubModel, reason: str | None, set_tokens: str | None, sentence: str
) -> None:
    more = {"MAX_ANSWER_TOKENS": set_tokens} if set_tokens else {}
    with running(environment, **more) as (client, _):
        stub.default = Reply("Geese, and", finish_reason=reason)
        answer = ask(client, "Why?")
        (*_, (_, _, end)) = events_of(client.get(f"/api/turns/{answer['turn_id']}/stream").data)
        for said in (*(" ".join(one["notes"]) for one in (answer, end)), client.get("/turns/1").text):
            assert sentence in said
        stub.default = Reply("Geese, and so.")
        assert ask(client, "And?")["notes"] == []


def test_thoughts_that_a_provider_only_counts_are_told_from_silence(client: FlaskClient, stub: StubModel) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 64}}
    stub.default = Reply(pieces=[], finish_reason="length", usage=usage)
    assert "thought but wrote no answer" in client.post("/api/query", json={"question": "?"}).json["error"]["message"]
    stub.default = Reply(pieces=[], finish_reason="length")
    assert NO_ROOM in client.post("/api/query", json={"question": "Why?"}).json["error"]["message"]


def test_the_thoughts_in_an_answer_are_neither_shown_nor_sent_again(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("<think>secret plan</think>\n\nGeese, then."))
    first = ask(client, "Why?")
    assert first["answer"] == "Geese, then."
    ask(client, "And?", conversation_id=first["conversation_id"])
    assert "secret plan" not in json.dumps(stub.requests[-1].body)


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
    append_all, failures = AnswerLog.append_all, [StorageFailed("busy"), StorageFailed("busy")]

    def sometimes(self: AnswerLog, pieces: Any) -> set[int]:
        if failures:
            raise failures.pop()
        return append_all(self, pieces)

    monkeypatch.setattr(AnswerLog, "append_all", sometimes)
    monkeypatch.setattr("rag_assistant.answering.writer.RETRY_INTERVAL_SECONDS", 0.01)
    assert ask(client)["answer"] == "An answer."
    assert failures == []


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


def test_who_follows_a_turn_whose_thread_does_not_start_is_told(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[Any] = []

    def refuse(_self: threading.Thread) -> None:
        followed.append(services.assistant.follow(1))
        raise RuntimeError("can't start new thread")

    until(lambda: "warm-up" not in {thread.name for thread in threading.enumerate()})
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(Overloaded):
        services.assistant.ask(Question("Why?"))
    monkeypatch.setattr("rag_assistant.answering.live.HEARTBEAT_INTERVAL_SECONDS", 0.01)
    assert [event.name for event in followed[0] if event is not None][-1] == "error"


def test_a_stop_right_after_a_retry_was_committed_is_not_lost(
    client: FlaskClient, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.default = Reply(status=400)
    turn_id = client.post("/api/query", json={"question": "Why?"}).json["turn_id"]
    stub.default = Reply(hang_at=0)
    retry, stopped = services.turns.retry, []

    def stop() -> None:
        stopped.append(services.assistant.stop(turn_id).status)

    def retry_and_stop(turn_id: int) -> Any:
        turn = retry(turn_id)
        stopping.start()
        stopping.join(0.1)
        return turn

    stopping = threading.Thread(target=stop)
    monkeypatch.setattr(services.turns, "retry", retry_and_stop)
    client.post(f"/api/turns/{turn_id}/retry")
    stopping.join()
    assert stopped == ["stopped"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RETRY_INTERVAL_SECONDS", "KEEP_TIMEOUT_SECONDS", "LAST_RESORT_INTERVAL_SECONDS"):
        monkeypatch.setattr(f"rag_assistant.answering.writer.{name}", 0.01)


def test_an_end_that_the_database_never_takes_is_given_up(
    client: FlaskClient, services: Services, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise StorageFailed("not this one")

    monkeypatch.setattr(services.turns, "finish", refuse)
    answer = client.post("/api/query", json={"question": "Why?"}).json
    assert (answer["status"], answer["answer"], answer["model"]) == ("interrupted", "An answer.", "stub-model")
    assert answer["error"]["type"] == "StorageFailed"


def test_an_end_that_a_damaged_database_cannot_take_ends_at_once(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(*_: Any, **__: Any) -> Any:
        asked.append("again")
        raise StorageDamaged("The database file is damaged.")

    for name in ("finish", "interrupt"):
        monkeypatch.setattr(services.turns, name, refuse)
    events = client.post("/api/query/stream", json={"question": "Why?"}).text
    assert events.count("event: error") == 1
    assert '"StorageDamaged"' in events
    assert len(asked) <= 3, "waiting mends nothing"
    until(lambda: services.assistant.running[0] == 0)
    later = client.get("/api/turns/1/stream").text
    assert '"StorageDamaged"' in later, "the database says that it runs, but nobody writes it"


def test_a_turn_that_cannot_be_kept_at_all_ends_once_it_can(
    client: FlaskClient, services: Services, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt, failures = services.turns.interrupt, [StorageFailed("full"), StorageFailed("full")]

    def refuse(*_: Any, **__: Any) -> Any:
        raise StorageFailed("full")

    def sometimes(*how: Any) -> Any:
        if failures:
            raise failures.pop()
        return interrupt(*how)

    monkeypatch.setattr(services.turns, "finish", refuse)
    monkeypatch.setattr(services.turns, "interrupt", sometimes)
    assert client.post("/api/query", json={"question": "Why?"}).json["error"]["type"] == "StorageFailed"
    until(lambda: client.get("/api/turns/1").json["status"] == "interrupted")
    assert client.get("/api/turns/1").json["answer"] == "An answer."


def test_the_end_of_the_server_waits_until_answers_are_kept(
    app: Flask, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.default = Reply("one two three four", hang_at=2)
    turn_id = start(app)
    until(lambda: services.turns.get(turn_id).answer == "one two")
    finish, close, order = services.turns.finish, services.processing.close, []

    def keep(*how: Any, **more: Any) -> Any:
        threading.Event().wait(0.1)
        order.append("kept")
        return finish(*how, **more)

    def close_library() -> None:
        order.append("closed")
        close()

    monkeypatch.setattr(services.turns, "finish", keep)
    monkeypatch.setattr(services.processing, "close", close_library)
    services.close()
    assert order == ["kept", "closed"]


def test_an_answer_that_would_fill_the_model_leaves_room_for_the_question(
    environment: dict[str, str], stub: StubModel
) -> None:
    made = create_app(environment | {"MODEL_CONTEXT_TOKENS": "4000", "MAX_ANSWER_TOKENS": "4000"})
    answer = ask(made.test_client())
    assert stub.requests[-1].body["max_tokens"] == 1000
    assert "max_answer_tokens is 4000, but the model takes 4000 tokens" in answer["notes"][0]
    made.extensions["assistant"].close()


def test_a_retry_keeps_its_place_when_the_old_answer_leaves() -> None:
    turns = LiveTurns(1)
    turn = Turn(1, 1, 1, "running", "Why?", "", datetime.now(UTC))
    old, new = LiveTurn(turn), LiveTurn(turn)
    turns.reserve()
    turns.enter(1, old)
    turns.enter(1, new)
    turns.leave(1, old, stored=True)
    assert turns.get(1) is new


def test_a_crash_before_the_first_word_leaves_a_turn_that_can_be_retried(
    client: FlaskClient, services: Services
) -> None:
    with owned_by_the_dead(services):
        turn, _ = services.turns.accept(Question("Why?"), "Why?")
    services.assistant.recover()
    found = client.get(f"/api/turns/{turn.id}").json
    assert (found["status"], found["error"]["type"]) == ("failed", "AnswerInterrupted")
    assert "Your question was saved" in found["error"]["message"]
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
    assert answer["notes"] == [FEWER_PASSAGES]
    assert stub.requests[-1].messages[-1]["content"].count("[") >= len(answer["sources"])
    made.extensions["assistant"].close()


@pytest.mark.parametrize("status", [429, pytest.param(503, marks=pytest.mark.long)])
def test_who_comes_after_the_failure_is_told_how_long_the_endpoint_wants_to_be_left_alone(
    client: FlaskClient, stub: StubModel, services: Services, environment: dict[str, str], status: int
) -> None:
    stub.default = Reply(status=status, headers={"Retry-After": "600"})
    turn_id = services.assistant.ask(Question("Why?", idempotency_key="one")).id
    services.assistant.wait(turn_id)
    body, same = {"question": "Why?"}, {"Idempotency-Key": "one"}
    late = client.post("/api/query", json=body, headers=same)
    assert 590 < int(late.headers["Retry-After"]) <= 600
    services.close()
    made = create_app(environment)
    try:
        later = made.test_client().post("/api/query", json=body, headers=same)
        assert later.json["turn_id"] == turn_id
        assert 590 < int(later.headers["Retry-After"]) <= 600
        assert 590 < later.json["error"]["retry_after_seconds"] <= 600
    finally:
        made.extensions["assistant"].close()


def test_nobody_is_told_to_wait_for_what_is_past(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.default = Reply(status=503, headers={"Retry-After": "600"})
    failed = client.post("/api/query", json={"question": "Why?"}).json
    path = f"/api/turns/{failed['turn_id']}"
    assert "retry_after_seconds" in client.get(path).json["error"]
    later = now() + timedelta(seconds=601)
    monkeypatch.setattr("rag_assistant.storage.conversations.turn_rows.now", lambda: later)
    assert "retry_after_seconds" not in client.get(path).json["error"]
    monkeypatch.undo()
    stub.default = Reply("one two three", break_at=2)
    client.post(f"{path}/retry")
    events = events_of(client.get(f"{path}/stream").data)
    assert "retry_after_seconds" not in events[-1][2]["error"], "that was the answer before"
