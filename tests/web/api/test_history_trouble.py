"""Trouble around the model's view and its tools: nothing hangs, nothing is lost, nothing cleared comes back."""

import json
import threading
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.records import Question
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import FILLER, contents, conversation_of, run, said, turn_ids, view
from tests.web.conftest import ask, events_of, until, upload


def test_an_empty_answer_can_be_retried_and_the_server_starts_again(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    stub.replies.extend([Reply("\n\n"), Reply("At last.")])
    failed = client.post("/api/query", json={"question": "Why?"})
    assert failed.status_code == 502
    turn = failed.json["turn_id"]
    assert client.post(f"/api/turns/{turn}/retry").status_code == 202
    assert services.assistant.wait(turn).answer == "At last."
    services.assistant.recover()
    assert ask(client, "And?", conversation_id=failed.json["conversation_id"])["status"] == "completed"


def test_a_mark_on_a_failed_turn_holds_after_its_retry(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    stub.replies.extend([Reply(status=400), Reply("Late.")])
    failed = client.post("/api/query", json={"question": "Why?"}).json
    client.patch(f"/api/turns/{failed['turn_id']}", json={"excluded": True})
    client.post(f"/api/turns/{failed['turn_id']}/retry")
    services.assistant.wait(failed["turn_id"])
    ask(client, "And?", conversation_id=failed["conversation_id"])
    assert [message["role"] for message in stub.requests[-1].messages] == ["system", "user"]


@pytest.mark.settings(HISTORY_RECALL="1", MAX_HISTORY_TURNS="1", HISTORY_TOKEN_BUDGET="400")
class TestRecallThatDoesNotFit:
    def test_it_is_left_away(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("zebra " * 250))
        conversation = ask(client, "Tell me of the zebra.")["conversation_id"]
        for n in range(3):
            ask(client, f"Short {n}", conversation_id=conversation)
        answer = ask(client, "zebra?", conversation_id=conversation)
        assert (answer["status"], answer["history"]["recalled_turns"]) == ("completed", [])


def test_a_prompt_count_that_is_the_answers_does_not_make_requests_longer(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 5)
    text = "You passed 901 input tokens and requested 100 output tokens. However, the model's context length is only 800 tokens"  # noqa: E501
    stub.replies.extend([Reply(status=400, body=json.dumps({"error": {"message": text}}).encode()), Reply("It fits.")])
    answer = ask(client, f"Question 6. {FILLER}", conversation_id=conversation)
    assert answer["answer"] == "It fits."
    sizes = [len(json.dumps(request.messages)) for request in stub.requests[-2:]]
    assert sizes[1] < 0.9 * sizes[0]


def in_the_middle_of_a_compaction(app: Flask, stub: StubModel, conversation: int, meanwhile: Any) -> Any:
    """Start a compaction by hand, do something while the model writes, and return the compaction's response."""
    done = threading.Event()
    stub.replies.append(Reply("A summary of it.", gate=done))
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(app.test_client().post(f"/api/conversations/{conversation}/compact"))
    )
    before = len(stub.requests)
    thread.start()
    until(lambda: len(stub.requests) > before)
    meanwhile()
    done.set()
    thread.join()
    return found[0]


@pytest.mark.parametrize("change", ["clear", "exclude"])
def test_what_is_cleared_or_excluded_during_a_compaction_does_not_come_back(
    app: Flask, client: FlaskClient, stub: StubModel, change: str
) -> None:
    conversation = conversation_of(client, 6)
    first = turn_ids(client, conversation)[0]

    def meanwhile() -> None:
        if change == "clear":
            run(client, conversation, "/clear")
        else:
            client.patch(f"/api/turns/{first}", json={"excluded": True})

    refused = in_the_middle_of_a_compaction(app, stub, conversation, meanwhile)
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "HistoryChanged")
    assert view(client, conversation)["summary"] is None
    ask(client, "Question 7.", conversation_id=conversation)
    assert said(stub) == (["Question 7"] if change == "clear" else [f"Question {n}" for n in range(2, 8)])


def test_a_question_during_a_compaction_does_not_hurt_it(app: Flask, client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    stub.default = Reply("An answer.")
    done = in_the_middle_of_a_compaction(
        app, stub, conversation, lambda: ask(client, "Question 7.", conversation_id=conversation)
    )
    assert done.status_code == 200
    ask(client, "Question 8.", conversation_id=conversation)
    assert said(stub)[-2:] == ["Question 7", "Question 8"]


@pytest.mark.long
def test_a_turn_that_a_summary_passed_over_is_still_seen_when_it_is_unpinned(
    client: FlaskClient, stub: StubModel
) -> None:
    conversation = conversation_of(client, 6)
    first = turn_ids(client, conversation)[0]
    client.patch(f"/api/turns/{first}", json={"pinned": True})
    stub.replies.append(Reply("Two and three."))
    assert client.post(f"/api/conversations/{conversation}/compact").status_code == 200
    client.patch(f"/api/turns/{first}", json={"pinned": False})
    ask(client, "Question 7.", conversation_id=conversation)
    assert said(stub)[0] == "Question 1"


def test_a_turn_in_a_summary_cannot_be_excluded_alone(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    stub.replies.append(Reply("Some turns."))
    client.post(f"/api/conversations/{conversation}/compact")
    refused = client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"excluded": True})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "TurnSummarised")


def test_undo_takes_back_no_choice_that_was_made_later(client: FlaskClient) -> None:
    conversation = conversation_of(client, 2)
    client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"pinned": True})
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 1, "on_overflow": "ask"})
    undone = client.post(f"/api/conversations/{conversation}/undo").json
    assert (undone["undone"], undone["max_history_turns"], undone["on_overflow"]) == ("pin", 1, "ask")


@pytest.mark.settings(MODEL_CONTEXT_TOKENS="3000", ON_OVERFLOW="compact", MAX_HISTORY_TURNS="null")
class TestSmallModel:
    @pytest.mark.long
    @pytest.mark.parametrize("turns", [15, pytest.param(40, marks=pytest.mark.long)])
    def test_a_long_talk_never_ends_without_memory(self, client: FlaskClient, stub: StubModel, turns: int) -> None:
        conversation: int | None = None
        for n in range(1, turns + 1):
            stub.default = Reply(" ".join(f"Sentence {n}-{k} of something." for k in range(12)))
            fields = {"conversation_id": conversation} if conversation else {}
            answer = ask(client, f"Question {n}. {FILLER * 3}", **fields)
            conversation = answer["conversation_id"]
            if n > 12:
                assert answer["history"]["turns_kept"] >= 2, n
                assert answer["history"]["summary_sent"] is True, n


@pytest.mark.parametrize(
    "limit",
    [True, 64, 10**23, *(pytest.param(one, marks=pytest.mark.long) for one in (1, -5, "many", None))],
    ids=["true", "64", "huge", "1", "minus", "text", "none"],
)
def test_a_nonsensical_limit_in_the_list_of_models_is_not_believed(
    client: FlaskClient, stub: StubModel, limit: Any
) -> None:
    stub.models = [{"id": "stub-model", "n_ctx": limit}]
    events = events_of(client.post("/api/query/stream", json={"question": "Why?"}).data)
    assert events[-1][2]["status"] == "completed"
    assert events[-1][2]["history"]["tokens"]["limit"] is None


def test_a_rate_limit_is_not_taken_for_a_limit_of_length(client: FlaskClient, stub: StubModel) -> None:
    text = b'{"error": {"message": "Your rate limit for long context requests of 100 per minute is exceeded."}}'
    stub.replies.extend([Reply(status=429, body=text)] * 3)
    assert client.post("/api/query", json={"question": "Why?"}).status_code == 503
    assert ask(client)["history"]["tokens"]["limit"] is None


@pytest.mark.parametrize("size", [10**20, pytest.param(2**31, marks=pytest.mark.long)])
def test_a_window_above_every_number_does_not_break_the_stream(client: FlaskClient, size: int) -> None:
    response = client.post("/api/query/stream", json={"question": "Why?", "max_history_turns": size})
    assert events_of(response.data)[-1][2]["status"] == "completed"


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "many"},
        pytest.param({"prompt_tokens": -3}, marks=pytest.mark.long),
        pytest.param({"prompt_tokens": 10**30}, marks=pytest.mark.long),
        pytest.param({"prompt_tokens": True}, marks=pytest.mark.long),
        pytest.param({"prompt_tokens_details": [1]}, marks=pytest.mark.long),
        {"prompt_tokens_details": "x"},
        {"finish_reason": 4},
        pytest.param({"nested": {"deep": []}}, marks=pytest.mark.long),
    ],
)
def test_odd_usage_never_costs_an_answer(client: FlaskClient, stub: StubModel, usage: dict[str, Any]) -> None:
    stub.replies.append(Reply("Whole.", usage=usage))
    answer = ask(client)
    assert (answer["status"], answer["answer"]) == ("completed", "Whole.")
    assert answer["usage"]["finish_reason"] == "stop"


def test_too_long_in_the_middle_of_an_answer_does_not_begin_it_again(client: FlaskClient, stub: StubModel) -> None:
    broken = (
        b'data: {"choices": [{"index": 0, "delta": {"content": "The capital is "}}]}\n\n'
        b'data: {"error": {"message": "Context size has been exceeded."}}\n\n'
    )
    stub.replies.append(Reply(body=broken, headers={"Content-Type": "text/event-stream"}))
    answer = client.post("/api/query", json={"question": "Why?"}).json
    assert (answer["status"], answer["answer"]) == ("interrupted", "The capital is ")
    assert len(stub.requests) == 1


def test_ask_is_no_consent(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 5)
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 0, "on_overflow": "trim"})
    ask(client, "Question 6.", conversation_id=conversation, on_overflow="trim")
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 0, "on_overflow": "ask"})
    refused = client.post("/api/query", json={"question": "Question 7.", "conversation_id": conversation})
    assert refused.status_code == 409


def test_calls_that_nobody_offered_are_passed_over(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Anyway.", tool_calls=[{"id": "a", "name": "search_documents", "arguments": {}}]))
    answer = ask(client)
    assert (answer["answer"], answer["steps"]) == ("Anyway.", [])


@pytest.mark.settings(RETRIEVAL_MODE="agent")
class TestOddCalls:
    @pytest.mark.parametrize(
        "call",
        [
            {"id": "a\ud800", "name": "search_documents", "arguments": {"query": "x"}},
            pytest.param({"id": "a", "name": "search\ud800 documents!", "arguments": {}}, marks=pytest.mark.long),
            {"id": "a", "name": "search_documents", "arguments": '{"query": "\\ud800 and \\u0000"}'},
            pytest.param(
                {"id": "a", "name": "search_documents", "arguments": '{"query": "caf'}, marks=pytest.mark.long
            ),
            {"id": "", "name": "", "arguments": "[" * 5000},
        ],
        ids=["id", "name", "escaped", "half", "deep"],
    )
    def test_they_are_kept_in_a_form_that_every_server_takes_back(
        self, client: FlaskClient, stub: StubModel, call: dict[str, Any]
    ) -> None:
        stub.replies.append(Reply(tool_calls=[call]))
        events = events_of(client.post("/api/query/stream", json={"question": "Look."}).data)
        answer = events[-1][2]
        assert answer["status"] == "completed"
        again = ask(client, "And now?", conversation_id=answer["conversation_id"])
        assert again["status"] == "completed"
        (sent,) = [one for message in stub.requests[-1].messages for one in message.get("tool_calls", ())]
        assert isinstance(json.loads(sent["function"]["arguments"]), dict)
        assert sent["function"]["name"].replace("_", "").isalnum()

    @pytest.mark.long
    def test_results_beside_a_waiting_call_do_not_hold_other_iterations(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        document = upload(client, "A draft.")["document_id"]
        stub.replies.append(
            Reply(tool_calls=[{"id": "", "name": "delete_documents", "arguments": {"document_ids": [document]}}])
        )
        conversation = ask(client, "Delete it.")["conversation_id"]
        stub.replies.extend(
            [Reply(tool_calls=[{"id": "", "name": "list_documents", "arguments": {}}]) for _ in range(5)]
        )
        ask(client, "List them.", conversation_id=conversation)
        roles = [message["role"] for message in stub.requests[-1].messages]
        assert roles.count("tool") == 3  # The one that waits, and the last two iterations.


@pytest.mark.long
@pytest.mark.usefixtures("late_soon")
def test_a_summary_that_takes_too_long_leaves_time_for_the_answer(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    stub.replies.extend([Reply(hang_at=0), Reply("In time.")])
    answer = ask(client, "Question 7.", conversation_id=conversation, on_overflow="compact")
    assert answer["answer"] == "In time."
    assert "could not summarise" in answer["notes"][0]


@pytest.mark.long
def test_a_deleted_documents_key_still_gives_its_turn(client: FlaskClient, services: Services) -> None:
    document = upload(client, "Something.")["document_id"]
    body = {"question": "What?", "document_ids": [document]}
    first = client.post("/api/query", json=body, headers={"Idempotency-Key": "k"}).json
    client.delete(f"/api/documents/{document}")
    again = client.post("/api/query", json=body, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json["turn_id"]) == (200, first["turn_id"])
    assert services.turns.by_idempotency_key(Question("What?", idempotency_key="other")) is None


@pytest.mark.long
def test_the_summary_is_named_where_it_did_not_fit(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    stub.replies.append(Reply("Short."))
    client.post(f"/api/conversations/{conversation}/compact")
    client.put(f"/api/conversations/{conversation}/summary", json={"text": "A long tale. " * 1500})
    text = b'{"error": {"message": "prompt is too long: 6000 tokens > 1500 maximum"}}'
    stub.replies.extend([Reply(status=400, body=text), Reply("Without it.")])
    answer = ask(client, "Question 7.", conversation_id=conversation)
    assert answer["answer"] == "Without it."
    assert answer["history"]["summary_sent"] is False
    assert any("did not fit" in note for note in answer["notes"])
    assert not any("A long tale" in text for text in contents(stub))
