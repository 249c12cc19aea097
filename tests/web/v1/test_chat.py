"""Chat completions: the window applies to what a client sends along, and nothing of that is kept."""

import json
import threading
from typing import Any

import openai
import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until, upload

CHAT = "/v1/chat/completions"
MODEL = "rag-assistant"


def talk(turns: int, question: str = "And now?") -> list[Any]:
    """Return the messages of a chat with some turns, and a question."""
    messages: list[Any] = []
    for n in range(1, turns + 1):
        messages += [{"role": "user", "content": f"Question {n}"}, {"role": "assistant", "content": f"Answer {n}"}]
    return [*messages, {"role": "user", "content": question}]


def chat(client: FlaskClient, messages: list[Any], **fields: Any) -> Any:
    headers = fields.pop("headers", {})
    return client.post(CHAT, json={"model": MODEL, "messages": messages} | fields, headers=headers)


def chunks_of(body: bytes) -> list[Any]:
    """Return the chunks of a stream; the last one is the word that it is done."""
    found = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line.startswith(b"data: ")]
    return [one.decode() if one == b"[DONE]" else json.loads(one) for one in found]


def test_the_sdk_gets_an_answer_with_its_sources_as_annotations(
    sdk: openai.OpenAI, client: FlaskClient, stub: StubModel
) -> None:
    document = upload(client, "The lamp of the lighthouse burns rapeseed oil.", "lamp.txt")
    stub.replies.append(Reply("Rapeseed oil [1].", usage={"prompt_tokens": 90, "completion_tokens": 4}))
    answer = sdk.chat.completions.create(model=MODEL, messages=talk(0, "What does the lamp of the lighthouse burn?"))
    message = answer.choices[0].message
    assert (message.content, answer.choices[0].finish_reason) == ("Rapeseed oil [1].", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (90, 94)
    assert message.annotations is not None
    cited = message.annotations[0].url_citation
    assert message.content[cited.start_index : cited.end_index] == "[1]"
    assert cited.title == "lamp.txt"
    assert f"/documents/{document['document_id']}?start=0" in cited.url
    assert client.get(cited.url.partition("/documents")[1] + cited.url.partition("/documents")[2]).status_code == 200
    assert answer.history_trimmed is False


def test_the_sdk_streams_the_same(sdk: openai.OpenAI, stub: StubModel) -> None:
    stub.default = Reply("Eins zwei drei.", usage={"prompt_tokens": 9, "completion_tokens": 3})
    asked: dict[str, Any] = {"model": MODEL, "messages": talk(0), "stream_options": {"include_usage": True}}
    chunks = list(sdk.chat.completions.create(**asked, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "Eins zwei drei."
    assert [bool(one.choices) for one in chunks] == [True] * (len(chunks) - 1) + [False]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 12
    with sdk.chat.completions.stream(**asked) as stream:
        assert stream.get_final_completion().choices[0].message.content == "Eins zwei drei."


@pytest.mark.long
def test_every_chunk_has_choices_where_no_usage_is_asked_for(sdk: openai.OpenAI, client: FlaskClient) -> None:
    assert all(one.choices for one in sdk.chat.completions.create(model=MODEL, messages=talk(0), stream=True))
    *chunks, last = chunks_of(chat(client, talk(0), stream=True).data)
    assert last == "[DONE]"
    assert all(one["choices"] for one in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert all("usage" not in one for one in chunks)


@pytest.mark.parametrize(
    ("ended", "reason"),
    [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop"), (None, "stop")],
)
def test_why_an_answer_ended_is_passed_on(client: FlaskClient, stub: StubModel, ended: str | None, reason: str) -> None:
    stub.default = Reply("Geese, and", finish_reason=ended)
    whole = chat(client, talk(0)).json
    *_, last, _ = chunks_of(chat(client, talk(0), stream=True).data)
    for said in (whole, last):
        assert said["choices"][0]["finish_reason"] == reason
        assert bool(said["rag_assistant"]["notes"]) is (ended != "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_the_window_applies_to_the_messages_that_the_client_sends(
    client: FlaskClient, stub: StubModel, stream: bool
) -> None:
    response = chat(client, talk(7), stream=stream)
    last = chunks_of(response.data)[-2] if stream else response.json
    assert last["history_trimmed"] is True
    history = last["rag_assistant"]["history"]
    assert (history["turns_total"], history["turns_kept"], history["turns_dropped"]) == (7, 5, 2)
    assert last["rag_assistant"]["notice"] == "[History trimmed to last 5 turns]"
    assert response.headers["X-History-Trimmed"] == "true"
    assert (response.headers["X-History-Turns-Kept"], response.headers["X-History-Turns-Dropped"]) == ("5", "2")
    sent = stub.requests[-1].messages
    assert sent[1] == {"role": "system", "content": "[History trimmed to last 5 turns]"}
    assert [m["content"] for m in sent[2:4]] == ["Question 3", "Answer 3"]
    assert sent[-1]["content"].endswith("And now?")


def test_nothing_is_stored_unless_a_conversation_is_named(client: FlaskClient) -> None:
    for stream in (False, True):
        _ = chat(client, talk(3), stream=stream).data
    assert client.get("/api/conversations").json["conversations"] == []
    assert client.get("/api/turns/1").status_code == 404


def test_a_named_conversation_is_the_history(client: FlaskClient, stub: StubModel) -> None:
    first = chat(client, talk(0, "First?"), headers={"X-Conversation-Id": "new"})
    conversation = first.headers["X-Conversation-Id"]
    second = chat(client, talk(4, "Second?"), metadata={"conversation_id": conversation})
    assert second.headers["X-Conversation-Id"] == conversation
    assert second.json["rag_assistant"]["conversation_id"] == int(conversation)
    assert [m["content"] for m in stub.requests[-1].messages[1:3]] == ["First?", "An answer."]
    turns = client.get(f"/api/conversations/{conversation}/turns").json["turns"]
    assert [one["question"] for one in turns] == ["First?", "Second?"]


def test_the_clients_instructions_stand_behind_ours(client: FlaskClient, stub: StubModel) -> None:
    chat(client, [{"role": "system", "content": "Speak like a sailor."}, *talk(1)])
    sent = stub.requests[-1].messages
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert sent[0]["content"].startswith("You answer questions about")
    assert sent[0]["content"].endswith("\n\nSpeak like a sailor.")


def test_each_way_of_answering_is_a_model(sdk: openai.OpenAI, client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lamp of the lighthouse burns rapeseed oil.", "lamp.txt")
    names = [one.id for one in sdk.models.list()]
    assert names == ["rag-assistant", "rag-assistant-tools", "rag-assistant-plain"]
    bodies = {}
    for name in names:
        sdk.chat.completions.create(model=name, messages=talk(0, "What does the lamp burn?"), temperature=0.5)
        bodies[name] = stub.requests[-1].body
    sent = {name: body["messages"][-1]["content"] for name, body in bodies.items()}
    assert "<passages>" in sent["rag-assistant"]
    assert sent["rag-assistant-plain"] == "What does the lamp burn?"
    assert "passages" not in bodies["rag-assistant-plain"]["messages"][0]["content"]
    assert {body["temperature"] for body in bodies.values()} == {0.5}
    assert sdk.models.retrieve("rag-assistant-plain").owned_by == "rag-assistant"


def test_the_model_with_tools_is_not_offered_what_asks_a_person(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lamp burns oil.", "lamp.txt")
    stub.replies.append(Reply(tool_calls=[{"id": "a", "name": "search_documents", "arguments": {"query": "lamp"}}]))
    stub.replies.append(Reply("Oil [1]."))
    answer = chat(client, talk(0, "What does it burn?"), model="rag-assistant-tools").json
    assert answer["choices"][0]["message"]["content"] == "Oil [1]."
    offered = {tool["function"]["name"] for tool in stub.requests[0].body["tools"]}
    assert offered == {"search_documents", "read_document", "list_documents"}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"n": 2}, "n", "one answer"),
    ({"logprobs": True}, "logprobs", "not supported"),
    ({"max_history_turn": 3}, "max_history_turn", 'Did you mean "max_history_turns"?'),
    ({"temperature": 7}, "temperature", "a number from 0 to 2"),
    ({"messages": talk(1)[:2]}, "None", "The last message must be the user's"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
     "messages[0].content", "switched off for this model"),
    ({"metadata": {"conversation_id": "seven"}}, "metadata.conversation_id", 'metadata.conversation_id is "seven"'),
    ({"metadata": {"colour": 7}}, "metadata", "metadata.colour is 7; metadata must be an object of up to 16 texts"),
    ({"stream_options": {"include_usage": 7}}, "stream_options", "stream_options.include_usage is 7; stream_options"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param", "said"), REFUSED)
def test_what_cannot_be_done_is_refused_by_name(
    empty: FlaskClient, fields: dict[str, Any], param: str, said: str
) -> None:
    response = empty.post(CHAT, json={"model": MODEL, "messages": talk(0)} | fields)
    error = response.json["error"]
    assert response.status_code == 400
    assert (error["type"], str(error["param"])) == ("invalid_request_error", param)
    assert said in error["message"]


def test_hints_are_taken_and_named_as_ignored(client: FlaskClient, stub: StubModel) -> None:
    fields = {"top_p": 0.9, "seed": 1, "user": "me", "n": 1, "tools": [], "tool_choice": "auto", "logprobs": False}
    response = chat(client, talk(0), **fields, response_format={"type": "text"}, parallel_tool_calls=None)
    assert response.status_code == 200
    assert response.json["rag_assistant"]["ignored"] == ["user"]
    assert {name: stub.requests[-1].body[name] for name in ("top_p", "seed")} == {"top_p": 0.9, "seed": 1}


def test_how_an_answer_is_drawn_is_passed_on(client: FlaskClient, stub: StubModel) -> None:
    fields = {"frequency_penalty": 0.5, "presence_penalty": -1, "reasoning_effort": "low", "seed": 7, "top_p": 0.5}
    assert chat(client, talk(0), **fields, max_tokens=-1).json["rag_assistant"]["ignored"] == []
    assert {name: stub.requests[-1].body[name] for name in fields} == fields
    sent = {"model": MODEL, "input": "Why?", "top_p": 0.5, "reasoning": {"effort": "high"}}
    assert client.post("/v1/responses", json=sent).json["rag_assistant"]["ignored"] == []
    assert (stub.requests[-1].body["top_p"], stub.requests[-1].body["reasoning_effort"]) == (0.5, "high")


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_chat_may_begin_with_the_assistants_greeting_which_is_named(
    client: FlaskClient, stub: StubModel, earlier: int
) -> None:
    messages = [{"role": "assistant", "content": "How can I help?"}, *talk(earlier, "What burns?")]
    assert chat(client, messages).json["rag_assistant"]["ignored"] == ["messages[0]"]
    assert stub.requests[-1].messages[1]["role"] == "user"
    response = client.post("/v1/responses", json={"model": MODEL, "input": messages})
    assert response.json["rag_assistant"]["ignored"] == ["input[0]"]
    assert chat(client, messages[:1]).status_code == 400


def test_the_limit_of_a_model_is_listed_before_the_first_question(client: FlaskClient, stub: StubModel) -> None:
    stub.models = [{"id": "stub-model", "object": "model", "max_model_len": 32_768}]
    assert {one["context_length"] for one in client.get("/v1/models").json["data"]} == {32_768}


@pytest.mark.parametrize(
    "name", ["", "/", "a//b", "..", "%2F", "%00", "%ff", "rag-assistant/", "x" * 5000, "\u00e9 \U0001f600"]
)
def test_an_odd_id_of_a_model_is_not_found(client: FlaskClient, name: str) -> None:
    answer = client.get(f"/v1/models/{name}", follow_redirects=True)
    assert (answer.status_code, answer.json["error"]["type"]) == (404, "invalid_request_error")


def test_an_unknown_model_is_not_found(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="gpt-4o") as raised:
        sdk.chat.completions.create(model="gpt-4o", messages=talk(0))
    assert raised.value.code == "model_not_found"


def test_turns_are_not_left_out_where_a_person_wants_to_decide(client: FlaskClient) -> None:
    response = chat(client, talk(7), on_overflow="ask")
    assert response.status_code == 400
    assert response.json["error"]["code"] == "overflow_decision_needed"
    assert set(response.json["error"]["details"]["options"]) == {"trim", "compact", "reset", "continue"}


def test_every_decision_holds_for_what_is_sent_along(client: FlaskClient, stub: StubModel) -> None:
    everything = chat(client, talk(7), on_overflow="continue").json
    assert everything["rag_assistant"]["history"]["turns_kept"] == 7
    assert everything["history_trimmed"] is False
    afresh = chat(client, talk(7), on_overflow="reset").json
    assert afresh["rag_assistant"]["history"]["turns_kept"] == 0
    assert afresh["history_trimmed"] is True
    long = [{**m, "content": m["content"] + " It was told at some length." * 9} for m in talk(7)]
    stub.replies.extend([Reply("They counted questions."), Reply("Summarised.")])
    summarised = chat(client, long, on_overflow="compact").json
    assert summarised["choices"][0]["message"]["content"] == "Summarised."
    assert summarised["rag_assistant"]["history"]["left_out"]["summarised"] >= 2
    assert summarised["rag_assistant"]["history"]["summary_sent"] is True


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_fails_before_its_first_word_is_an_error(
    client: FlaskClient, stub: StubModel, stream: bool
) -> None:
    stub.default = Reply(status=401)
    response = chat(client, talk(0), stream=stream)
    if stream:
        error = chunks_of(response.data)[-1]["error"]
    else:
        assert response.status_code == 502
        error = response.json["error"]
    assert error["code"] == "model_refused"
    assert error["type"] == "server_error"
    assert "saved" not in error["message"]


def test_a_stream_that_breaks_off_says_so_and_is_not_done(sdk: openai.OpenAI, stub: StubModel) -> None:
    stub.default = Reply("One two three four.", break_at=2)
    with pytest.raises(openai.APIError):
        list(sdk.chat.completions.create(model=MODEL, messages=talk(0), stream=True))


def test_an_answer_that_is_not_stored_ends_with_its_reader(
    sdk: openai.OpenAI, services: Services, stub: StubModel
) -> None:
    stub.default = Reply("One two three four.", hang_at=2)
    stream = sdk.chat.completions.create(model=MODEL, messages=talk(0), stream=True)
    next(iter(stream))
    assert len(services.assistant._live.all()) == 1
    stream.close()
    until(lambda: not services.assistant._live.all(), 20)


def test_an_answer_that_is_stored_goes_on_without_its_reader(
    sdk: openai.OpenAI, client: FlaskClient, stub: StubModel
) -> None:
    stub.default = Reply("One two three four.", seconds_between=0.1)
    stream = sdk.chat.completions.create(
        model=MODEL, messages=talk(0), stream=True, metadata={"conversation_id": "new"}
    )
    next(iter(stream))
    stream.close()
    until(lambda: client.get("/api/turns/1").json["status"] == "completed", 20)
    assert client.get("/api/turns/1").json["answer"] == "One two three four."


def test_as_many_answers_run_at_once_as_are_carried(app: Flask, client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("One two.", hang_at=1)
    streams = [chat(app.test_client(), talk(0), stream=True) for _ in range(8)]
    response = chat(client, talk(0))
    assert response.status_code == 503
    assert response.json["error"]["code"] == "overloaded"
    assert "Retry-After" in response.headers
    for stream in streams:
        stream.close()


def test_a_retry_of_a_stored_question_is_answered_as_it_was_asked(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lamp of the lighthouse burns rapeseed oil.", "lamp.txt")
    stub.replies.append(Reply(status=401))
    fields: dict[str, Any] = {"model": "rag-assistant-plain", "metadata": {"conversation_id": "new"}, "max_tokens": 77}
    assert chat(client, talk(0, "What does the lamp burn?"), **fields).status_code == 502
    client.post("/api/turns/1/retry")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    assert stub.requests[-1].messages[-1]["content"] == "What does the lamp burn?"
    assert stub.requests[-1].body["max_tokens"] == 77


def test_embeddings_are_those_of_the_search(sdk: openai.OpenAI, client: FlaskClient) -> None:
    made = sdk.embeddings.create(model="rag-assistant-embeddings", input=["A lamp.", "A ferry."])
    plain = client.post("/v1/embeddings", json={"model": "rag-assistant-embeddings", "input": "A lamp."}).json
    assert len(made.data) == 2
    assert made.data[0].embedding == pytest.approx(plain["data"][0]["embedding"])
    assert sum(x * x for x in made.data[1].embedding) == pytest.approx(1.0, abs=1e-4)
    refused = client.post("/v1/embeddings", json={"model": "rag-assistant-embeddings", "input": "A", "dimensions": 1})
    assert (refused.status_code, refused.json["error"]["param"]) == (400, "dimensions")
    assert client.post("/v1/embeddings", json={"model": "other", "input": "A"}).status_code == 404


def test_asked_over_the_api_and_over_openais_protocol_a_model_is_sent_the_same(
    client: FlaskClient, stub: StubModel
) -> None:
    conversation = None
    for n in range(1, 8):
        fields: dict[str, Any] = {"conversation_id": conversation} if conversation else {}
        conversation = ask(client, f"Question {n}", **fields)["conversation_id"]
    ask(client, "And now?", conversation_id=conversation)
    messages = [
        {**m, "content": "An answer."} if m["role"] == "assistant" else m for m in talk(7)
    ]  # As the stub answered.
    chat(client, messages)
    assert stub.requests[-1].messages == stub.requests[-2].messages


@pytest.mark.long
def test_many_ask_at_once(client: FlaskClient, app: Flask) -> None:
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(chat(app.test_client(), talk(1)).status_code)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 6
