"""Anthropic's protocol with its own client: the same window, tools, limits and words as a chat."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload
from tests.web.v1.test_chat import MODEL, talk
from tests.web.v1.test_client_tools import THOUGHTFUL

if TYPE_CHECKING:
    from anthropic import Anthropic

MESSAGES = "/v1/messages"
TOOL: Any = {
    "name": "weather",
    "description": "The weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = {"id": "call_0", "name": "weather", "arguments": {"city": "Oslo"}}


@pytest.fixture
def claude(served: str) -> Iterator["Anthropic"]:
    from anthropic import Anthropic  # To load it takes two seconds.

    plain = httpx2.Client(verify=False)
    base = served.removesuffix("/v1")
    with Anthropic(base_url=base, api_key="not-needed", max_retries=0, http_client=plain) as client:
        yield client


def send(client: FlaskClient, messages: Any, **fields: Any) -> Any:
    return client.post(f"{MESSAGES}?beta=true", json={"model": MODEL, "max_tokens": 100, "messages": messages} | fields)


@pytest.mark.long
def test_the_sdk_gets_an_answer_from_the_documents(claude: "Anthropic", client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lamp of the lighthouse burns rapeseed oil.", "lamp.txt")
    stub.replies.append(Reply("Rapeseed oil [1].", usage={"prompt_tokens": 90, "completion_tokens": 4}))
    messages = talk(0, "What does the lamp of the lighthouse burn?")
    answer = claude.messages.create(model=MODEL, max_tokens=50, system="Be brief.", messages=messages)
    assert [one.text for one in answer.content if one.type == "text"] == ["Rapeseed oil [1]."]
    assert (answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens) == ("end_turn", 90, 4)
    told = answer.model_dump()["rag_assistant"]
    assert [one["document"] for one in told["sources"]] == ["lamp.txt"]
    sent = stub.requests[-1]
    assert "Be brief." in sent.messages[0]["content"]
    assert "rapeseed" in sent.messages[-1]["content"]
    assert 50 in (sent.body.get("max_tokens"), sent.body.get("max_completion_tokens"))


@pytest.mark.long
def test_the_sdk_streams_the_same(claude: "Anthropic", stub: StubModel) -> None:
    stub.default = Reply("Eins zwei drei.", usage={"prompt_tokens": 9, "completion_tokens": 3})
    with claude.messages.stream(model=MODEL, max_tokens=50, messages=talk(0)) as stream:
        text = "".join(stream.text_stream)
        whole = stream.get_final_message()
    assert text == "Eins zwei drei."
    assert (whole.stop_reason, whole.usage.output_tokens) == ("end_turn", 3)


def test_the_window_applies_and_is_told(client: FlaskClient, stub: StubModel) -> None:
    answer = send(client, talk(8)).json
    assert answer["history_trimmed"] is True
    assert answer["rag_assistant"]["history"]["turns_dropped"] == 3
    assert "Question 3" not in json.dumps(stub.requests[-1].messages)


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_the_sdk_calls_its_own_tools_and_gets_an_answer_from_their_results(
    claude: "Anthropic", stub: StubModel, stream: bool
) -> None:
    stub.replies.extend([Reply(tool_calls=[CALL]), Reply("Rain.")])
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 50, "tools": [TOOL]}
    choice: dict[str, Any] = {"tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}}
    messages = talk(1, "How is the weather?")
    if stream:
        with claude.messages.stream(messages=messages, **asked, **choice) as events:
            first: Any = events.get_final_message()
    else:
        first = claude.messages.create(messages=messages, **asked, **choice)
    (call,) = first.content
    assert (call.type, call.id, call.name, call.input) == ("tool_use", "call_0", "weather", {"city": "Oslo"})
    assert first.stop_reason == "tool_use"
    sent = stub.requests[-1].body
    assert sent["tools"][0]["function"] == {
        "name": "weather", "description": "The weather.", "parameters": TOOL["input_schema"]
    }  # fmt: skip
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert sent["parallel_tool_calls"] is False
    result = {"type": "tool_result", "tool_use_id": call.id, "is_error": True, "content": "The service is down."}
    said = {"type": "text", "text": "Then say what is usual."}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result, said]}]
    second = claude.messages.create(messages=messages, **asked)
    assert second.content[0].text == "Rain."
    roles = [one["role"] for one in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "user"]
    assert stub.requests[-1].messages[-2]["content"] == "Error: The service is down."


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_come_back_while_tools_run(claude: "Anthropic", stub: StubModel, stream: bool) -> None:
    stub.replies.append(THOUGHTFUL)
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 50, "tools": [TOOL]}
    messages = talk(0)
    if stream:
        with claude.messages.stream(messages=messages, **asked) as events:
            first: Any = events.get_final_message()
    else:
        first = claude.messages.create(messages=messages, **asked)
    assert [one.type for one in first.content] == ["thinking", "tool_use"]
    result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "Rain."}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    claude.messages.create(messages=messages, **asked)
    (message,) = (one for one in stub.requests[-1].messages if one["role"] == "assistant")
    assert message["reasoning_content"] == "Hm."
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s1"}}


def test_a_named_conversation_is_the_history(client: FlaskClient, stub: StubModel) -> None:
    stored = ask(client, "What burns?")
    told = send(client, talk(0), metadata={"conversation_id": str(stored["conversation_id"])}).json["rag_assistant"]
    assert told["conversation_id"] == stored["conversation_id"]
    assert "What burns?" in json.dumps(stub.requests[-1].messages)


@pytest.mark.parametrize(
    ("messages", "fields", "kind", "said"),
    [
        (talk(0), {"model": "claude"}, "not_found_error", "claude"),
        ([{"role": "user", "content": " "}], {}, "invalid_request_error", "visible character"),
        ([{"role": "user", "content": [{"type": "document"}]}], {}, "invalid_request_error", "[0] is of the type"),
        ([{"role": "assistant", "content": [{"type": "image"}]}], {}, "invalid_request_error", "messages[0]"),
        (talk(0), {"max_tokens": 0}, "invalid_request_error", "max_tokens"),
        (talk(0), {"tool_choice": {"type": "any"}, "tools": [TOOL | {"name": ""}]}, "invalid_request_error", "name"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_in_that_protocols_shape(
    client: FlaskClient, messages: Any, fields: dict[str, Any], kind: str, said: str
) -> None:
    answer = send(client, messages, **fields)
    assert answer.json["type"] == "error"
    assert answer.json["error"]["type"] == kind
    assert said in answer.json["error"]["message"]


@pytest.mark.long
def test_a_model_that_fails_is_the_sdks_error(claude: "Anthropic", stub: StubModel) -> None:
    stub.default = Reply(status=401)
    from anthropic import APIStatusError

    with pytest.raises(APIStatusError) as caught:
        claude.messages.create(model=MODEL, max_tokens=50, messages=talk(0))
    assert caught.value.status_code in (401, 502)


@pytest.mark.long
def test_tokens_are_counted_with_what_goes_along(claude: "Anthropic") -> None:
    alone = claude.messages.count_tokens(model=MODEL, messages=talk(0)).input_tokens
    more = claude.messages.count_tokens(model=MODEL, messages=talk(4), tools=[TOOL], system="Be brief.").input_tokens
    assert 0 < alone < more


def test_what_only_that_provider_does_is_ignored_by_name(client: FlaskClient, stub: StubModel) -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    tools = [TOOL, {"type": "web_search_20250305", "name": "web_search"}]
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
    spoken = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    answer = send(client, [*talk(0), spoken, *talk(0)], tools=tools, context_management=edits, top_k=3)
    assert sorted(answer.json["rag_assistant"]["ignored"]) == [
        "context_management.edits",
        "messages[1].content[0]",
        "messages[].content[].thinking",
        "tools[1]",
        "top_k",
    ]
    assert [one["function"]["name"] for one in stub.requests[-1].body["tools"]] == ["weather"]
