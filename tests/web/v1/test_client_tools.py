"""Clients with tools, schemas and stop words of their own: passed on, and answered as they expect."""

import json
from typing import Any

import openai
import pytest
from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import upload
from tests.web.v1.test_chat import CHAT, MODEL, chat, chunks_of, talk
from tests.web.v1.test_responses import RESPONSES, respond

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "weather", "description": "The weather.", "parameters": SCHEMA, "strict": True}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
FLAT: Any = [{"type": "function", **FUNCTION}]
CALLS = [{"id": f"call_{n}", "name": "weather", "arguments": {"city": city}} for n, city in enumerate(("Oslo", "Rome"))]


def called(*ids: str) -> dict[str, Any]:
    """Return a message that calls a tool under some ids."""
    calls = [{"id": one, "type": "function", "function": {"name": "weather", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, text: str = "Rain.") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def test_the_sdk_calls_its_own_tools_and_gets_an_answer_from_their_results(
    sdk: openai.OpenAI, client: FlaskClient, stub: StubModel
) -> None:
    upload(client, "The lamp burns rapeseed oil.", "lamp.txt")
    stub.replies.extend([Reply(tool_calls=CALLS), Reply("Rain in both.")])
    messages: list[Any] = talk(1, "How is the weather at the lamp?")
    asked: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": True}
    first = sdk.chat.completions.create(messages=messages, **asked)
    (choice,) = first.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    calls: list[Any] = choice.message.tool_calls or []
    assert [json.loads(one.function.arguments) for one in calls] == [{"city": "Oslo"}, {"city": "Rome"}]
    sent = stub.requests[-1].body
    assert (sent["tools"], sent["tool_choice"], sent["parallel_tool_calls"]) == (TOOLS, "required", True)
    messages += [choice.message, *(result(one.id) for one in calls)]
    second = sdk.chat.completions.create(messages=messages, **asked)
    assert second.choices[0].message.content == "Rain in both."
    roles = [one["role"] for one in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "tool"]
    # Passages stay beside the question, so that the beginning of the request is the same.
    assert stub.requests[-1].messages[:4] == stub.requests[-2].messages
    assert "<passages>" in stub.requests[-1].messages[3]["content"]


def test_a_stream_ends_with_the_calls(sdk: openai.OpenAI, stub: StubModel) -> None:
    stub.default = Reply(tool_calls=CALLS)
    asked: dict[str, Any] = {"model": MODEL, "messages": talk(0), "tools": TOOLS}
    with sdk.chat.completions.stream(**asked) as stream:
        choice: Any = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [(one.id, one.function.name) for one in choice.message.tool_calls] == [
        ("call_0", "weather"),
        ("call_1", "weather"),
    ]


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_responses_call_tools_in_the_form_of_responses(sdk: openai.OpenAI, stub: StubModel, stream: bool) -> None:
    stub.replies.extend([Reply(tool_calls=CALLS[:1]), Reply("Rain.")])
    given: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    asked: dict[str, Any] = {"model": MODEL, "tools": FLAT, "tool_choice": {"type": "function", "name": "weather"}}
    if stream:
        with sdk.responses.stream(input=given, **asked) as events:
            kinds = [event.type for event in events]
            first: Any = events.get_final_response()
        assert kinds[2:6] == [
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
        ]
    else:
        first = sdk.responses.create(input=given, **asked)
    (call,) = first.output
    assert (call.type, call.call_id, json.loads(call.arguments)) == ("function_call", "call_0", {"city": "Oslo"})
    assert (first.store, first.tools[0].name) == (False, "weather")
    sent = stub.requests[-1].body
    assert (sent["tools"], sent["tool_choice"]["function"]) == (TOOLS, {"name": "weather"})
    given += [call.model_dump(), {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}]
    assert sdk.responses.create(input=given, **asked).output_text == "Rain."
    assert [one["role"] for one in stub.requests[-1].messages[1:]] == ["user", "assistant", "tool"]


def test_a_schema_and_stop_words_go_to_the_endpoint(client: FlaskClient, stub: StubModel) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
    stub.default = Reply('{"city": "Oslo"}')
    answer = chat(client, talk(0), response_format=form, stop=["END"]).json
    assert answer["choices"][0]["message"]["content"] == '{"city": "Oslo"}'
    assert answer["rag_assistant"]["ignored"] == []
    assert (stub.requests[-1].body["response_format"], stub.requests[-1].body["stop"]) == (form, ["END"])
    flat = {"type": "json_schema", "name": "weather", "schema": SCHEMA, "strict": True}
    whole = respond(client, "Where?", text={"format": flat}).json
    assert (whole["text"]["format"], whole["store"]) == (flat, True)
    assert stub.requests[-1].body["response_format"] == form


def test_only_the_last_iterations_of_a_running_turn_are_sent_and_the_others_are_told(
    client: FlaskClient, stub: StubModel
) -> None:
    messages = [*talk(0, "Where?")]
    for n in range(5):
        messages += [called(f"a{n}"), result(f"a{n}", f"Result {n}")]
    told = chat(client, messages, tools=TOOLS).json["rag_assistant"]
    assert [one["content"] for one in stub.requests[-1].messages if one["role"] == "tool"] == ["Result 3", "Result 4"]
    assert told["history"]["iterations_dropped"] == 3
    edits = {"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 4}}]}
    told = chat(client, messages, tools=TOOLS, context_management=edits).json["rag_assistant"]
    assert len([one for one in stub.requests[-1].messages if one["role"] == "tool"]) == 4
    applied = [{"type": "clear_tool_uses_20250919", "cleared_iterations": 1}]
    assert told["context_management"] == {"applied_edits": applied}


def test_what_the_user_says_while_tools_run_keeps_its_place(client: FlaskClient, stub: StubModel) -> None:
    said = {"role": "user", "content": "And in Rome?"}
    chat(client, [*talk(0, "Where?"), called("a"), result("a"), said])
    assert [one["content"] for one in stub.requests[-1].messages[1:]] == ["Where?", None, "Rain.", "And in Rome?"]


def test_ids_that_repeat_belong_to_their_own_calls_and_a_result_without_a_call_is_named(
    client: FlaskClient, stub: StubModel
) -> None:
    twice = [called("a", "a"), result("a", "1"), result("a", "2"), called("a"), result("a", "3")]
    told = chat(client, [*talk(0), result("lost"), *twice]).json["rag_assistant"]
    assert told["ignored"] == ["messages[1]"]
    assert [one["content"] for one in stub.requests[-1].messages[2:]] == [None, "1", "2", None, "3"]
    thought = [{"role": "user", "content": "Why?"}, {"type": "reasoning"}]
    assert respond(client, thought).json["rag_assistant"]["ignored"] == ["input[1]"]


@pytest.mark.long
def test_compaction_above_a_threshold_is_carried_out_and_told(client: FlaskClient, stub: StubModel) -> None:
    long = [{**one, "content": one["content"] + " It was told at some length." * 40} for one in talk(4)]
    rules = [{"type": "compaction", "compact_threshold": 1500}]
    stub.replies.extend([Reply("They counted."), Reply("Summarised.")])
    answer = chat(client, long, context_management=rules).json
    (applied,) = answer["rag_assistant"]["context_management"]["applied_edits"]
    assert (applied["type"], applied["summarised_turns"] >= 1) == ("compaction", True)
    short = respond(client, "Why?", context_management=rules).json
    assert short["rag_assistant"]["context_management"] == {"applied_edits": []}


def test_passages_are_left_out_where_the_client_says_so(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lamp burns rapeseed oil.", "lamp.txt")
    chat(client, talk(0, "What does the lamp burn?"), rag_assistant={"retrieval": "off"})
    assert stub.requests[-1].messages[-1]["content"] == "What does the lamp burn?"
    chat(client, talk(0, "What does the lamp burn?"), model="rag-assistant-tools", tools=TOOLS)
    assert "<passages>" in stub.requests[-1].messages[-1]["content"]
    assert stub.requests[-1].body["tools"] == TOOLS


@pytest.mark.long
def test_what_gateways_add_is_ignored_by_name(client: FlaskClient) -> None:
    fields = "chat_template_kwargs enable_thinking think keep_alive options provider transforms plugins"
    more = {name: {"x": 1} for name in [*fields.split(), "web_search_options"]}
    told = chat(client, talk(0), **more, stream_options={"include_obfuscation": False}).json["rag_assistant"]
    assert told["ignored"] == sorted(more)
    trigger = {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 1}}
    told = chat(client, talk(0), tool_choice="required", context_management=[trigger]).json["rag_assistant"]
    assert told["ignored"] == ["context_management.clear_tool_uses_20250919.trigger", "tool_choice"]


def test_tools_that_another_server_carries_out_are_left_out_and_named(client: FlaskClient, stub: StubModel) -> None:
    tools = [{"type": "web_search"}, {"type": "namespace", "name": "a", "tools": []}]
    sent = {"model": MODEL, "input": "Why?", "tools": [tools[0], FLAT[0], tools[1]], "client_metadata": {"a": "b"}}
    told = client.post(RESPONSES, json=sent).json["rag_assistant"]
    assert told["ignored"] == ["client_metadata", "tools[0]", "tools[2]"]
    assert [one["function"]["name"] for one in stub.requests[-1].body["tools"]] == ["weather"]


def test_thoughts_are_passed_on_while_tools_run_and_not_later(client: FlaskClient, stub: StubModel) -> None:
    function = {"name": "weather", "arguments": "{}"}
    call = {
        "id": "c",
        "type": "function",
        "function": function,
        "extra_content": {"google": {"thought_signature": "s"}},
    }
    thinking = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm."}
    messages = [*talk(0), thinking, {"role": "tool", "tool_call_id": "c", "content": "Rain."}]
    assert chat(client, messages, tools=TOOLS).status_code == 200
    assert [one for one in stub.requests[-1].messages if one["role"] == "assistant"] == [thinking]
    later = [*messages, {"role": "assistant", "content": "Rain."}, {"role": "user", "content": "Why?"}]
    assert chat(client, later, tools=TOOLS).status_code == 200
    assert "reasoning_content" not in str(stub.requests[-1].messages)
    assert "thought_signature" not in str(stub.requests[-1].messages)


@pytest.mark.parametrize("stream", [False, True])
def test_functions_as_before_there_were_tools(sdk: openai.OpenAI, stub: StubModel, stream: bool) -> None:
    stub.replies.extend([Reply(tool_calls=CALLS[:1]), Reply("Rain.")])
    functions: Any = [FUNCTION]
    asked: dict[str, Any] = {"model": MODEL, "functions": functions, "function_call": {"name": "weather"}}
    messages = talk(1, "How is the weather?")
    if stream:
        chunks = [one.choices[0] for one in sdk.chat.completions.create(messages=messages, stream=True, **asked)]
        call: Any = next(one.delta.function_call for one in chunks if one.delta.function_call)
        reason = chunks[-1].finish_reason
    else:
        choice = sdk.chat.completions.create(messages=messages, **asked).choices[0]
        call, reason = choice.message.function_call, choice.finish_reason
    assert (call.name, json.loads(call.arguments), reason) == ("weather", {"city": "Oslo"}, "function_call")
    sent = stub.requests[-1].body
    assert (sent["tools"], sent["parallel_tool_calls"]) == (TOOLS, False)
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    spoken = {"role": "assistant", "content": None, "function_call": call.model_dump()}
    messages += [spoken, {"role": "function", "name": "weather", "content": "Rain."}]
    answer = sdk.chat.completions.create(model=MODEL, messages=messages, functions=functions)
    assert answer.choices[0].message.content == "Rain."
    roles = [one["role"] for one in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool"]


THOUGHTFUL = Reply(
    tool_calls=[CALLS[0] | {"extra_content": {"google": {"thought_signature": "s1"}}}],
    thoughts=[{"reasoning_content": "Hm."}],
)


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_gets_the_thoughts_that_its_provider_wants_back(
    sdk: openai.OpenAI, stub: StubModel, stream: bool
) -> None:
    stub.replies.append(THOUGHTFUL)
    asked: dict[str, Any] = {"model": MODEL, "messages": talk(0), "tools": TOOLS}
    if stream:
        deltas = [one.choices[0].delta for one in sdk.chat.completions.create(stream=True, **asked)]
        message: Any = next(one for one in deltas if one.tool_calls)
    else:
        message = sdk.chat.completions.create(**asked).choices[0].message
    assert message.reasoning_content == "Hm."
    assert message.tool_calls[0].extra_content == {"google": {"thought_signature": "s1"}}


@pytest.mark.parametrize("stream", [False, True])
def test_responses_carry_thoughts_in_an_item_that_only_we_can_read(
    sdk: openai.OpenAI, client: FlaskClient, stub: StubModel, stream: bool
) -> None:
    stub.replies.append(THOUGHTFUL)
    given: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    asked: dict[str, Any] = {"model": MODEL, "tools": FLAT, "input": given}
    if stream:
        with sdk.responses.stream(**asked) as events:
            first: Any = events.get_final_response()
    else:
        first = sdk.responses.create(**asked)
    thought, call = first.output
    assert (thought.type, call.type) == ("reasoning", "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}
    running = [*given, thought.model_dump(exclude_none=True), call.model_dump(), output]
    told = respond(client, running, tools=FLAT).json["rag_assistant"]
    assert "input[1]" not in told["ignored"]
    (message,) = (one for one in stub.requests[-1].messages if one["role"] == "assistant")
    assert message["reasoning_content"] == "Hm."
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s1"}}
    later = [*running, {"role": "assistant", "content": "Rain."}, {"role": "user", "content": "Why?"}]
    assert "input[1]" in respond(client, later, tools=FLAT).json["rag_assistant"]["ignored"]
    assert "Hm." not in json.dumps(stub.requests[-1].messages)
    foreign = [
        *given,
        thought.model_dump(exclude_none=True) | {"encrypted_content": "gAAAA"},
        call.model_dump(),
        output,
    ]
    assert "input[1]" in respond(client, foreign, tools=FLAT).json["rag_assistant"]["ignored"]


def test_what_the_endpoint_refuses_is_told_in_its_own_words(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=400, body=b'{"error": {"message": "Invalid schema for function weather."}}')
    response = chat(client, talk(0), tools=TOOLS)
    assert response.status_code == 502
    assert "Invalid schema for function weather." in response.json["error"]["message"]


def test_no_quotes_take_the_place_of_what_needs_a_model(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    values = services.settings.current.model_copy(update={"when_model_fails": "quote"})
    services.assistant._deps = replace(services.assistant._deps, settings=lambda: values)
    stub.default = Reply(status=401)
    assert chat(client, talk(0), tools=TOOLS).status_code == 502
    assert chat(client, talk(0)).json["rag_assistant"]["answered_by"] in (None, "quotes")


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        CHAT,
        {"tools": [{"type": "function", "function": {"name": "f"}}] * 10_000},
        "tools",
        "a list of up to 128 functions",
    ),
    (CHAT, {"tools": [{"type": "teleport"}]}, "tools", "a list of up to 128 functions"),
    (
        RESPONSES,
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        "tool_choice",
        "none, auto",
    ),
    (CHAT, {"tool_choice": "perhaps"}, "tool_choice", "none, auto, required"),
    (CHAT, {"messages": [*talk(0), called("a", "b"), result("a")]}, "None", "The call b has no result."),
    (CHAT, {"messages": [*talk(0), called("a"), result("a", "\ud800")]}, "None", "character"),
    (CHAT, {"tools": TOOLS, "metadata": {"conversation_id": "new"}}, "tools", "are not stored"),
    (RESPONSES, {"tools": FLAT, "previous_response_id": "resp_1"}, "tools", "are not stored"),
    (RESPONSES, {"context_management": [{"type": "compaction", "compact_threshold": 1}]}, "context_management", "is 1"),
]


@pytest.mark.parametrize(("path", "fields", "param", "said"), REFUSED)
def test_what_cannot_be_passed_on_is_refused_by_name(
    empty: FlaskClient, path: str, fields: dict[str, Any], param: str, said: str
) -> None:
    given = {"messages": talk(0)} if path == CHAT else {"input": "Why?"}
    response = empty.post(path, json={"model": MODEL} | given | fields)
    assert (response.status_code, str(response.json["error"]["param"])) == (400, param)
    assert said in response.json["error"]["message"]


@pytest.mark.parametrize("depth", [50, 200, 400, 900, 100_000])
def test_a_schema_that_is_nested_deeply_is_passed_on_or_refused(
    client: FlaskClient, stub: StubModel, depth: int
) -> None:
    schema = '{"a":' * depth + "{}" + "}" * depth
    tool = {"type": "function", "function": {"name": "f", "parameters": "SCHEMA"}}
    body = json.dumps({"model": MODEL, "messages": talk(0), "tools": [tool]}).replace('"SCHEMA"', schema)
    response = client.post(CHAT, data=body, content_type="application/json")
    assert response.status_code in (200, 400, 413), response.text
    assert response.status_code == 200 or "nested" in response.text or "too large" in response.text


def test_a_schema_of_a_megabyte_is_refused(empty: FlaskClient) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "x" * 1_000_000}}]
    response = empty.post(CHAT, json={"model": MODEL, "messages": talk(0), "tools": tools})
    assert response.status_code == 413
    assert "limit is 1 MB" in response.json["error"]["message"]


def test_without_a_model_one_sentence_says_so_and_quotes_count_no_prompt(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(client, "The lamp of the lighthouse burns rapeseed oil.", "lamp.txt")
    monkeypatch.setattr(type(services.models), "connected", False)
    for fields, param in (
        ({"tools": TOOLS}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ):
        error = chat(client, talk(0), **fields).json["error"]
        assert error["param"] == param
        assert error["message"] == f"{param} needs a language model, and none is connected."
    question = "What does the lamp of the lighthouse burn?"
    answer = chat(client, talk(0, question), max_tokens=5, stop="x").json
    assert answer["usage"]["prompt_tokens"] == 0
    assert answer["rag_assistant"]["answered_by"] == "quotes"
    assert answer["rag_assistant"]["ignored"] == ["max_tokens", "stop"]


def test_the_model_that_answered_is_named(client: FlaskClient) -> None:
    *_, last, _ = chunks_of(chat(client, talk(0), stream=True).data)
    assert last["rag_assistant"]["answered_by"] == "stub-model"


def test_an_input_is_counted_with_its_tools_and_what_it_goes_on_behind(client: FlaskClient) -> None:
    def count(given: Any, **fields: Any) -> int:
        response = client.post(f"{RESPONSES}/input_tokens", json={"model": MODEL, "input": given} | fields)
        assert response.json["object"] == "response.input_tokens"
        counted: int = response.json["input_tokens"]
        return counted

    alone = count("How is the weather?")
    assert 0 < alone < count("How is the weather?", tools=FLAT)
    first = respond(client, "Where?").json["id"]
    assert alone < count("How is the weather?", previous_response_id=first)


def test_models_tell_how_much_they_take(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = services.models.known_endpoint()
    monkeypatch.setattr(services.models, "known_endpoint", lambda: replace(known, context_tokens=8192))
    assert {one["context_length"] for one in client.get("/v1/models").json["data"]} == {8192}
