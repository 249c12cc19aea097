"""What a count of prompt tokens means: all that was sent, what a cache had not, or a cut."""

from datetime import datetime, timedelta
from typing import Any
from unittest.mock import MagicMock

import pytest
from msgspec.structs import replace

from rag_assistant.llm.calibration import Calibration
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.prompt_counts import (
    PromptSize,
    Verdict,
    guess_limit,
    judge,
    size_of,
)
from rag_assistant.records import ModelReply, ModelRequest
from tests.testkit.shared_data import shared_json

WORDS = "The harbour of Bremerhaven was built when the river had silted up for the third time. "


def prompt(*texts: str, **more: Any) -> PromptSize:
    """Return the size of a request whose messages have these texts."""
    messages = tuple({"role": "user" if n % 2 else "system", "content": text} for n, text in enumerate(texts))
    return size_of(ModelRequest(messages, **more))


def texts(count: int) -> list[str]:
    """Return texts of some 400 tokens each."""
    return [f"{n}. {WORDS * 20}" for n in range(count)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The harbour was built when the river had silted up.", 11),
        ("def size_of(request: ModelRequest) -> PromptSize:", 12),
        ("2026-05-04 18:05:59", 16),
        ("Der Hafen wurde gebaut, als der Fluss verlandet war.", 12),
        ("港口建于河流淤塞之时。", 10),
        ("-" * 200, 1),
        ("", 0),
    ],
)
def test_the_tokens_of_a_text_are_told_from_its_characters(text: str, tokens: int) -> None:
    assert prompt(text).tokens.expected - prompt("").tokens.expected == pytest.approx(tokens, rel=0.3, abs=0.5)


def test_a_count_of_everything_is_believed() -> None:
    size = prompt(*texts(3))
    assert judge(size, round(size.tokens.expected), 0, (), 0) == Verdict(
        round(size.tokens.expected), round(size.tokens.expected)
    )


def test_a_count_below_what_its_text_allows_is_a_cut() -> None:
    size = prompt(*texts(12))
    verdict = judge(size, 2050, 0, (), 0)
    assert (verdict.cut, verdict.read, verdict.sent) == (True, 2050, round(size.tokens.expected))


def test_a_count_that_stands_still_while_requests_grow_is_a_cut() -> None:
    size, longer = prompt(*texts(10)), prompt(*texts(11))
    assert judge(longer, 4096, 0, (replace(size, count=4096),), 0).cut
    assert not judge(longer, 4096, 0, (), 0).cut


def counted(times: float, count: int = 9) -> list[PromptSize]:
    """Return requests that grow, with what a tokenizer makes of them that has so many times as many tokens."""
    sizes = [prompt(*texts(n)) for n in range(1, count)]
    return [replace(size, count=round(times * size.tokens.expected)) for size in sizes]


def test_a_smaller_cut_is_told_once_earlier_counts_have_taught_the_tokenizer() -> None:
    longer, earlier = prompt(*texts(9)), counted(1.2)
    added = 1.2 * longer.tokens.expected - earlier[-1].count
    verdict = judge(longer, round(1.2 * longer.tokens.expected - 0.4 * added), 0, earlier, 9)
    assert verdict.cut
    assert verdict.sent == pytest.approx(1.2 * longer.tokens.expected, rel=0.01)
    assert not judge(longer, round(1.2 * longer.tokens.expected - 0.05 * added), 0, earlier, 9).cut


def test_where_several_tokenizers_count_under_one_name_a_low_count_is_no_cut() -> None:
    longer = prompt(*texts(9))
    low, high = counted(1.0), counted(1.3)
    assert judge(longer, round(longer.tokens.expected), 0, high, 9).cut
    mixed = [high[0], low[1], high[2], low[3], high[4], low[5], high[6], high[7]]
    assert not judge(longer, round(longer.tokens.expected), 0, mixed, 9).cut


def test_the_last_message_alone_may_be_all_that_was_not_cached() -> None:
    """Some keep their own answer in the cache, too."""
    earlier = (replace(prompt(*texts(2)), count=round(prompt(*texts(2)).tokens.expected)),)
    longer, answered = prompt(*texts(4)), prompt(*texts(3))
    assert judge(longer, round(longer.tokens.expected - answered.tokens.expected), 0, earlier, 0).is_rest


def test_what_was_not_in_the_cache_is_no_cut_and_teaches_nothing() -> None:
    size, longer = prompt(*texts(6)), prompt(*texts(7))
    rest = round(longer.tokens.expected - size.tokens.expected)
    earlier = (replace(size, count=round(size.tokens.expected)),)
    verdict = judge(longer, rest, 0, earlier, 0)
    assert (verdict.cut, verdict.read, verdict.is_rest) == (False, None, True)
    assert judge(longer, rest, 0, earlier, 3).cut  # It has always counted everything.
    assert judge(longer, 1000, 0, (), -1).read is None


def test_cached_tokens_are_added_where_they_are_not_in_the_count() -> None:
    size = prompt(*texts(6))
    whole = round(size.tokens.expected)
    assert judge(size, whole - 800, 800, (), 0).read == whole
    assert judge(size, whole, 800, (), 0).read == whole


def test_tools_that_a_server_does_not_show_to_the_model_are_no_cut() -> None:
    tools = tuple({"type": "function", "function": {"name": f"tool_{n}", "description": WORDS * 5}} for n in range(9))
    size, plain = prompt(*texts(2), tools=tools), prompt(*texts(2))
    assert not judge(size, round(plain.tokens.expected), 0, (), 0).cut


def content(text: str, *urls: str) -> list[dict[str, Any]]:
    """Return the content of a message with pictures."""
    return [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]


def test_a_picture_is_part_of_a_message() -> None:
    sizes = [size_of(ModelRequest(({"role": "user", "content": content("What?", *urls)},))) for urls in ((), "A", "B")]
    assert len({key for size in sizes for key in size.parts}) == 3


def test_equal_messages_are_counted_twice() -> None:
    assert prompt("a", WORDS, "a", WORDS).tokens.expected == pytest.approx(2 * prompt("a", WORDS).tokens.expected)


@pytest.mark.parametrize(
    ("read", "accepted", "sent", "limit"),
    [
        (2050, 1900, 5060, 4096),  # Half of the context is kept.
        (2050, 3900, 5060, 4096),
        (4096, 3900, 4500, 4096),
        (2730, 2500, 4500, 3072),
        (1365, 1300, 4500, 1536),
        (3900, 3950, 4500, 4096),
        (2048, 2000, 9000, 2048),
    ],
)
def test_the_limit_is_guessed_from_what_was_read(read: int, accepted: int, sent: int, limit: int) -> None:
    assert guess_limit(read, accepted, sent) == limit


def test_a_limit_that_was_guessed_too_high_is_not_guessed_again() -> None:
    calibration, endpoint = Calibration(), Endpoint("http://localhost", None, "some")
    request = ModelRequest(tuple({"role": "user", "content": text} for text in texts(12)))
    reply = ModelReply(usage={"prompt_tokens": 2090})
    shorter = ModelRequest(tuple({"role": "user", "content": text} for text in texts(9)))
    readings = [calibration.read(endpoint, one, reply) for one in (request, request, shorter)]
    assert [reading.limit for reading in readings if reading] == [None, 4096, 2304]


ENDPOINT = Endpoint("http://localhost", None, "some")


def read(calibration: Calibration, count: int, *said: str, endpoint: Endpoint = ENDPOINT, **more: Any) -> int | None:
    """Return the limit to which a request was cut, as far as its count tells."""
    request = ModelRequest(tuple({"role": "user", "content": text} for text in said))
    reading = calibration.read(endpoint, request, ModelReply(usage={"prompt_tokens": count}), **more)
    assert reading is not None
    assert reading.read == count
    return reading.limit


@pytest.mark.parametrize("teaches", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_an_endpoint_that_read_every_recorded_request_has_no_limit(times: int, teaches: bool) -> None:
    calibration = Calibration()
    for one in [one for one in shared_json("token_counts/no_limit.json") for _ in range(times)]:
        request, reply = ModelRequest(tuple(one["messages"])), ModelReply(usage={"prompt_tokens": one["prompt_tokens"]})
        reading = calibration.read(ENDPOINT, request, reply, teaches=teaches or one["what"] == "answer")
        assert reading is not None
        assert reading.limit is None
    assert calibration.limited(ENDPOINT).context_tokens is None


def test_a_cut_is_believed_after_a_second_one_that_agrees() -> None:
    calibration = Calibration()
    assert [read(calibration, count, *texts(12)) for count in (2050, 900, 950)] == [None, None, 1024]
    assert calibration.limited(ENDPOINT).context_tokens == 1024


def test_what_is_no_longer_than_a_request_that_was_read_whole_is_not_cut() -> None:
    calibration = Calibration()
    assert read(calibration, round(prompt(*texts(12)).tokens.expected), *texts(12)) is None
    assert [read(calibration, 2050, *texts(11)) for _ in range(3)] == [None, None, None]
    calibration.forget(ENDPOINT)  # It may have been started again.
    assert [read(calibration, 2050, *texts(11)) for _ in range(2)] == [None, 2304]


def test_a_request_beside_the_answer_teaches_no_limit() -> None:
    calibration = Calibration()
    assert [read(calibration, 2050, *texts(12), teaches=False) for _ in range(3)] == [None, None, None]
    assert read(calibration, 2050, *texts(12)) is None
    assert calibration.limited(ENDPOINT).context_tokens is None


def test_a_declared_limit_is_never_lowered_by_a_guess() -> None:
    calibration, declared = Calibration(), Endpoint("http://localhost", None, "some", 32_768)
    assert calibration.limited(declared) == declared
    assert [read(calibration, 2050, *texts(12), endpoint=declared) for _ in range(3)] == [None, None, None]
    assert calibration.limited(declared) == declared


def test_a_guessed_limit_is_forgotten_once_more_was_read() -> None:
    calibration = Calibration()
    for _ in range(2):
        read(calibration, 2050, *texts(12))
    assert calibration.limited(ENDPOINT).context_tokens == 4096
    read(calibration, 4200, *texts(12))
    assert calibration.limited(ENDPOINT).context_tokens is None


def test_a_guessed_limit_is_tried_after_an_hour_and_forgotten_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    calibration = Calibration()
    for _ in range(2):
        read(calibration, 2050, *texts(12))
    guess = calibration.limited(ENDPOINT).guess
    assert guess is not None
    assert (guess.limit, guess.read, guess.is_tried) == (4096, 2050, False)
    later = timedelta(0)
    now = MagicMock(wraps=datetime, now=lambda zone: guess.at + later)
    monkeypatch.setattr("rag_assistant.llm.calibration.datetime", now)
    for minutes, limit, is_tried in ((59, 4096, False), (61, None, True)):
        later = timedelta(minutes=minutes)
        endpoint = calibration.limited(ENDPOINT)
        assert (endpoint.context_tokens, endpoint.guess) == (limit, replace(guess, is_tried=is_tried))
    assert read(calibration, 2050, *texts(12)) == 4096  # One low count is enough now, and makes it no lower.
    later += timedelta(minutes=59)
    assert calibration.limited(ENDPOINT).context_tokens == 4096
    later += timedelta(days=1)
    assert calibration.limited(ENDPOINT).guess is None


@pytest.mark.parametrize("price", [85, 258, 1500])
def test_what_a_picture_costs_is_no_reason_for_a_cut(price: int) -> None:
    calibration, picture = Calibration(), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    text = {"type": "text", "text": texts(1)[0]}
    plain = round(prompt(*texts(1)).tokens.expected)
    for content, count in (([text, picture], plain + price), ([text], plain), ([text, picture], plain + price)):
        request = ModelRequest(({"role": "user", "content": content},))
        reading = calibration.read(ENDPOINT, request, ModelReply(usage={"prompt_tokens": count}))
        assert reading is not None
        assert (reading.read, reading.limit) == (count, None)


@pytest.mark.parametrize("price", [85, 258, 1500])
def test_what_a_picture_costs_is_learned(price: int) -> None:
    calibration = Calibration()
    plain = round(prompt(*texts(1)).tokens.expected)
    for n in range(2):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,AA{n}"}}
        request = ModelRequest(({"role": "user", "content": [{"type": "text", "text": texts(1)[0]}, picture]},))
        reading = calibration.read(ENDPOINT, request, ModelReply(usage={"prompt_tokens": plain + price}))
    assert reading is not None
    assert reading.sent == pytest.approx(plain + price, abs=2)


@pytest.mark.parametrize("prices", [[0], [1105], [1500, 85, 1500, 85, 85, 1105, 258]])
def test_pictures_in_other_sizes_and_numbers_are_no_cut(prices: list[int]) -> None:
    calibration, messages, price = Calibration(), list[dict[str, Any]](), dict[str, int]()
    for n in range(12):
        urls = [f"data:image/png;base64,{'AB' * (1 + 40 * (n % 3))}{n}{m}" for m in range(n % 3)]
        price |= {url: prices[(n + m) % len(prices)] for m, url in enumerate(urls)}
        messages.append({"role": "user", "content": content(f"{n}. What is this lamp? {WORDS * 5}", *urls)})
        request = ModelRequest(tuple(messages[-5:]))
        count = round(1.1 * size_of(request).tokens.expected) + sum(
            price[part["image_url"]["url"]] for one in request.messages for part in one["content"][1:]
        )
        for _ in range(2):
            reading = calibration.read(ENDPOINT, request, ModelReply(usage={"prompt_tokens": count}))
            assert reading is not None
            assert reading.limit is None
    assert calibration.limited(ENDPOINT).context_tokens is None
