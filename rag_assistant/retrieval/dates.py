"""Find dates in a text, written in six languages or as figures, and the one that a document gives itself. Pure."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from itertools import accumulate
from pkgutil import get_data

# By month, the names that each language has for it; and the ways to write dates with them.
_DATA = json.loads(get_data(str(__package__), "dates.json") or b"")
NAMES = [re.compile(names) for names in _DATA["months"]]
PARTS = _DATA["parts"] | {"MONTH": rf"(?<![^\W\d_])(?P<month>{'|'.join(_DATA['months'])})(?![^\W\d_])\.?"}
*WRITTEN, NAMED = (
    re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], pattern), flags)
    for pattern, flags in (*((one, re.IGNORECASE) for one in _DATA["written"]), (_DATA["named"], 0))
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
    return int(text) if text.isdigit() else next(n for n, names in enumerate(NAMES, 1) if names.fullmatch(text.title()))


# What a date follows: words for when it is valid, was changed (the latest counts) or published, perhaps a weekday.
LABELS = [
    re.compile(rf"(?<![A-Za-zÀ-ÿء-ي])(?:{labels})\W{{0,8}}(?:\w{{2,10}}\.?,? )?\Z", re.IGNORECASE | re.MULTILINE)
    for labels in _DATA["labels"]
]
# The ranks of two of these; of how many years ahead a document says from when on it is valid.
VALID, CHANGED, YEARS_AHEAD = 0, 1, 10
# A table with its caption. Its rows date a document if it is of revisions, or if words in the row say so.
TABLE = re.compile(r"^(?P<head>[^|\n]{0,80}\n{0,2}\|[^\n]*)(?:\n\|[^\n]*)*", re.MULTILINE)
REVISIONS, CHANGES = (re.compile(_DATA[name], re.IGNORECASE) for name in ("revisions", "changes"))
MONTH_NAME = rf"(?<![^\W\d_])(?:{'|'.join(_DATA['months'])})(?![^\W\d_])"
# A date alone on its line, not one of a list; a place may precede it.
ALONE = re.compile(r"(?:^|\n)(?![ \t]*[-*+•] )[^\w\n]{0,12}(?:[^\W\d_][\w .-]{1,24}, (?:(?:den|le|el) )?)?\Z")
CHARS_READ, CHARS_BEFORE, CHARS_FOR_ALONE = 3_000, 100, 600
# In these, 3/4/2024 has the month or the day first.
UNDECIDED = ("", "english")
DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)")
MONTH = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.](0[1-9]|1[0-2])(?!\d)")
YEAR = re.compile(r"(?<![^\W_])((?:19|20)\d\d)(?![^\W_])")


def date_in_text(text: str, language: str, today: date) -> str | None:
    """Return the date that a line near the start of a document in a ``language`` gives: 2024-05-31, 2024-05, 2024."""
    start = text[:CHARS_READ]
    by_rank: dict[int, str] = {}
    revisions = [table.span() for table in TABLE.finditer(start) if REVISIONS.search(table["head"])]
    for match, iso in iso_dates(start, language):
        before = start[max(0, match.start() - CHARS_BEFORE) : match.start()]
        rank = next((n for n, label in enumerate(LABELS) if label.search(before)), None)
        after = start[match.end() : match.end() + 3].partition("\n")[0]
        row = before.rpartition("\n")[2]
        if row.startswith("|"):
            is_revision = iso <= today.isoformat() and any(a <= match.start() < b for a, b in revisions)
            rank = CHANGED if is_revision else rank if re.search(r"[^\W\d_]{2}", row) else None
        elif rank is None and match.start() < CHARS_FOR_ALONE and ALONE.search(before) and not after.strip(" .*_|)\r"):
            rank = len(LABELS)
        # A version may be valid from a year far ahead; other dates to come are none of a document's.
        if rank is not None and iso[:4] <= str(today.year + (YEARS_AHEAD if rank == VALID else 1)):
            is_newer = rank == CHANGED and by_rank.get(rank, iso) < iso <= today.isoformat()
            by_rank[rank] = iso if is_newer else by_rank.get(rank, iso)
    return by_rank[min(by_rank)] if by_rank else None


def date_in_name(name: str, today: date) -> str | None:
    """Return the date in a document's name; a year alone counts if it is the only one."""
    dates = [iso for _, iso in iso_dates(name.replace("_", " "), "")]
    if month := MONTH.search(name):
        dates.insert(0, f"{month[1]}-{month[2]}")
    if day := DAY.search(name):
        with suppress(ValueError):
            dates.insert(0, date(int(day[1]), int(day[3]), int(day[4])).isoformat())
    years = set(YEAR.findall(name))
    dates += years if len(years) == 1 else []
    return next((iso for iso in dates if iso[:4] <= str(today.year + 1)), None)


def iso_dates(text: str, language: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the dates with a year in a text, in order. What may mean two days, such as 3/4/2024 in English, is none."""
    for match, days in dates_in(text):
        parts = match.groupdict()
        is_undecided = len(days) > 1 and language in UNDECIDED
        if is_undecided or not 1900 <= int(parts.get("year") or 0) <= 2100:
            continue
        # With figures, the other order is only possible where this one is not.
        written = int(parts["day"]) if parts.get("day") else None
        month, day = next((one for one in days if one[1] == written), min(days))
        with suppress(ValueError):
            whole = date(int(parts["year"]), month, day or 1).isoformat()
            yield match, whole if day else whole[:7]
