"""Tool calls in answers: put together from pieces, however a provider cuts them; and endpoints that take no tools."""

import json
from typing import Any

import pytest

from rag_assistant.llm.calibration import Calibration
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.failures import context_too_long, refuses_tools
from rag_assistant.llm.reader import AnswerReader
from rag_assistant.llm.tool_calls import ToolCallCollector
from tests.shared_data import shared_jsonl


def collected(*pieces: Any) -> list[tuple[str, str, str]]:
    collector = ToolCallCollector()
    for piece in pieces:
        collector.feed(piece)
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in collector.calls()]


def piece(index: int | None = None, call_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    whole = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in whole.items() if value is not None}


def test_pieces_with_the_same_index_are_one_call() -> None:
    assert collected(
        [piece(0, "a", "look", "")], [piece(1, "b", "read", '{"x"')], [piece(0, arguments='{"q"')],
        [piece(0, arguments=": 1}"), piece(1, arguments=": 2}")],
    ) == [("a", "look", '{"q": 1}'), ("b", "read", '{"x": 2}')]  # fmt: skip


def test_whole_calls_that_all_say_index_0_are_several() -> None:
    assert collected([piece(0, "a", "look", "{}")], [piece(0, "b", "look", "{}")]) == [
        ("a", "look", "{}"), ("b", "look", "{}"),
    ]  # fmt: skip


def test_calls_without_index_or_id_get_one_of_their_own() -> None:
    assert collected([piece(None, None, "look", '{"n": 1}'), piece(None, "", "look", '{"n": 2}')]) == [
        ("call_1", "look", '{"n": 1}'), ("call_2", "look", '{"n": 2}'),
    ]  # fmt: skip
    assert [call[0] for call in collected([piece(0, "same", "a"), piece(1, "same", "b")])] == ["same", "same_2"]


def test_arguments_that_come_as_an_object_become_text() -> None:
    assert collected([piece(0, "a", "look", {"q": "ä"})]) == [("a", "look", '{"q": "ä"}')]
    assert collected([piece(0, "a", "look")]) == [("a", "look", "{}")]


@pytest.mark.parametrize("nonsense", [None, 7, "x", {}, [None, 3, "y", {"function": "z"}]])
def test_nonsense_is_passed_over(nonsense: Any) -> None:
    assert [call for call in collected(nonsense) if call[1]] == []


def test_every_recorded_tool_call_is_whole() -> None:
    calls = 0
    for exchange in shared_jsonl("llm_wire/interactions.jsonl"):
        if not exchange["uri"].endswith("/chat/completions") or '"tool_calls"' not in exchange["response_body"]:
            continue
        reader = AnswerReader()
        body = exchange["response_body"].encode()
        if exchange["sse"]:
            reader.feed(body)
        else:
            reader.feed_whole(body)
            reader.whole_answer()
        for call in reader.tool_calls.calls():
            calls += 1
            assert call["function"]["name"]
            json.loads(call["function"]["arguments"])
    assert calls > 50


OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 "
    "in the completion)."
)
LLAMA = {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}
ANTHROPIC = "prompt is too long: 210000 tokens > 200000 maximum"
MISTRAL = "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
GROQ = "Please reduce the length of the messages or completion."


@pytest.mark.parametrize(
    ("body", "limit", "prompt"),
    [
        ({"error": {"code": "context_length_exceeded", "message": OPENAI}}, 8192, 9001),
        ({"error": {"message": VLLM}}, 4096, 5000),
        ({"error": LLAMA | {"n_ctx": 2048, "n_prompt_tokens": 3000}}, 2048, 3000),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": ANTHROPIC}}, 200000, 210000),
        ({"object": "error", "message": MISTRAL}, 32768, 40000),
        ({"error": {"message": GROQ, "code": "context_length_exceeded"}}, None, None),
    ],
    ids=["openai", "vllm", "llama.cpp", "anthropic", "mistral", "groq"],
)
def test_a_refusal_for_its_length_is_known_with_its_figures(
    body: dict[str, Any], limit: int | None, prompt: int | None
) -> None:
    error = context_too_long(body)
    assert error is not None
    assert (error.limit, error.prompt_tokens) == (limit, prompt)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Unsupported value: 'messages[0].role' does not support 'developer' with this model."}},
        {"error": {"message": "The prompt is empty."}},
        {"error": {"message": "max_tokens is too large: 9000."}},
        {"error": {"message": "You exceeded your current quota."}},
        "nothing",
        None,
    ],
)
def test_other_refusals_are_not_taken_for_it(body: Any) -> None:
    assert context_too_long(body) is None


def test_no_recorded_refusal_is_taken_for_it() -> None:
    for exchange in shared_jsonl("llm_wire/interactions.jsonl"):
        if exchange["status"] >= 400:
            try:
                body = json.loads(exchange["response_body"])
            except ValueError:
                continue
            assert context_too_long(body) is None, exchange["_id"]


@pytest.mark.parametrize(
    ("reason", "takes_none"),
    [
        ("registry.ollama.ai/library/gemma does not support tools", True),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', True),
        ("No endpoints found that support tool use.", True),
        ("tools param requires --jinja flag", True),
        ("Unrecognized request argument supplied: tools", True),
        ("Function calling is not enabled for this model.", True),
        ("Tool call validation failed: parameters for tool search did not match schema", False),
        ("An assistant message with 'tool_calls' must be followed by tool messages", False),
        ("The key is wrong.", False),
    ],
)
def test_an_endpoint_without_tools_is_told_from_one_with_trouble(reason: str, takes_none: bool) -> None:
    assert refuses_tools(reason) is takes_none


def test_a_model_that_counts_more_is_believed_at_once_and_one_that_counts_less_slowly() -> None:
    calibration, endpoint = Calibration(), Endpoint("http://x", None, "m")
    assert calibration.ratio(endpoint) == 1.0
    calibration.learn(endpoint, 1000, 2000)
    assert calibration.ratio(endpoint) == 2.0
    calibration.learn(endpoint, 1000, 1000)
    assert 1.0 < calibration.ratio(endpoint) < 2.0
    calibration.learn(endpoint, 1000, 3000)
    assert calibration.ratio(endpoint) == 3.0
    calibration.learn(endpoint, 1000, 10**9)
    assert calibration.ratio(endpoint) == 4.0
    assert calibration.ratio(Endpoint("http://x", None, "other")) == 1.0


@pytest.mark.parametrize(("estimated", "counted"), [(1000, 0), (1000, -5), (10, 40), (0, 1000)])
def test_figures_that_tell_nothing_teach_nothing(estimated: int, counted: int) -> None:
    calibration, endpoint = Calibration(), Endpoint("http://x", None, "m")
    calibration.learn(endpoint, estimated, counted)
    assert calibration.ratio(endpoint) == 1.0
