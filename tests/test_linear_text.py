"""What runs over text from a document, a model, a person or another server takes time in proportion to its length."""

import re
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

from tests.testkit.patterns import Pattern, Text, every_pattern, made_in_functions, worst_texts

CHARS = 4_000
# Of four times the text: linear is 4, quadratic 16. Less than this time is measured badly.
MAX_GROWTH = 9
MIN_SECONDS = 0.001
# A pattern that is not linear takes longer than a loop that copies what is before.
CHARS_OF_A_PATTERN, MIN_SECONDS_OF_A_PATTERN = 2_000, 0.0002
# So that each test with every text ends in time.
SHARES = 3
# An exponential pattern doesn't come to the end of more.
FEW_CHARS, MANY_CHARS = 22, 400


def seconds(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def is_linear(work: Callable[[int], object], most: int = CHARS, least: float = MIN_SECONDS) -> bool:
    """Return whether work on a text of a number of characters grows with it; tried again before it is denied."""
    if seconds(partial(work, FEW_CHARS)) > 0.1 or seconds(partial(work, MANY_CHARS)) > 0.5:
        return False
    for chars in (most, most, 2 * most, 2 * most):
        long = seconds(partial(work, chars))
        if long < least or long < MAX_GROWTH * seconds(partial(work, chars // 4)):
            return True
    return False


def used(pattern: re.Pattern[Any], method: str, text: Text, chars: int) -> object:
    given = text.of(chars).encode(errors="replace") if isinstance(pattern.pattern, bytes) else text.of(chars)
    if method in ("match", "search", "fullmatch"):
        return getattr(pattern, method)(given)
    return sum(1 for _ in pattern.finditer(given))


def superlinear(pattern: Pattern, every: bool = False) -> str | None:
    """Return how a pattern takes too long, ``None`` if it never does."""
    for method in pattern.methods:
        for text in worst_texts(pattern.compiled, every):
            sizes = (CHARS, MIN_SECONDS) if every else (CHARS_OF_A_PATTERN, MIN_SECONDS_OF_A_PATTERN)
            if not is_linear(partial(used, pattern.compiled, method, text), *sizes):
                return f"{pattern.name}.{method} on {text}"
    return None


@cache
def patterns() -> list[Pattern]:
    return list(every_pattern())


@pytest.mark.parametrize("every", [False, *(pytest.param(share, marks=pytest.mark.long) for share in range(SHARES))])
def test_every_pattern_of_the_package_is_linear(every: int | bool) -> None:
    assert len(patterns()) > 250
    share = patterns() if every is False else patterns()[every::SHARES]
    assert [found for one in share if (found := superlinear(one, every is not False))] == []


def test_no_pattern_is_made_where_no_test_sees_it() -> None:
    assert list(made_in_functions()) == []


@pytest.mark.parametrize("pattern", [r"\s*\d", r"#+\s+(.*?)[\s#]*$", r"(a|a)*b", r"<a[^>]*>"])
def test_a_pattern_that_is_not_linear_is_found(pattern: str) -> None:
    # On a busy machine, one measurement may be wrong.
    assert any(superlinear(Pattern(re.compile(pattern), ("search",), "it")) for _ in range(3))
