"""A turn is a row, not a connection: stop, resume, retry, leave, crash, and every way in which a model fails."""

import threading
import time
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.records import Question
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import turn_ids
from tests.web.conftest import ask, events_of, until, upload


def start(app: Flask, **fields: Any) -> int:
    """Ask in a thread of its own and return the turn's id once it runs."""
    body = {"question": "Why?"} | fields
    before = {turn.id for turn in running(app)}
    threading.Thread(target=lambda: app.test_client().post("/api/query", json=body), daemon=True).start()
    until(lambda: {turn.id for turn in running(app)} - before)
    (turn_id,) = {turn.id for turn in running(app)} - before
    return turn_id


def running(app: Flask) -> list[Any]:
    services: Services = app.extensions["assistant"]
    found = [services.turns.page(c.id, 50) for c in services.conversations.page(50)]
    return [turn for turns in found for turn in turns if turn.status == "running"]


def test_a_second_question_is_refused_while_the_first_is_answered(app: Flask, stub: StubModel) -> None:
    stub.default = Reply("slow " * 20, seconds_between=0.05)
    turn_id = start(app)
    client = app.test_client()
    conversation = client.get(f"/api/turns/{turn_id}").json["conversation_id"]
    response = client.post("/api/query", json={"question": "And?", "conversation_id": conversation})
    assert (response.status_code, response.json["error"]["type"]) == (409, "ConversationBusy")
    client.post(f"/api/turns/{turn_id}/stop")
    assert ask(client, "And?", conversation_id=conversation)["turn"] == 2


def test_stop_keeps_the_text_and_closes_the_upstream(app: Flask, stub: StubModel) -> None:
    stub.default = Reply("word " * 1000, seconds_between=0.02)
    turn_id = start(app)
    client = app.test_client()
    until(lambda: client.get(f"/api/turns/{turn_id}").json["answer"])
    stopped = client.post(f"/api/turns/{turn_id}/stop").json
    assert stopped["status"] == "stopped"
    assert stopped["answer"].startswith("word")
    assert len(stopped["answer"]) < len(stub.default.text), "the rest was not waited for"
    assert "error" not in stopped
    until(lambda: stub.requests[0].left_after is not None)
    assert client.post(f"/api/turns/{turn_id}/stop").json == stopped


@pytest.mark.long
def test_stop_before_the_first_word_ends_the_wait(app: Flask, stub: StubModel) -> None:
    stub.default = Reply(hang_before_headers=True)
    turn_id = start(app)
    until(lambda: stub.requests)
    stopped = app.test_client().post(f"/api/turns/{turn_id}/stop").json
    assert (stopped["status"], stopped["answer"]) == ("stopped", "")


def test_leaving_does_not_stop_the_answer(app: Flask, stub: StubModel) -> None:
    stub.default = Reply("one two three four", seconds_between=0.05)
    response = app.test_client().post("/api/query/stream", json={"question": "Why?"}, buffered=False)
    events = response.iter_encoded()
    next(events)
    response.close()
    client = app.test_client()
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    assert client.get("/api/turns/1").json["answer"] == "one two three four"


@pytest.mark.long
def test_an_answer_during_which_its_document_is_deleted_says_so(
    app: Flask, client: FlaskClient, stub: StubModel
) -> None:
    """It has its passages by then; nothing finds the document any more."""
    document = upload(client, "The keeper feeds seventeen geese.", "geese.txt")
    stub.default = Reply("Seventeen [1]. " + "word " * 20, seconds_between=0.05)
    turn_id = start(app, question="How many geese does the keeper feed?")
    until(lambda: client.get(f"/api/turns/{turn_id}").json["answer"])
    assert client.delete(f"/api/documents/{document['document_id']}").status_code == 204
    assert client.get("/api/search?q=geese").json["passages"] == []
    until(lambda: client.get(f"/api/turns/{turn_id}").json["status"] == "completed")
    (correction,) = client.get(f"/api/turns/{turn_id}").json["corrections"]
    assert (correction["what"], correction["change"], correction["document"]) == ("source", "deleted", "geese.txt")


def test_following_from_every_position_gives_exactly_the_rest(app: Flask, client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("Grüße 世界 👋🏽 end.")
    answer = ask(client)
    for position in range(len(answer["answer"]) + 1):
        response = client.get(
            f"/api/turns/{answer['turn_id']}/stream", headers={"Last-Event-ID": str(position)}, buffered=True
        )
        events = events_of(response.data)
        text = "".join(data["text"] for name, _, data in events if name == "token")
        assert text == answer["answer"][position:]
        assert events[0][0] == "start"
        assert events[-1] == ("end", len(answer["answer"]) + 1, answer)


@pytest.mark.parametrize("reply", [Reply("Fine."), Reply(status=400)])
def test_whoever_comes_back_after_the_end_is_told_to_stay_away(
    client: FlaskClient, stub: StubModel, reply: Reply
) -> None:
    stub.default = reply
    events = events_of(client.post("/api/query/stream", json={"question": "Why?"}).data)
    _, position, data = events[-1]
    path = f"/api/turns/{data['turn_id']}/stream"
    again = client.get(path, headers={"Last-Event-ID": str(position)})
    assert (again.status_code, again.data) == (204, b"")
    before = events_of(client.get(path, headers={"Last-Event-ID": str((position or 0) - 1)}).data)
    assert before[-1] == events[-1]


def test_all_who_follow_a_running_turn_see_the_same(app: Flask, stub: StubModel) -> None:
    stub.default = Reply(" ".join(str(n) for n in range(60)), seconds_between=0.01)
    turn_id = start(app)
    seen: list[str] = []

    def follow(after: int) -> None:
        headers = {"Last-Event-ID": str(after)} if after else {}
        events = events_of(app.test_client().get(f"/api/turns/{turn_id}/stream", headers=headers).data)
        text = "".join(data["text"] for name, _, data in events if name == "token")
        seen.append(events[-1][2]["answer"][:after] + text)

    threads = []
    for after in (0, 0, 3, 10):
        time.sleep(0.1)
        threads.append(threading.Thread(target=follow, args=(after,)))
        threads[-1].start()
    for thread in threads:
        thread.join(10)
    assert seen == [stub.default.text] * 4


def test_a_known_key_gives_the_same_turn_and_calls_the_model_once(client: FlaskClient, stub: StubModel) -> None:
    def post(question: str) -> Any:
        return client.post("/api/query", json={"question": question}, headers={"Idempotency-Key": "k1"})

    first, again = post("Why?"), post("Why?")
    assert first.json == again.json
    assert len(stub.requests) == 1
    assert len(client.get("/api/conversations").json["conversations"]) == 1
    refused = post("How?")
    assert (refused.status_code, refused.json["error"]["type"]) == (422, "IdempotencyKeyReused")


def test_parallel_retries_with_one_key_make_one_turn(app: Flask, stub: StubModel) -> None:
    stub.default = Reply("one two three", seconds_between=0.02)
    answers: list[Any] = []

    def post() -> None:
        answers.append(
            app.test_client().post("/api/query", json={"question": "Why?"}, headers={"Idempotency-Key": "k"}).json
        )

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert {answer["turn_id"] for answer in answers} == {1}
    assert len(stub.requests) == 1


@pytest.mark.settings(MAX_RUNNING_ANSWERS="2")
def test_more_questions_than_the_server_carries_are_refused_with_patience(
    app: Flask, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.default = Reply(hang_before_headers=True)
    turn_ids = [start(app) for _ in range(2)]
    client = app.test_client()
    response = client.post("/api/query", json={"question": "One more?"})
    assert (response.status_code, response.json["error"]["type"]) == (503, "Overloaded")
    assert int(response.headers["Retry-After"]) >= 1
    tried = []
    monkeypatch.setattr("rag_assistant.answering.assistant.refuse_undecided", lambda *_: tried.append(1))
    idle = client.post("/api/conversations").json["conversation_id"]
    undecided = {"question": "One more?", "conversation_id": idle, "on_overflow": "ask"}
    assert (client.post("/api/query", json=undecided).status_code, tried) == (503, [])
    for turn_id in turn_ids:
        client.post(f"/api/turns/{turn_id}/stop")
    until(lambda: client.post("/api/query/stream", json={"question": "Now?"}).status_code == 200)


@pytest.mark.usefixtures("late_soon")
@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        (Reply(status=401), 502, "ModelRefused"),
        (Reply(status=429, headers={"Retry-After": "60"}), 503, "ModelBusy"),
        pytest.param(Reply(status=500), 502, "ModelFailed", marks=pytest.mark.long),
        pytest.param(Reply(status=503, headers={"Retry-After": "60"}), 502, "ModelFailed", marks=pytest.mark.long),
        (Reply(hang_before_headers=True), 504, "ModelTimedOut"),
        pytest.param(Reply(hang_at=0), 504, "ModelTimedOut", marks=pytest.mark.long),
        (Reply(" "), 502, "ModelFailed"),
    ],
)
def test_a_failed_turn_is_kept_told_in_both_ways_and_never_seen_by_the_model(  # type: ignore[no-untyped-def]
    client: FlaskClient, stub: StubModel, reply, status, kind
) -> None:
    conversation = ask(client, "First")["conversation_id"]
    stub.default = reply
    body = {"question": "Second", "conversation_id": conversation}
    response = client.post("/api/query", json=body)
    assert (response.status_code, response.json["error"]["type"]) == (status, kind)
    assert (response.json["status"], response.json["turn"]) == ("failed", 2)
    assert response.headers.get("Retry-After") == reply.headers.get("Retry-After")
    name, _, data = events_of(client.post("/api/query/stream", json=body).data)[-1]
    assert (name, data["error"]["type"], data["turn"]) == ("error", kind, 3)
    stub.default = Reply("Fine.")
    fine = ask(client, "Third", conversation_id=conversation)
    assert [m["content"] for m in stub.requests[-1].messages[1:]] == ["First", "An answer.", "Third"]
    assert fine["history"]["turns_total"] == 1


def test_an_answer_that_breaks_off_keeps_its_text_and_nobody_takes_it_for_whole(
    client: FlaskClient, stub: StubModel
) -> None:
    stub.replies.append(Reply("one two three", break_at=2))
    response = client.post("/api/query", json={"question": "Why?"})
    assert (response.status_code, response.headers["Retry-After"]) == (502, "5")
    answer = response.json
    assert (answer["status"], answer["answer"], answer["error"]["type"]) == (
        "interrupted",
        "one two",
        "AnswerInterrupted",
    )
    assert client.get(f"/api/turns/{answer['turn_id']}").json == answer | {"corrections": []}
    ask(client, "More?", conversation_id=answer["conversation_id"])
    assert stub.requests[-1].messages[2]["content"] == "one two"


def test_a_question_is_kept_while_the_endpoint_is_down_whoever_decides_about_older_turns(
    environment: dict[str, str],
) -> None:
    down = {name: value for name, value in environment.items() if name != "OPENAI_MODEL"}
    made = create_app(down | {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "ON_OVERFLOW": "ask"})
    client = made.test_client()
    conversation = client.post("/api/conversations").json["conversation_id"]
    failed = client.post("/api/query", json={"question": "Why?", "conversation_id": conversation})
    assert (failed.status_code, failed.json["status"], failed.json["turn"]) == (502, "failed", 1)
    made.extensions["assistant"].close()


def test_a_failed_turn_is_answered_when_it_is_retried(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=500)
    failed = client.post("/api/query", json={"question": "Why?"}).json
    stub.default = Reply("Because.")
    response = client.post(f"/api/turns/{failed['turn_id']}/retry")
    assert response.status_code == 202
    events = events_of(client.get(f"/api/turns/{failed['turn_id']}/stream").data)
    assert events[-1][2]["answer"] == "Because."
    assert client.post(f"/api/turns/{failed['turn_id']}/retry").json["error"]["type"] == "TurnNotRetryable"


def test_after_a_crash_the_turn_is_interrupted_with_what_was_shown(
    app: Flask, environment: dict[str, str], stub: StubModel
) -> None:
    """The process is not really killed here (see tests/test_server.py): its database is read by a second one."""
    stub.default = Reply("one two three four", hang_at=2)
    turn_id = start(app)
    client = app.test_client()
    until(lambda: client.get(f"/api/turns/{turn_id}").json["answer"] == "one two")
    first: Services = app.extensions["assistant"]
    assert first._lock_file is not None
    first._lock_file.close()  # as the kernel does for a process that ends
    second = create_app(environment)
    second.extensions["assistant"].start()
    found = second.test_client().get(f"/api/turns/{turn_id}").json
    assert (found["status"], found["answer"], found["error"]["type"]) == ("interrupted", "one two", "AnswerInterrupted")
    assert found["model"] == "stub-model"
    again = ask(second.test_client(), "Go on.", conversation_id=found["conversation_id"]) if stub_answers(stub) else {}
    assert again["turn"] == 2
    second.extensions["assistant"].close()


@pytest.mark.long
def test_a_server_that_starts_leaves_the_answers_of_a_running_command_alone(environment: dict[str, str]) -> None:
    def status_after_a_start() -> str:
        server = create_app(environment).extensions["assistant"]
        server.start()
        server.close()
        return str(server.turns.get(turn.id).status)

    command: Services = create_app(environment).extensions["assistant"]
    command.start_command(answers=True)
    turn, _ = command.turns.accept(Question("Why?"), "Why?")
    assert status_after_a_start() == "running"
    command.close()
    assert status_after_a_start() == "failed"


def stub_answers(stub: StubModel) -> bool:
    stub.default = Reply("Fine.")
    return True


def test_a_second_server_on_the_same_data_is_refused(app: Flask, environment: dict[str, str]) -> None:
    second = create_app(environment)
    with pytest.raises(Exception, match="a server uses it already"):
        second.extensions["assistant"].start()


@pytest.mark.long
@pytest.mark.settings(MAX_RUNNING_ANSWERS="2")
def test_a_stream_that_is_never_read_frees_its_place(app: Flask, stub: StubModel) -> None:
    for _ in range(3):
        response = app.test_client().post("/api/query/stream", json={"question": "Why?"}, buffered=False)
        assert response.status_code == 200
        response.close()
        until(lambda: not running(app))


# What a person does elsewhere while an answer is written, and how that is answered.
MEANWHILE = [
    ("DELETE", "/api/documents/1", None, 204),
    ("DELETE", "/api/conversations/{conversation}", None, 204),
    ("POST", "/api/conversations/{conversation}/purge", None, 409),
    ("POST", "/api/conversations/{conversation}/clear", None, 409),
    ("POST", "/api/conversations/{conversation}/compact", {}, 409),
    ("POST", "/api/turns/{turn}/regenerate", None, 409),
    ("POST", "/api/turns/{turn}/retry", {}, 409),
    ("PATCH", "/api/turns/{turn}", {"excluded": True}, 409),
    ("PUT", "/api/turns/{turn}/rating", {"rating": "up"}, 409),
    ("POST", "/api/query", {"question": "And?", "conversation_id": "{conversation}"}, 409),
    ("GET", "/api/turns/{turn}/receipt", None, 200),
    ("GET", "/api/conversations/{conversation}/receipts", None, 200),
    ("GET", "/api/conversations/{conversation}/export?format=json", None, 200),
    ("DELETE", "/api/projects/1", None, 204),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), sample(MEANWHILE, 3), ids=lambda one: str(one)[-30:])
def test_an_answer_is_written_to_its_end_whatever_is_done_meanwhile(
    client: FlaskClient, stub: StubModel, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    upload(client, "Geese hiss at dawn.", "geese.txt")
    project = client.post("/api/projects", json={"name": "Birds"}).json["project_id"]
    stub.replies.append(Reply("They hiss [1].", gate=(gate := threading.Event()), gate_at=1))
    stream = client.post("/api/query/stream", json={"question": "What do geese do?", "project_id": project})
    turn = int(stream.headers["X-Turn-Id"])
    until(lambda: client.get(f"/api/turns/{turn}").json["answer"])
    conversation = client.get(f"/api/turns/{turn}").json["conversation_id"]
    if body and "conversation_id" in body:
        body = body | {"conversation_id": conversation}
    done = client.open(path.format(turn=turn, conversation=conversation), method=method, json=body, buffered=True)
    assert done.status_code == status, done.text
    gate.set()
    assert "event: end" in stream.text
    client.post(f"/api/conversations/{conversation}/restore")
    ended = client.get(f"/api/turns/{turn}").json
    assert (ended["status"], ended["answer"]) == ("completed", "They hiss [1].")


@pytest.mark.parametrize("how", ["clear", "reset"])
def test_a_failed_turn_that_is_retried_after_a_clear_breaks_no_conversation(
    client: FlaskClient, stub: StubModel, how: str
) -> None:
    conversation = ask(client, "Question 1.")["conversation_id"]
    stub.replies.append(Reply(status=400))
    client.post("/api/query", json={"question": "It fails.", "conversation_id": conversation})
    stub.replies.clear()
    failed = turn_ids(client, conversation)[-1]
    assert 'class="retry"' in client.get(f"/conversations/{conversation}").text
    assert client.post(f"/api/conversations/{conversation}/{how}").status_code == 200
    assert 'class="retry"' not in client.get(f"/conversations/{conversation}").text
    retried = client.post(f"/api/turns/{failed}/retry")
    until(lambda: client.get(f"/api/turns/{failed}").json["status"] != "running")
    statuses = [
        client.post("/api/query", json={"question": f"Later {n}.", "conversation_id": conversation}).status_code
        for n in range(3)
    ]
    view = client.get(f"/api/conversations/{conversation}").json["view"]
    assert (retried.status_code, statuses, view["turns_kept"]) == (409, [200] * 3, 3)
    assert "from before you started over" in retried.json["error"]["message"]
