"""Responses: stored ones are turns that go on, others come with their turns; what was left out is told in each."""

import json
from typing import Any

import openai
import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import until, upload

RESPONSES = "/v1/responses"
MODEL = "rag-assistant"
LONG = " It was told at some length, so that a summary can be shorter than what it stands for." * 3


def respond(client: FlaskClient, given: Any, **fields: Any) -> Any:
    return client.post(RESPONSES, json={"model": MODEL, "input": given} | fields)


def items(turns: int, question: str = "And now?", more: str = "") -> list[dict[str, Any]]:
    """Return the items of some turns, and a question."""
    said: list[dict[str, Any]] = []
    for n in range(1, turns + 1):
        said += [{"role": "user", "content": f"Question {n}{more}"}]
        said += [{"role": "assistant", "content": [{"type": "output_text", "text": f"Answer {n}{more}"}]}]
    return [*said, {"role": "user", "content": [{"type": "input_text", "text": question}]}]


def events_of(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_response_is_stored_and_the_next_one_goes_on_behind_it(
    sdk: openai.OpenAI, client: FlaskClient, stub: StubModel
) -> None:
    upload(client, "The lamp of the lighthouse burns rapeseed oil.", "lamp.txt")
    stub.replies.extend([Reply("Rapeseed oil [1]."), Reply("Every four hours.")])
    first = sdk.responses.create(model=MODEL, input="What does the lamp of the lighthouse burn?")
    assert (first.status, first.output_text) == ("completed", "Rapeseed oil [1].")
    (message,) = first.output
    assert message.type == "message"
    (part,) = message.content
    assert part.type == "output_text"
    (cited,) = part.annotations
    assert cited.type == "url_citation"
    assert (cited.title, part.text[cited.start_index : cited.end_index]) == ("lamp.txt", "[1]")
    second = sdk.responses.create(model=MODEL, input="And when is it trimmed?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert [m["content"] for m in stub.requests[-1].messages[1:3]] == [
        "What does the lamp of the lighthouse burn?",
        "Rapeseed oil [1].",
    ]
    assert sdk.responses.retrieve(second.id).output_text == "Every four hours."
    asked = sdk.responses.input_items.list(second.id).data
    assert asked[0].content[0].text == "And when is it trimmed?"  # type: ignore[union-attr]


def test_a_response_behind_an_earlier_one_is_a_branch(client: FlaskClient, stub: StubModel) -> None:
    first = respond(client, "First?").json["id"]
    respond(client, "Second?", previous_response_id=first)
    other = respond(client, "Otherwise?", previous_response_id=first).json
    assert [m["content"] for m in stub.requests[-1].messages[1:]] == ["First?", "An answer.", "Otherwise?"]
    branch = other["rag_assistant"]["conversation_id"]
    assert client.get(f"/api/conversations/{branch}").json["branched_from"] == {"conversation_id": 1, "turn": 2}


def test_an_item_that_names_an_earlier_answer_goes_on_behind_it(client: FlaskClient, stub: StubModel) -> None:
    message = respond(client, "First?").json["output"][0]["id"]
    given = [{"role": "user", "content": "First?"}, {"type": "item_reference", "id": message}]
    second = respond(client, [*given, {"role": "user", "content": "Second?"}]).json
    assert second["rag_assistant"]["conversation_id"] == 1
    assert [m["content"] for m in stub.requests[-1].messages[1:]] == ["First?", "An answer.", "Second?"]


@pytest.mark.parametrize("stream", [False, True])
def test_the_window_applies_to_what_came_along_and_nothing_of_it_is_kept(client: FlaskClient, stream: bool) -> None:
    response = respond(client, items(7), stream=stream)
    whole = events_of(response.data)[-1]["response"] if stream else response.json
    assert (whole["history_trimmed"], whole["store"]) == (True, False)
    assert whole["rag_assistant"]["history"]["turns_dropped"] == 2
    assert response.headers["X-History-Turns-Dropped"] == "2"
    assert client.get("/api/conversations").json["conversations"] == []
    assert client.get(f"{RESPONSES}/{whole['id']}").status_code == 404
    assert respond(client, "Alone?", store=False).json["store"] is False
    assert client.get("/api/conversations").json["conversations"] == []


def test_truncation_disabled_refuses_what_would_leave_turns_out(client: FlaskClient) -> None:
    refused = respond(client, items(7), truncation="disabled")
    assert (refused.status_code, refused.json["error"]["code"]) == (400, "overflow_decision_needed")
    assert respond(client, items(4), truncation="disabled").json["truncation"] == "disabled"
    assert respond(client, items(7), truncation="auto").json["history_trimmed"] is True


def test_the_sdk_sends_its_history_along_and_says_what_happens_to_what_is_too_much(sdk: openai.OpenAI) -> None:
    given: Any = items(7)
    answer: Any = sdk.responses.create(model=MODEL, input=given, store=False, truncation="auto")
    assert (answer.truncation, answer.history_trimmed) == ("auto", True)
    assert answer.rag_assistant["history"]["turns_dropped"] == 2
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(answer.id)
    with pytest.raises(openai.BadRequestError) as raised:
        sdk.responses.create(model=MODEL, input=given, truncation="disabled")
    assert raised.value.code == "overflow_decision_needed"


def test_the_sdk_reads_every_event_of_a_stream(sdk: openai.OpenAI, stub: StubModel) -> None:
    stub.default = Reply("Eins zwei drei.")
    with sdk.responses.stream(model=MODEL, input="Why?") as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_response().output_text == "Eins zwei drei."
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_the_events_of_a_stream_are_numbered(client: FlaskClient) -> None:
    events = events_of(respond(client, "Why?", stream=True).data)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_response_that_breaks_off_ends_as_failed(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("One two three four.", break_at=2)
    last = events_of(respond(client, "Why?", stream=True).data)[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"]["code"] == "answer_interrupted"


@pytest.mark.parametrize(("ended", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_a_response_that_was_ended_is_incomplete(client: FlaskClient, stub: StubModel, ended: str, reason: str) -> None:
    stub.default = Reply("One two", finish_reason=ended)
    answer = respond(client, "Why?", max_output_tokens=1).json
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert answer["max_output_tokens"] == 1
    assert len(answer["rag_assistant"]["notes"]) == 1
    assert events_of(respond(client, "Why?", stream=True).data)[-1]["type"] == "response.incomplete"


def test_a_running_response_can_be_cancelled(sdk: openai.OpenAI, client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("One two three four.", hang_at=2)
    stream = sdk.responses.create(model=MODEL, input="Why?", stream=True)
    created = next(iter(stream))
    assert created.type == "response.created"
    until(lambda: client.get("/api/turns/1").json["answer"])
    cancelled = sdk.responses.cancel(created.response.id)
    assert cancelled.status == "cancelled"
    assert list(stream)[-1].type == "response.incomplete"


def test_a_deleted_response_is_erased(sdk: openai.OpenAI, client: FlaskClient) -> None:
    made = sdk.responses.create(model=MODEL, input="Why?")
    sdk.responses.delete(made.id)
    assert client.get("/api/turns/1").json["status"] == "erased"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([{"role": "x", "content": "a"}], 'input[0].role is "x"; input must be text, or a list'),
        ([{"role": "user", "content": "a"}, 5], "input[1] is 5; input must be text, or a list"),
        (5, "input is 5; it must be text, or a list"),
    ],
)
def test_what_is_wrong_in_an_input_is_named(client: FlaskClient, sent: object, said: str) -> None:
    response = respond(client, sent)
    assert (response.status_code, said in response.json["error"]["message"]) == (400, True), response.text


def test_a_deleted_response_is_gone_to_whoever_names_it(sdk: openai.OpenAI) -> None:
    made = sdk.responses.create(model=MODEL, input="Why?")
    sdk.responses.delete(made.id)
    for use in (
        lambda: sdk.responses.retrieve(made.id),
        lambda: sdk.responses.delete(made.id),
        lambda: sdk.responses.input_items.list(made.id),
        lambda: sdk.responses.create(model=MODEL, input="And?", previous_response_id=made.id),
    ):
        with pytest.raises(openai.NotFoundError, match=f'no stored response "{made.id}"'):
            use()


def test_what_was_compacted_goes_on_in_a_summarys_place(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([Reply("They counted questions."), Reply("Yes.")])
    body = {"model": MODEL, "input": items(6, more=LONG)}
    compacted = client.post(f"{RESPONSES}/compact", json=body)
    assert compacted.status_code == 200, compacted.text
    assert compacted.json["object"] == "response.compaction"
    item, *kept = compacted.json["output"]
    assert item["type"] == "compaction"
    assert "counted questions" in compacted.json["rag_assistant"]["summary"]
    assert kept[-1]["content"][0]["text"] == "And now?"
    answer = respond(client, compacted.json["output"]).json
    history = answer["rag_assistant"]["history"]
    assert history["summary_sent"] is True
    assert history["left_out"]["summarised"] == compacted.json["rag_assistant"]["turns"]
    assert answer["history_trimmed"] is False
    assert any("counted questions" in (m["content"] or "") for m in stub.requests[-1].messages)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # The SDK has no type for a question in an output.
def test_the_sdk_compacts_and_hands_back_what_it_got(sdk: openai.OpenAI, stub: StubModel) -> None:
    stub.replies.extend([Reply("They counted questions."), Reply("Yes.")])
    given: Any = items(6, more=LONG)
    compacted = sdk.responses.compact(model=MODEL, input=given)
    assert (compacted.object, compacted.output[0].type) == ("response.compaction", "compaction")
    assert compacted.usage.output_tokens < compacted.usage.input_tokens
    after: Any = compacted.output
    answer: Any = sdk.responses.create(model=MODEL, input=after)
    assert answer.output_text == "Yes."
    assert answer.rag_assistant["history"]["summary_sent"] is True


@pytest.mark.long
def test_a_stored_history_is_compacted_where_it_is(client: FlaskClient, stub: StubModel) -> None:
    response_id = None
    for n in range(6):
        fields: dict[str, Any] = {"previous_response_id": response_id} if response_id else {}
        response_id = respond(client, f"Question {n}.{LONG}", **fields).json["id"]
    stub.replies.append(Reply("They counted questions."))
    compacted = client.post(f"{RESPONSES}/compact", json={"model": MODEL, "previous_response_id": response_id})
    assert compacted.json["output"][0]["type"] == "compaction"
    assert "counted" in client.get("/api/conversations/1/preview").json["summary"]["text"]
    again = respond(client, "And?", previous_response_id=response_id).json
    assert again["rag_assistant"]["history"]["summary_sent"] is True


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"text": {"format": {"type": "grammar"}}}, "text", "json_schema"),
    ({"background": True}, "background", "not supported"),
    ({"input": [{"type": "computer_call_output"}]}, "input[0]", "computer_call_output"),
    ({"input": [{"type": "compaction", "encrypted_content": "e30="}]}, "input[0]", "not made by this server"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]", "has no image_url"),
    ({"truncation": "middle"}, "truncation", "auto, disabled"),
    ({"store": False, "metadata": {"conversation_id": "new"}}, "store", "continues a stored conversation"),
]


@pytest.mark.parametrize(("fields", "param", "said"), REFUSED)
def test_what_cannot_be_done_is_refused_by_name(
    empty: FlaskClient, fields: dict[str, Any], param: str, said: str
) -> None:
    response = empty.post(RESPONSES, json={"model": MODEL, "input": "Why?"} | fields)
    assert response.status_code == 400
    assert response.json["error"]["param"] == param
    assert said in response.json["error"]["message"]


def test_a_response_that_is_not_there_is_not_found(client: FlaskClient) -> None:
    for name in ("resp_9", "resp_x1", "resp_99999999999", "9"):
        found = client.get(f"{RESPONSES}/{name}")
        assert (found.status_code, found.json["error"]["code"]) == (404, "response_not_found")
        assert respond(client, "Why?", previous_response_id=name).status_code == 404
