"""Find the values in a sentence that another one may state differently: figures with units, dates, times. Pure.

A number without a unit isn't one: chapter 3 and chapter 4 are no contradiction, nor are two telephone numbers.
"""

import re
from collections.abc import Iterator
from itertools import product
from pkgutil import get_data
from typing import Any

from msgspec.json import decode as from_json

from rag_assistant.retrieval.claims import DIGITS
from rag_assistant.retrieval.dates import dates_in
from rag_assistant.retrieval.tokenize import stem

# Words and patterns in English and German: numbers, what is no unit, labels of numbers.
WORDS = from_json(get_data(str(__package__), "values.json") or b"")
NUMBERS: dict[str, int] = WORDS["numbers"]
PARTS = {"NUMBERS": "|".join(NUMBERS), "NO_UNIT": "|".join([*NUMBERS, *WORDS["no_unit"].split()])}
# "28 vacation" is part of "28 vacation days". What stands alone has the key or the column before it as its unit.
PATTERNS = {
    name: re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], text), re.IGNORECASE)
    for name, text in WORDS["patterns"].items()
}
MAX_BEFORE_CHARS, UNIT_CHARS = 14, 4
ZEROS = re.compile(r"[.,]00?$|(?<=[.,][1-9])0$")  # 49 and 49.00 are one figure, and so are 4.5 and 4.50.

# A unit, "date" or "time"; and how much, or when.
Amount = tuple[str, Any]


def values_in(text: str) -> tuple[dict[Amount, str], str]:
    """Return the values of a sentence as written, each by what it means, and the sentence without them."""
    values: dict[Amount, str] = {}
    for find in (_moments, _figures):
        for match, amount in find(text):
            values.setdefault(amount, (match[0] + (match.groupdict().get("behind") or "")).strip(" .,"))
            text = text[: match.start()] + ";" * len(match[0]) + text[match.end() :]
    return values, text


def may_be_one(one: Amount, other: Amount) -> bool:
    """Return whether two dates or times may be the same, one of them less exact: "May 2024", "3/4/2024", "5:00"."""
    if one[0] == "time":
        (hour, minute), (another, minutes) = one[1], other[1]
        return bool(minute == minutes and (hour - another) % 12 == 0)
    if one[0] != "date":
        return False
    (days, year), (others, another_year) = one[1], other[1]
    pairs = product(days, others) if days and others else [((1, None), (1, None))]
    may_be_day = any(a[0] == b[0] and (a[1] == b[1] or None in (a[1], b[1])) for a, b in pairs)
    return may_be_day and (year == another_year or None in (year, another_year))


def _moments(text: str) -> Iterator[tuple[re.Match[str], Amount]]:
    for match, days in dates_in(text):
        yield match, ("date", (days, match["year"]))
    for match in PATTERNS["year"].finditer(text):
        if PATTERNS["before_year"].search(text, max(0, match.start() - MAX_BEFORE_CHARS), match.start()):
            yield match, ("date", (frozenset(), match[0]))
    for match in PATTERNS["time"].finditer(text):
        hour = int(match[1] or match[4])
        hour = hour % 12 + 12 * (match[3] in ("p", "P")) if match[3] else hour
        yield match, ("time", (hour, int(match[2] or match[5] or 0)))


def _figures(text: str) -> Iterator[tuple[re.Match[str], Amount]]:
    for match in PATTERNS["figure"].finditer(text):
        before = text[max(0, match.start("number") - MAX_BEFORE_CHARS) : match.start("number")]
        unit = match["currency"] or match["unit"] or (":" if PATTERNS["key"].search(before) else "")
        if unit and not PATTERNS["label"].search(before):
            number = match["number"].lower()
            digits = str(NUMBERS.get(number) or DIGITS.sub("", ZEROS.sub("", number)))
            yield match, (stem(unit.lower())[:UNIT_CHARS], digits)
