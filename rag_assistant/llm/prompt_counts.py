"""What an endpoint's figures mean: a prompt count of everything sent, of the uncached part, or of a cut prompt.

What can't be true is neither used nor stored. Some servers cut a prompt that is too long, answer with 200, and show it
only in ``prompt_tokens`` (Ollama does so by default).

Pure: no network, no clock, no state.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise, takewhile, zip_longest
from math import ceil
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec.structs import astuple

from rag_assistant.history import estimate_tokens
from rag_assistant.records import MAX_INT32, ModelRequest, pictures_in, text_in
from rag_assistant.records.validation import storable

# Nobody counts ten times as many tokens as we do: such a figure is an error.
MAX_TIMES_OUR_ESTIMATE = 8
# A chat template, and what else a server adds to each request.
MAX_TEMPLATE_TOKENS = 4_000
# The largest count for a picture is that of OpenAI's small models.
MAX_TOKENS_PER_PICTURE = 60_000
# What current models write at most, with thoughts that nobody is shown.
MAX_HIDDEN_TOKENS = 128_000
MAX_NAME_CHARS = 200


def is_count(value: object, most: int = MAX_INT32) -> TypeGuard[int]:
    """Return whether a value is a whole number of 0 to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def is_name(value: object) -> TypeGuard[str]:
    """Return whether a value is a name that can be stored, such as a model's."""
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS and storable(value) == value


def reported_usage(chunk: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any] | None:
    """Return the counts in a chunk of an answer, wherever its endpoint puts them, ``None`` without any."""
    for where in (chunk, choice, chunk.get("x_groq")):
        if isinstance(where, dict) and isinstance(usage := where.get("usage"), dict):
            return {name: _whole(value) for name, value in usage.items()}
    timings = chunk.get("timings")  # Of llama.cpp; what it had in its cache is counted apart.
    if not isinstance(timings, dict) or not is_count(read := _whole(timings.get("prompt_n"))):
        return None
    cached = timings.get("cache_n")
    return {
        "prompt_tokens": read + (cached if is_count(cached) else 0),
        "completion_tokens": timings.get("predicted_n"),
    }


def _whole(value: Any) -> Any:
    """Return a whole number that came as a float or as text as one, anything else as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 12 else value


def plausible_usage(
    usage: Mapping[str, Any] | None, request: ModelRequest, estimate: int, text: str
) -> dict[str, Any] | None:
    """Return the counts of a reply that can be true, by our ``estimate`` of the request and the text; else ``None``.

    ``cached_tokens`` are beside the others, and part of ``prompt_tokens``.
    """
    if usage is None:
        return None
    pictures = sum(len(pictures_in(message)) for message in request.messages)
    read = MAX_TIMES_OUR_ESTIMATE * estimate + MAX_TEMPLATE_TOKENS + MAX_TOKENS_PER_PICTURE * pictures
    written = MAX_TIMES_OUR_ESTIMATE * estimate_tokens(text) + MAX_HIDDEN_TOKENS
    most = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    details = usage.get("prompt_tokens_details")
    counts: dict[str, int] = {name: usage[name] for name in most if is_count(usage.get(name), most[name])}
    if isinstance(details, dict) and is_count(cached := details.get("cached_tokens"), read):
        counts["cached_tokens"] = cached
        if cached > counts.get("prompt_tokens", cached):  # Some don't count them.
            counts["prompt_tokens"] += cached
    return counts


# No context is smaller: a count of less than half can't be of the request.
MIN_LIMIT_TOKENS = 256
# Tokens per character, by its first byte in UTF-8: the mean of five tokenizers (bench/history.md), which is more
# accurate than ``estimate_tokens``, which errs on the high side. Then the lowest and highest factor of any tokenizer,
# and how much texts differ for the same tokenizer (standard deviation).
CLASSES = (
    (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 0.24, 0.75, 1.5, 0.08),
    (b"0123456789", 1.1, 0.42, 1.6, 0.08),
    (b"\n", 0.75, 0.75, 1.5, 0.08),
    (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\xc2\xe2", 0.56, 0.75, 1.5, 0.08),
    (bytes(range(0xC3, 0xCB)), 1.5, 0.75, 1.5, 0.08),  # Letters with accents.
    (bytes(range(0xCB, 0xE2)), 0.66, 0.42, 3.0, 0.3),  # From Greek to Thai.
    (bytes(range(0xE3, 0xF5)), 0.89, 0.42, 3.0, 0.3),  # East Asia, and pictographs.
)
CLASS_OF = bytes(next((n for n, row in enumerate(CLASSES, 1) if byte in row[0]), 0) for byte in range(256))
# How far a tokenizer is from the mean of all, what a template adds, and what is left of an equal request.
OF_TOKENIZER, TEMPLATE_TOKENS, ROUNDING = 0.3, 50, 4
MIN_RATIO, MAX_RATIO = 0.4, 3.0
# From this many standard deviations on, a count is too low.
MAX_DEVIATIONS = 4
# A line of dashes is a token or two.
REPEATED = re.compile(rb"([^\w ])\1{3,}")
# Until a model's own price is learned: current ones count 85 to 1,500.
TOKENS_PER_PICTURE, MAX_TIMES_PER_PICTURE = 1000, 4
# After this many full counts, a low one isn't just of the uncached part.
SURE_AFTER, CACHE_BLOCK_TOKENS = 2, 64
# A server that cuts may keep half of its context free, and a few tokens more or less.
HALF_TOLERANCE_TOKENS = 64
LIMIT_STEP = 1024


class Tokens(Struct, frozen=True):
    """The tokens of a text: ``expected``, the ``fewest`` and the ``most`` by any tokenizer, the standard deviation."""

    expected: float = 0.0
    fewest: float = 0.0
    most: float = 0.0
    deviation: float = 0.0


def _tokens(expected: float, fewest: float, most: float, deviation: float) -> Tokens:
    """Return tokens by their expected number and its factors."""
    return Tokens(expected, expected * fewest, expected * most, expected * deviation)


# What each message adds.
MESSAGE = _tokens(4, 0.75, 1.5, 0.08)
# A server shows a model the schemas of tools in its own form, or not at all.
SCHEMAS = (0.0, 4.0, 1.5)


class PromptSize(Struct, frozen=True, dict=True):
    """The size of a request: its parts, each with a hash, in the order in which they are sent, and its pictures.

    An earlier one has the endpoint's ``count``, 0 if it wasn't read whole.
    """

    parts: Mapping[tuple[int, int], Tokens]
    pictures: int = 0
    count: int = 0

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of the whole, without pictures."""
        return _sum(self.parts.values())

    def deviation_from(self, other: PromptSize) -> float:
        """Return how much the tokens of all parts that only one of both has may vary."""
        one, two = self.parts, other.parts
        return _sum([*(one[key] for key in one.keys() - two), *(two[key] for key in two.keys() - one)]).deviation

    def behind(self, other: PromptSize) -> list[Tokens]:
        """Return the tokens of each part after the beginning that both share."""
        pairs = zip_longest(self.parts, islice(other.parts, len(self.parts)))
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return list(islice(self.parts.values(), shared, None))


class Verdict(Struct, frozen=True):
    """What a count means: of ``sent`` tokens, as well as we know, ``read`` were read.

    ``read`` is ``None`` if the count is of something else: of the uncached part, if ``is_rest``. ``is_whole``: it
    includes everything, although part of it may have been cached.
    """

    sent: int
    read: int | None = None
    cut: bool = False
    is_whole: bool = False
    is_rest: bool = False


def size_of(request: ModelRequest) -> PromptSize:
    parts: dict[tuple[int, int], Tokens] = {}
    pictures, alike = 0, Counter[int]()
    more = [*request.tools, *request.fields.values()]
    if more:
        schemas = json.dumps(more)
        parts[hash((schemas, request.call_tools)), 0] = _tokens(_tokens_of(schemas).expected, *SCHEMAS)
    for message in request.messages:
        calls = message.get("tool_calls")
        text = text_in(message) + ("".join(json.dumps(call.get("function")) for call in calls) if calls else "")
        urls = pictures_in(message)
        key = hash((message["role"], text, *urls))
        parts[key, alike[key]] = _sum((_tokens_of(text), MESSAGE))
        alike[key] += 1  # Equal texts count twice.
        pictures += len(urls)
    return PromptSize(parts, pictures)


def _tokens_of(text: str) -> Tokens:
    classes = REPEATED.sub(rb"\1\1", text.encode("utf-8", "surrogatepass")).translate(CLASS_OF)
    return _sum(_tokens(share * classes.count(n), *factors) for n, (_, share, *factors) in enumerate(CLASSES, 1))


def _sum(parts: Iterable[Tokens]) -> Tokens:
    return Tokens(*map(sum, zip(*map(astuple, parts), strict=True)))


def judge(
    size: PromptSize,
    count: int,
    cached: int,
    earlier: Sequence[PromptSize],
    whole_counts: int,
    picture_tokens: float = TOKENS_PER_PICTURE,
) -> Verdict:
    """Return what a count of a request means.

    ``earlier`` are requests to the same model. ``whole_counts`` is how many counts included everything although part
    may have been cached, or -1 if counts exclude cached tokens. Pictures are no reason for a cut: only text is missed.
    """
    counted = [one for one in earlier if one.count and not one.pictures]
    text, deviation = _predicted(size, counted)
    fewest = max(size.tokens.fewest, text - MAX_DEVIATIONS * deviation)
    sent = text + picture_tokens * size.pictures
    # Some don't count what an earlier request, and perhaps its answer, left in their cache.
    behind = min((size.behind(one) for one in earlier), key=len, default=list(size.parts.values()))
    pictures = MAX_TIMES_PER_PICTURE * TOKENS_PER_PICTURE * size.pictures
    is_more = count > _sum(behind).most + pictures + CACHE_BLOCK_TOKENS
    if count >= fewest:
        return Verdict(round(sent), count, is_whole=is_more)
    if cached and count + cached >= fewest:
        return Verdict(round(sent), count + cached)
    if whole_counts < SURE_AFTER and not is_more and len(behind) < len(size.parts) and count >= _sum(behind[1:]).fewest:
        return Verdict(round(sent), is_rest=True)
    if count < MIN_LIMIT_TOKENS // 2 or whole_counts < 0 or not _is_steady(counted):
        return Verdict(round(sent))
    return Verdict(ceil(max(sent, fewest)), count, cut=True)


def guess_limit(read: int, accepted: int, sent: int) -> int:
    """Return the likely context of an endpoint that read this much of a request; it ``accepted`` a length before."""
    doubled = 1 << (read - 1).bit_length()
    if 0 < read - doubled // 2 <= HALF_TOLERANCE_TOKENS and accepted <= doubled <= sent:
        return doubled
    least = max(read, accepted)
    rounded = ceil(least / LIMIT_STEP) * LIMIT_STEP
    # As much is kept free for the answer, so that too high a guess cuts no other request.
    return rounded if 3 * rounded <= 4 * least else ceil(least / MIN_LIMIT_TOKENS) * MIN_LIMIT_TOKENS


def _predicted(size: PromptSize, counted: Sequence[PromptSize]) -> tuple[float, float]:
    """Return the tokens of a request without its pictures, and the standard deviation.

    They are those of the request most like it that was counted, and in the same ratio those of what only one has.
    """
    expected = size.tokens.expected
    if not counted:
        return max(1.0, expected), OF_TOKENIZER * expected + TEMPLATE_TOKENS
    nearest = min(counted, key=lambda one: size.deviation_from(one))
    ratio = min(MAX_RATIO, max(MIN_RATIO, nearest.count / max(1.0, nearest.tokens.expected)))
    sent = nearest.count + ratio * (expected - nearest.tokens.expected)
    return max(1.0, sent), ROUNDING + ratio * size.deviation_from(nearest)


def _is_steady(counted: Sequence[PromptSize]) -> bool:
    """Return whether one tokenizer explains all counts: a gateway may answer with several models under one name."""
    predicted = ((one.count, *_predicted(one, [before])) for before, one in pairwise(counted))
    return all(count <= sent + MAX_DEVIATIONS * deviation for count, sent, deviation in predicted)
