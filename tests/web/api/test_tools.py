"""The model calls tools: steps, limits and trouble."""

import json
import logging
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.tool_calls import call, results, search
from tests.web.conftest import ask, events_of, upload

pytestmark = pytest.mark.settings(RETRIEVAL_MODE="agent")


def test_the_model_searches_by_itself_and_its_steps_are_kept(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock on Fridays.")
    stub.replies.extend([search("office Fridays"), Reply("At seven in the evening [1].")])
    answer = ask(client, "When does it close?")
    assert answer["answer"] == "At seven in the evening [1]."
    assert [(step["n"], step["tool"]) for step in answer["steps"]] == [(1, "search_documents")]
    assert json.loads(answer["steps"][0]["arguments"]) == {"query": "office Fridays"}
    assert "nineteen o'clock" in answer["steps"][0]["result"]
    assert [(source["n"], source["cited"]) for source in answer["sources"]] == [(1, True)]
    assert client.get(f"/api/turns/{answer['turn_id']}").json["steps"] == answer["steps"]
    first, second = stub.requests
    assert [tool["function"]["name"] for tool in first.body["tools"]] == [
        "search_documents", "read_document", "list_documents", "delete_documents",
    ]  # fmt: skip
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert "<passages>" in results(stub)[0]


def test_the_stream_shows_each_step_when_it_is_kept(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock.")
    stub.replies.extend([search("office", "a"), search("closes", "b"), Reply("At seven.")])
    events = events_of(client.post("/api/query/stream", json={"question": "When?"}).data)
    names = [name for name, _, _ in events if name != "state"]
    assert names[:5] == ["start", "step", "update", "step", "update"]
    assert names[-1] == "end"
    updates = [data for name, _, data in events if name == "update"]
    assert updates[-1]["sources"]
    assert updates[-1]["history"] == events[-1][2]["history"]
    steps = [data for name, _, data in events if name == "step"]
    assert [(step["n"], step["tool"]) for step in steps] == [(1, "search_documents"), (2, "search_documents")]
    replayed = events_of(client.get(f"/api/turns/{steps[0]['turn_id']}/stream").data)
    assert [data for name, _, data in replayed if name == "step"] == steps
    assert replayed[-1][2]["answer"] == events[-1][2]["answer"] == "At seven."


def test_what_the_model_says_before_a_call_is_no_answer_but_is_sent_back(client: FlaskClient, stub: StubModel) -> None:
    calls = [call("search_documents", query="office")]
    stub.replies.extend([Reply("Let me look.", tool_calls=calls), Reply("At seven.")])
    answer = ask(client, "When?")
    assert answer["answer"] == "Let me look.\n\nAt seven."
    assert stub.requests[-1].messages[2]["content"] == "Let me look."
    stub.replies.extend([Reply("Let me look.", tool_calls=calls), Reply(" ")])
    broken = client.post("/api/query", json={"question": "When?"}).json
    assert (broken["status"], broken["answer"].strip(), broken["error"]["type"]) == (
        "interrupted", "Let me look.", "ModelFailed",
    )  # fmt: skip


def test_thoughts_go_back_while_tools_run_and_are_not_kept(client: FlaskClient, stub: StubModel) -> None:
    signed = {"extra_content": {"google": {"thought_signature": "s1"}}}
    thoughts = [{"reasoning_content": "Let me "}, {"reasoning_content": "look."}, {"reasoning_details": [{"id": 1}]}]
    calls = [call("search_documents", query="office") | signed]
    stub.replies.extend([Reply(tool_calls=calls, thoughts=thoughts), Reply("At seven."), Reply("Yes.")])
    answer = ask(client, "When?")
    message = stub.requests[1].messages[2]
    assert (message["reasoning_content"], message["reasoning_details"]) == ("Let me look.", [{"id": 1}])
    assert message["tool_calls"][0]["extra_content"] == signed["extra_content"]
    ask(client, "Really?", conversation_id=answer["conversation_id"])
    assert "search_documents" in json.dumps(stub.requests[-1].messages)
    assert "look." not in json.dumps(stub.requests[-1].messages)
    assert "s1" not in json.dumps(stub.requests[-1].messages)


def test_what_a_failed_answer_used_is_kept(client: FlaskClient, stub: StubModel) -> None:
    first = search("office")
    first.usage = {"prompt_tokens": 70, "completion_tokens": 5}
    stub.replies.extend([first, Reply(status=400)])
    failed = client.post("/api/query", json={"question": "When?"}).json
    assert (failed["usage"]["prompt_tokens"], failed["usage"]["requests"]) == (70, 1)


@pytest.mark.long
def test_parallel_calls_are_all_answered_in_their_order(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "Apples are red.", "apples.txt")
    upload(client, "Plums are blue.", "plums.txt")
    calls = [
        call("search_documents", "a", query="apples"),
        call("list_documents", "b"),
        call("search_documents", "", query="plums"),
    ]
    stub.replies.extend([Reply(tool_calls=calls), Reply("Red and blue.")])
    answer = ask(client, "Which colours?")
    assert [step["tool"] for step in answer["steps"]] == ["search_documents", "list_documents", "search_documents"]
    apples, listed, plums = results(stub)
    assert "Apples are red" in apples
    assert "plums.txt" in listed
    assert "Plums are blue" in plums
    assert [source["n"] for source in answer["sources"]] == list(range(1, len(answer["sources"]) + 1))
    sent = stub.requests[-1].messages
    ids = [one["id"] for message in sent for one in message.get("tool_calls", ())]
    assert len(set(ids)) == 3
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("fly_away", {}, 'There is no tool "fly_away"'),
        ("search_documents", {}, '"query" is missing'),
        pytest.param("search_documents", {"query": "x", "speed": 3}, 'Unknown field "speed"', marks=pytest.mark.long),
        ("search_documents", "{nonsense", "not JSON"),
        pytest.param("search_documents", "[1]", "must be one JSON object", marks=pytest.mark.long),
        ("read_document", {"document_id": 999}, "no document 999"),
        pytest.param("delete_documents", {"document_ids": [999]}, "no document 999", marks=pytest.mark.long),
        ("search_documents", {"query": "zebra"}, "Nothing was found"),
    ],
)
def test_what_a_tool_cannot_do_goes_to_the_model(
    client: FlaskClient, stub: StubModel, name: str, arguments: Any, told: str
) -> None:
    stub.replies.extend([Reply(tool_calls=[{"id": "a", "name": name, "arguments": arguments}]), Reply("I see.")])
    answer = ask(client, "Do it.")
    assert answer["answer"] == "I see."
    assert told in results(stub)[0]


def test_a_document_is_read_piece_by_piece(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, "0123456789" * 30)["document_id"]
    stub.replies.extend(
        [Reply(tool_calls=[call("read_document", document_id=document, start=5, length=10)]), Reply("Read [1].")]
    )
    answer = ask(client, "What stands there?")
    assert "Characters 5 to 15 of 300." in results(stub)[0]
    assert "5678901234" in results(stub)[0]
    assert (answer["sources"][0]["start"], answer["sources"][0]["end"]) == (5, 15)


def test_with_document_ids_the_tools_know_no_others(client: FlaskClient, stub: StubModel) -> None:
    seen = upload(client, "Apples are red.", "apples.txt")["document_id"]
    hidden = upload(client, "Apples are secret.", "secret.txt")["document_id"]
    calls = [
        call("search_documents", "a", query="apples"),
        call("list_documents", "b"),
        call("read_document", "c", document_id=hidden),
    ]
    stub.replies.extend([Reply(tool_calls=calls), Reply("Red.")])
    ask(client, "Which?", document_ids=[seen])
    found, listed, read = results(stub)
    assert "secret" not in found + listed
    assert "no document" in read


def test_the_loop_ends_at_its_limit_with_an_answer(client: FlaskClient, stub: StubModel, services: Services) -> None:
    stub.replies.extend([search(f"word{n}", f"c{n}") for n in range(8)] + [Reply("That is all I found.")])
    answer = ask(client, "Look everywhere.")
    assert answer["answer"] == "That is all I found."
    assert len(answer["steps"]) == 8
    assert [request.body["tool_choice"] for request in stub.requests] == ["auto"] * 8 + ["none"]


@pytest.mark.long
def test_a_model_that_never_answers_is_named(client: FlaskClient, stub: StubModel) -> None:
    stub.default = search("again")
    response = client.post("/api/query", json={"question": "Look."})
    assert response.status_code == 502
    assert "called tools 8 times" in response.json["error"]["message"]
    assert len(stub.requests) == 9


@pytest.mark.long
def test_older_iterations_are_left_out_with_figures_in_the_log(
    client: FlaskClient, stub: StubModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stub.replies.extend([search(f"word{n}", f"c{n}") for n in range(4)] + [Reply("Done.")])
    answer = ask(client, "Look.")
    roles = [message["role"] for message in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert stub.requests[-1].messages[1]["content"] == "Look."
    assert "keeping 5 of 9 messages, 2 iterations, 4 left out" in caplog.text
    assert answer["history"]["iterations_dropped"] == 2
    assert answer["history_trimmed"] is False
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert receipt["messages"] == stub.requests[-1].messages
    assert [one["messages"] for one in receipt["earlier_requests"]] == [one.messages for one in stub.requests[:-1]]
    assert receipt["request"]["tools"] == stub.requests[-1].body["tools"]


def test_the_next_question_sees_the_whole_turn_with_its_tools(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([search("word"), Reply("Found.")])
    conversation = ask(client, "Look.")["conversation_id"]
    answer = ask(client, "And now?", conversation_id=conversation)
    roles = [message["role"] for message in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert answer["history"]["turns_kept"] == 1


def test_text_before_a_call_stays_in_the_answer(client: FlaskClient, stub: StubModel) -> None:
    first = Reply("Let me look.", tool_calls=[call("list_documents")])
    stub.replies.extend([first, Reply("There are none.")])
    answer = ask(client, "What is there?")
    assert answer["answer"] == "Let me look.\n\nThere are none."


def test_stop_ends_the_loop_and_keeps_its_steps(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([search("word"), Reply("Never said.", hang_at=0)])
    turn = None
    response = client.post("/api/query/stream", json={"question": "Look."}, buffered=False)
    for piece in response.iter_encoded():
        if b"event: step" in piece:
            turn = json.loads(piece.decode().split("data: ", 1)[1])["turn_id"]
            break
    assert turn is not None
    stopped = client.post(f"/api/turns/{turn}/stop").json
    assert (stopped["status"], len(stopped["steps"])) == ("stopped", 1)
    response.close()


@pytest.mark.settings(HISTORY_TOKEN_BUDGET="1500", MAX_HISTORY_TURNS="null")
class TestPreview:
    def test_it_counts_the_tools_as_the_request_does(self, client: FlaskClient, stub: StubModel) -> None:
        stub.default = Reply("word " * 150)
        conversation = ask(client, "Question 1")["conversation_id"]
        for n in range(2, 8):
            promised = client.get(f"/api/conversations/{conversation}").json["view"]
            answer = ask(client, f"Question {n}", conversation_id=conversation)
            # The question itself, which has no text in a preview, can cost one more turn.
            assert promised["turns_kept"] - answer["history"]["turns_kept"] in (0, 1)
        assert answer["history"]["tokens"]["tools"] == promised["tokens"]["tools"] > 300
        assert answer["history"]["reason"] == "token_limit"
