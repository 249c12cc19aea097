"""Tool calls in answers: put together from pieces, however a provider cuts them; and endpoints that take no tools."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from rag_assistant.llm.calibration import Calibration
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.failures import context_too_long, refuses_tools
from rag_assistant.llm.reader import AnswerReader
from rag_assistant.llm.tool_calls import ToolCallCollector
from tests.testkit.shared_data import shared_jsonl


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


def test_arguments_at_a_new_index_belong_to_the_call_that_has_none() -> None:
    assert collected(
        [piece(0, "a", "look", '{"q": 1}')], [piece(0, "b", "look", "")], [piece(1, arguments='{"q": 2}')]
    ) == [("a", "look", '{"q": 1}'), ("b", "look", '{"q": 2}')]  # fmt: skip


def test_calls_without_an_id_of_their_own_get_one_that_no_other_has() -> None:
    unnamed = collected([piece(None, None, "look", '{"n": 1}'), piece(None, "", "look", '{"n": 2}')])
    assert [call[1:] for call in unnamed] == [("look", '{"n": 1}'), ("look", '{"n": 2}')]
    ids = {call[0] for call in unnamed} | {call[0] for call in collected([piece(None, None, "look", "{}")])}
    assert len(ids) == 3
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    same = [call[0] for call in collected([piece(0, "same", "a"), piece(1, "same", "b")])]
    assert same[0] == "same" != same[1]


def test_whole_calls_without_ids_that_all_say_index_0_are_several() -> None:
    assert [call[2] for call in collected([piece(0, None, "look", '{"x": 1}')], [piece(0, None, "look", '{"y": 2}')])] == [
        '{"x": 1}', '{"y": 2}',
    ]  # fmt: skip
    assert [call[2] for call in collected([piece(0, None, "look", '{"x"')], [piece(0, None, "look", ": 1}")])] == [
        '{"x": 1}',
    ]  # fmt: skip


def test_a_character_cut_in_two_becomes_whole_and_half_of_one_does_not_hurt() -> None:
    assert collected([piece(0, "a", "look", '{"q": "\ud83d')], [piece(0, arguments='\ude00"}')]) == [
        ("a", "look", '{"q": "\U0001f600"}')
    ]
    ((call_id, name, arguments),) = collected([piece(0, "a\ud800", "lo\0ok", '{"q": "\udfff"}')])
    (call_id + name + arguments).encode()
    assert name == "look"


@pytest.mark.parametrize("arguments", [json.dumps('{"q": 1}'), '```json\n{"q": 1}\n```', '{"q": 1}'])
@pytest.mark.parametrize("name", ["look", "functions.look", "look<|channel|>commentary"])
def test_what_a_template_leaves_around_a_call_is_taken_away(name: str, arguments: str) -> None:
    (call,) = collected([piece(0, "a", name, arguments)])
    assert (call[1], call[2].strip()) == ("look", '{"q": 1}')


@pytest.mark.parametrize("arguments", ["nine", '"nine"', "[1]", "{'q': 1}"])
def test_arguments_of_which_nothing_is_known_stay_as_they_are(arguments: str) -> None:
    assert collected([piece(0, "a", "look", arguments)]) == [("a", "look", arguments)]


def test_a_name_may_come_in_pieces_or_whole_each_time() -> None:
    for pieces in (("lo", "ok"), ("look", "look")):
        calls = [piece(0, "a", pieces[0], ""), piece(0, None, pieces[1], ""), piece(0, arguments='{"q": 1}')]
        assert collected(*([one] for one in calls)) == [("a", "look", '{"q": 1}')]


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
        body = exchange["response_body"]
        if exchange["sse"]:
            for line in body.replace("\r", "").split("\n"):
                if line.startswith("data: {"):
                    reader.text_of(json.loads(line[6:]))
        else:
            reader.whole_answer(body)
        for call in reader.tool_calls.calls():
            calls += 1
            assert call["function"]["name"]
            json.loads(call["function"]["arguments"])
    assert calls > 50


# Wordings of servers and gateways: (text, limit, tokens of the prompt); None where they do not tell.
TOO_LONG = [
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", 8192, 9001),
    ("This model's maximum context length is 128000 tokens. However, you requested 140500 tokens (139000 in the messages, 500 in the functions, and 1000 in the completion).", 128000, 139000),
    ("This model's maximum context length is 8192 tokens, however you requested 9000 tokens (8000 in your prompt; 1000 for the completion).", 8192, 8000),
    ("'max_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 500 input tokens (4096 > 4096 - 500).", 4096, 500),
    ("You passed 5001 input tokens and requested 1024 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3072 tokens.", 4096, 5001),
    ("This model's maximum context length is 4096 tokens. However, you requested 1024 output tokens and your prompt contains at least 5001 input tokens.", 4096, 5001),
    ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 5000),
    ("Context size has been exceeded.", None, None),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length", 200000, 190000),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32768, 40000),
    ("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", 8192, 9000),
    ("This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens (8900 of text input, 100 in the output).", 8192, 8900),
    ("Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", 4096, 5000),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1200000),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`", 4096, 5000),
    ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131072, 140000),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 4081, 5000),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    ("the input length exceeds the context length", None, None),
    ("Range of input length should be [1, 30720]", 30720, None),
    ("Your request exceeded model token limit: 8192", 8192, None),
    ("This model's maximum context length is 8,192 tokens. However, you requested 9,000 tokens", 8192, 9000),
]  # fmt: skip


@pytest.mark.parametrize(("text", "limit", "prompt"), TOO_LONG)
def test_every_wording_is_known_with_its_figures_however_deep_it_stands(
    text: str, limit: int | None, prompt: int | None
) -> None:
    for body in ({"error": {"message": text}}, {"message": text}, [{"error": {"metadata": {"raw": text}}}]):
        error = context_too_long(body)
        assert error is not None
        assert (error.limit, error.prompt_tokens) == (limit, prompt)


@pytest.mark.parametrize(
    ("body", "limit", "prompt"),
    [
        ({"error": {"type": "exceed_context_size_error", "n_ctx": 2048, "n_prompt_tokens": 3000}}, 2048, 3000),
        ({"error": {"message": "Too long.", "code": "context_length_exceeded"}}, None, None),
    ],
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
        {"error": {"message": "This would exceed your rate limit for long context requests of 100 per minute."}},
        {"error": {"message": "Content policy: 'my essay on maximum context length is 3 pages' was flagged"}},
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
        ("Parallel tool calls are not supported", False),
        ("Tool choice 'none' is not supported", False),
        ("unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.", False),
        ("Unexpected role 'tool' after role 'system'", False),
        ("attempted to call tool 'foo' which was not in request.tools: unknown tool", False),
        ("deepseek-reasoner does not support Function Calling", True),
        ("Unsupported parameter: 'tools' is not supported with this model.", True),
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
    calibration.learn(endpoint, 1000, 7000)
    assert calibration.ratio(endpoint) == 4.0
    assert calibration.ratio(Endpoint("http://x", None, "other")) == 1.0


@pytest.mark.parametrize(("estimated", "counted"), [(1000, 0), (1000, -5), (10, 40), (0, 1000), (1000, 10**9)])
def test_figures_that_tell_nothing_teach_nothing(estimated: int, counted: int) -> None:
    calibration, endpoint = Calibration(), Endpoint("http://x", None, "m")
    calibration.learn(endpoint, estimated, counted)
    assert calibration.ratio(endpoint) == 1.0


def test_a_refusal_only_makes_us_more_careful() -> None:
    calibration, endpoint = Calibration(), Endpoint("http://x", None, "m")
    calibration.learn_refusal(endpoint, 6000, 4096, 1024)
    assert (calibration.ratio(endpoint), calibration.limited(endpoint).context_tokens) == (1.0, 4096)
    calibration.learn_refusal(endpoint, 6000, 100, 9000)
    assert (calibration.ratio(endpoint), calibration.limited(endpoint).context_tokens) == (1.5, 4096)
    calibration.learn(endpoint, 4000, 5000)
    calibration.learn_refusal(endpoint, 6000, 3000, None)
    assert calibration.limited(endpoint).context_tokens == 4096
    for declared, limit in ((4000, 4000), (9000, 9000)):  # What it was refused with was declared otherwise.
        assert calibration.limited(replace(endpoint, context_tokens=declared)).context_tokens == limit
    calibration.learn_refusal(replace(endpoint, context_tokens=9000), 8000, 7000, None)
    assert calibration.limited(replace(endpoint, context_tokens=9000)).context_tokens == 7000
