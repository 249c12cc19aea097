"""Find the dates in a text, written out in six languages or as figures, to compare them with another text. Pure."""

import json
import re
from itertools import accumulate
from pkgutil import get_data

# By month, the names that each language has for it; and the ways to write dates with them.
_DATA = json.loads(get_data(str(__package__), "dates.json") or b"")
NAMES = [re.compile(names) for names in _DATA["months"]]
PARTS = _DATA["parts"] | {"MONTH": rf"(?<![^\W\d_])(?P<month>{'|'.join(_DATA['months'])})(?![^\W\d_])\.?"}
*WRITTEN, NAMED = (
    re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], pattern))
    for pattern in (*_DATA["written"], _DATA["named"])
)
NUMBER = re.compile(r"\d{1,4}")
# How far from a month's name further days may be: "3, 5 and 8 April".
AROUND_CHARS = 24

# A month with a day, or all of it.
Day = tuple[int, int | None]


def dates_in(text: str) -> list[tuple[re.Match[str], frozenset[Day]]]:
    """Return the dates in a text, in order, with what each may mean: 3/4/2024 may mean two days."""
    dates = [(match, days) for pattern in WRITTEN for match in pattern.finditer(text) if (days := _days(match))]
    dates.sort(key=lambda date: (date[0].start(), -date[0].end()))
    ends = accumulate((match.end() for match, _ in dates), max, initial=0)
    return [date for date, end in zip(dates, ends, strict=False) if date[0].start() >= end]


def days_in(text: str) -> set[Day]:
    """Return the days that a text has, leniently: each month with every number near it, and all of it."""
    days = {day for _, days in dates_in(text) for day in days}
    for match in NAMED.finditer(text):
        near = text[max(0, match.start() - AROUND_CHARS) : match.end() + AROUND_CHARS]
        month = _month(match["month"] or match["chinese"])
        days |= {(month, None), *((month, int(number)) for number in NUMBER.findall(near))}
    return days | {(month, None) for month, _ in days}


def _days(match: re.Match[str]) -> frozenset[Day]:
    parts = match.groupdict()
    month, day = _month(parts["month"]), int(parts["day"]) if parts.get("day") else None
    days = {(month, day), *([(day, month)] if day and parts.get("mark") in ("/", "-") else [])}
    return frozenset((month, day) for month, day in days if 1 <= month <= 12 and (day is None or 1 <= day <= 31))


def _month(text: str) -> int:
    """Return the number of a month, from its name or its figures."""
    return int(text) if text.isdigit() else next(n for n, names in enumerate(NAMES, 1) if names.fullmatch(text))
