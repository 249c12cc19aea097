"""What an endpoint's count of a prompt means: all that was sent, only what its cache had not, or that it cut.

Some servers cut a prompt that is too long by themselves, answer with 200, and tell by nothing but ``prompt_tokens``
(Ollama does so by default). Pure: no network, no clock, no state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile, zip_longest
from math import ceil
from typing import Any, TypeGuard

from msgspec import Struct

from rag_assistant.records import ModelRequest, pictures_in, text_in

# No context is smaller: a count of less than half was taken of something else.
MIN_LIMIT_TOKENS = 256
# Tokens of one character, by the first byte that it has in UTF-8: the mean of five tokenizers (bench/history.md). This
# comes nearer than ``estimate_tokens``, which rather says too much.
LATIN, OTHERS, DIGITS, UNSURE = range(4)
CLASSES = (
    (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", LATIN, 0.24),
    (b"0123456789", DIGITS, 1.1),
    (b"\n", LATIN, 0.75),
    (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\xc2\xe2", LATIN, 0.56),
    (bytes(range(0xC3, 0xCB)), LATIN, 1.5),  # Letters with accents.
    (bytes(range(0xCB, 0xE2)), OTHERS, 0.66),  # From Greek to Thai.
    (bytes(range(0xE3, 0xF5)), OTHERS, 0.89),  # East Asia, and pictographs.
)
CLASS_OF = bytes(next((n for n, (firsts, _, _) in enumerate(CLASSES, 1) if byte in firsts), 0) for byte in range(256))
# A line of dashes is a token or two.
REPEATED = re.compile(rb"([^\w ])\1{3,}")
TOKENS_PER_MESSAGE = 4
TOKENS_PER_PICTURE = 1000
# How many times as many tokens any tokenizer makes, at least and at most: of Latin script and code, of others, and of
# what a server may show to a model in a form of its own, or not at all.
FEWEST, MOST = (0.75, 0.42, 0.42, 0.0), (1.5, 3.0, 1.6, 4.0)
# The same against an earlier request of which most is the same, if all of it is in one kind of script.
MIN_OF_SAME, MAX_OF_SAME, MAX_OTHERS, ROUNDING = 0.72, 1.5, 0.03, 0.99
MIN_SHARED = 0.5
# After so many counts of everything, a low one is not of what was not cached.
SURE_AFTER, CACHE_BLOCK_TOKENS = 2, 64
# One that cuts may keep half of its context free, and a few tokens more or less.
HALF_TOLERANCE_TOKENS = 64
LIMIT_STEP = 1024

# Expected tokens: of Latin script, of other scripts, and of what is unsure.
Tokens = tuple[float, ...]


class PromptSize(Struct, frozen=True, dict=True):
    """How long a request is: its parts by what tells them from others, in the order in which they are sent."""

    parts: Mapping[tuple[int, int], Tokens]

    @cached_property
    def tokens(self) -> Tokens:
        """What is to be expected of the whole."""
        return _sum(self.parts.values())

    @cached_property
    def expected(self) -> float:
        """How many tokens are to be expected."""
        return sum(self.tokens)

    def beside(self, other: PromptSize) -> Tokens:
        """Return what is to be expected of the parts that ``other`` has not."""
        return _sum(tokens for key, tokens in self.parts.items() if key not in other.parts)

    def behind(self, other: PromptSize) -> Tokens:
        """Return what is to be expected of all that follows on the beginning that both have in common."""
        pairs = zip_longest(self.parts, islice(other.parts, len(self.parts)))
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return _sum(islice(self.parts.values(), shared, None))


class CountedPrompt(Struct, frozen=True):
    """An earlier request, and its count, 0 where it was not read whole."""

    size: PromptSize
    count: int

    @property
    def times_expected(self) -> float:
        """How many times as many tokens it has as was to be expected."""
        return self.count / max(1.0, self.size.expected)


class Verdict(Struct, frozen=True):
    """What a count means: ``sent`` tokens were sent, as well as we know, and ``read`` of them were read.

    ``read`` is ``None`` where the count is of something else: of what was not cached, if ``is_rest``. ``is_whole``: it
    is of everything, although a cache may have had a part.
    """

    sent: int
    read: int | None = None
    cut: bool = False
    is_whole: bool = False
    is_rest: bool = False


def size_of(request: ModelRequest) -> PromptSize:
    """Return how long a request is."""
    parts: dict[tuple[int, int], Tokens] = {}
    more = [*request.tools, *request.fields.values()]
    if more:
        schemas = json.dumps(more)
        parts[hash((schemas, request.call_tools)), 0] = 0.0, 0.0, 0.0, sum(_expected(schemas))
    for message in request.messages:
        calls = message.get("tool_calls")
        text = text_in(message) + ("".join(json.dumps(call.get("function")) for call in calls) if calls else "")
        key, nth = hash((message["role"], text)), 0
        while (key, nth) in parts:  # Equal texts are two.
            nth += 1
        tokens = _expected(text)
        pictures = float(TOKENS_PER_PICTURE * len(pictures_in(message)))
        parts[key, nth] = tokens[LATIN] + TOKENS_PER_MESSAGE, tokens[OTHERS], tokens[DIGITS], pictures
    return PromptSize(parts)


def _expected(text: str) -> Tokens:
    classes = REPEATED.sub(rb"\1\1", text.encode("utf-8", "surrogatepass")).translate(CLASS_OF)
    tokens = [0.0] * 4
    for n, (_, kind, weight) in enumerate(CLASSES, 1):
        tokens[kind] += weight * classes.count(n)
    return tuple(tokens)


def reported_counts(usage: Mapping[str, Any] | None) -> tuple[int | None, int]:
    """Return the tokens of a prompt as an endpoint reports them, and how many of those came from its cache."""
    usage = usage or {}
    details = usage.get("prompt_tokens_details")
    count, cached = usage.get("prompt_tokens"), details.get("cached_tokens") if isinstance(details, dict) else None
    if not _is_count(count):
        return None, 0
    cached = cached if _is_count(cached) else 0
    return (count + cached, cached) if cached > count else (count, cached)


def judge(size: PromptSize, count: int, cached: int, earlier: Sequence[CountedPrompt], whole_counts: int) -> Verdict:
    """Return what a count of a request means.

    ``earlier`` are requests to the same model. ``whole_counts`` is how many counts were of everything although a cache
    may have had a part, or -1 where counts are of what it had not.
    """
    sent, fewest = size.expected, _times(FEWEST, size.tokens)
    counted = [one for one in earlier if one.count]
    like = min(counted, key=lambda one: sum(size.beside(one.size)), default=None)
    if like is not None:
        added, removed = size.beside(like.size), like.size.beside(size)
        if size.expected - sum(added) >= MIN_SHARED * size.expected:
            sent = max(1.0, like.count + like.times_expected * (sum(added) - sum(removed)))
            least, most = _bounds(like)
            fewest = max(fewest, ROUNDING * like.count + _times(least, added) - _times(most, removed))
        else:
            sent *= like.times_expected
    # Some do not count what an earlier request left in their cache.
    rest = min((size.behind(one.size) for one in earlier), key=sum, default=size.tokens)
    is_more = count > _times(MOST, rest) + CACHE_BLOCK_TOKENS
    if count >= fewest:
        return Verdict(round(sent), count, is_whole=is_more)
    if cached and count + cached >= fewest:
        return Verdict(round(sent), count + cached)
    if whole_counts < SURE_AFTER and not is_more and rest != size.tokens and count >= _times(FEWEST, rest):
        return Verdict(round(sent), is_rest=True)
    if count < MIN_LIMIT_TOKENS // 2 or whole_counts < 0:
        return Verdict(round(sent))
    return Verdict(ceil(max(sent, fewest)), count, cut=True)


def guess_limit(read: int, accepted: int, sent: int) -> int:
    """Return the context that an endpoint probably has that read so much of a request; it took ``accepted`` before."""
    doubled = 1 << (read - 1).bit_length()
    if 0 < read - doubled // 2 <= HALF_TOLERANCE_TOKENS and accepted <= doubled <= sent:
        return doubled
    return ceil(max(read, accepted) / LIMIT_STEP) * LIMIT_STEP


def _bounds(like: CountedPrompt) -> tuple[Sequence[float], Sequence[float]]:
    """Return how many times as many tokens a text has as expected, at least and at most, beside an earlier request."""
    least, most = list(FEWEST), list(MOST)
    if like.size.tokens[OTHERS] < MAX_OTHERS * like.size.expected:
        least[LATIN] = max(least[LATIN], MIN_OF_SAME * like.times_expected)
        most[LATIN] = min(most[LATIN], MAX_OF_SAME * like.times_expected)
    return least, most


def _sum(parts: Iterable[Tokens]) -> Tokens:
    return tuple(map(sum, zip(*parts, strict=True))) or (0.0,) * 4


def _times(factors: Sequence[float], tokens: Tokens) -> float:
    return sum(factor * one for factor, one in zip(factors, tokens, strict=True))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
