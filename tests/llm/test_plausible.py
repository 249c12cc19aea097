"""What an endpoint says of itself is used and stored only as far as it can be true: nothing of it stops an account."""

from time import process_time
from typing import Any

import pytest

from rag_assistant.llm.failures import TITLE, context_too_long
from rag_assistant.llm.prompt_counts import MAX_HIDDEN_TOKENS, is_count, is_name, plausible_usage
from rag_assistant.llm.reader import AnswerReader
from rag_assistant.records import ModelRequest

REQUEST = ModelRequest(({"role": "user", "content": "Why?"},))
# No request has so many tokens, and some numbers fit into no column, or into no text.
LIES: list[Any] = [2**31, 9 * 10**18, 10**30, 10**400, -1, True, 1.5, "12", None, [], {}, float("inf"), float("nan")]


@pytest.mark.parametrize("lie", LIES)
def test_a_count_that_cannot_be_true_is_none(lie: Any) -> None:
    usage = {"prompt_tokens": lie, "completion_tokens": lie, "total_tokens": lie}
    details = {"prompt_tokens_details": {"cached_tokens": lie}, "completion_tokens_details": lie}
    assert plausible_usage(usage | details, REQUEST, 10, "So it is.") == {}


def test_counts_that_can_be_true_are_kept_and_nothing_beside_them() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": MAX_HIDDEN_TOKENS, "total_tokens": MAX_HIDDEN_TOKENS + 30}
    details = {"prompt_tokens_details": {"cached_tokens": 20}}
    counted = usage | {"cached_tokens": 20}
    assert plausible_usage(usage | details | {"geese": "x" * 10**6}, REQUEST, 10, "") == counted
    assert plausible_usage(None, REQUEST, 10, "") is None


def test_cached_tokens_are_part_of_the_prompt_where_they_are_not_counted() -> None:
    usage = {"prompt_tokens": 300, "prompt_tokens_details": {"cached_tokens": 900}}
    assert plausible_usage(usage, REQUEST, 1000, "") == {"prompt_tokens": 1200, "cached_tokens": 900}


COUNTS = {"prompt_tokens": 30, "completion_tokens": 4}


@pytest.mark.parametrize(
    "chunk",
    [
        {"usage": COUNTS},
        {"usage": {"prompt_tokens": 30.0, "completion_tokens": "4"}},
        {"choices": [{"delta": {}, "usage": COUNTS}]},
        {"x_groq": {"usage": COUNTS}},
        {"timings": {"prompt_n": 10, "cache_n": 20, "predicted_n": 4}},
    ],
)
def test_counts_are_found_wherever_an_endpoint_puts_them(chunk: dict[str, Any]) -> None:
    reader = AnswerReader()
    reader.text_of(chunk)
    reader.text_of({"choices": [], "usage": None})
    assert reader.usage == COUNTS


def test_a_picture_may_be_as_many_tokens_as_some_models_count() -> None:
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
    request = ModelRequest(({"role": "user", "content": [url]},))
    assert plausible_usage({"prompt_tokens": 50_000}, request, 10, "") == {"prompt_tokens": 50_000}
    assert plausible_usage({"prompt_tokens": 50_000}, REQUEST, 10, "") == {}


@pytest.mark.parametrize("name", ["", "x" * 201, "\ud83d", "a\0b", None, 7, ["m"]])
def test_what_no_database_or_page_takes_is_no_name(name: Any) -> None:
    assert not is_name(name)
    assert is_name("meta-llama/Llama-3.3-70B")


@pytest.mark.parametrize("digits", ["9" * 20, "9" * 5000, "1" + ",000" * 5000])
@pytest.mark.parametrize("words", ["maximum context length is {} tokens", "prompt is too long: {} tokens > {} maximum"])
def test_a_limit_of_many_digits_is_none(words: str, digits: str) -> None:
    refusal = context_too_long({"error": {"message": words.format(digits, digits), "n_ctx": 10**30}})
    assert refusal is not None
    assert (refusal.limit, refusal.prompt_tokens) == (None, None)
    assert is_count(2**31 - 1)


def test_a_refusal_of_any_depth_is_read() -> None:
    body: Any = "maximum context length is 4,096 tokens"
    for _ in range(100_000):
        body = [body]
    refusal = context_too_long(body)
    assert refusal is not None
    assert refusal.limit == 4096


@pytest.mark.parametrize(
    "piece", ["1", "1,", ",111", "'", "'maximum context length", "maximum context length ", "<title ", "> 1 ", "[1, "]
)
def test_long_refusals_take_a_time_in_proportion(piece: str) -> None:
    def seconds(chars: int) -> float:
        text = ("maximum context length is 1 tokens. '" + piece * chars)[:chars]
        began = process_time()
        for _ in range(3):
            context_too_long(text)
            TITLE.search(text)
        return process_time() - began

    assert seconds(40_000) < 8 * max(seconds(10_000), 0.005)
