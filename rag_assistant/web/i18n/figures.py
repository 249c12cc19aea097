"""Dates and numbers as a language writes them: those of a list are often the same."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache

from babel.dates import format_date, format_skeleton, format_time, format_timedelta
from babel.numbers import format_decimal

from rag_assistant.web.i18n.languages import LANGUAGES


@lru_cache(maxsize=1_000)
def day(code: str, when: date, *, short: bool = False) -> str:
    """Return a day: "3 September 2026", or in short "3 Sept 2026"."""
    return format_date(when, "medium" if short else "long", LANGUAGES[code].locale)


def month(code: str, when: date) -> str:
    """Return a month: "May 2026"."""
    return format_skeleton("yMMMM", when, locale=LANGUAGES[code].locale)


def day_and_time(code: str, when: datetime) -> str:
    """Return a moment: "3 Sept 2026, 14:05"."""
    return f"{day(code, when, short=True)}, {format_time(when, 'short', locale=LANGUAGES[code].locale)}"


def duration(code: str, seconds: float) -> str:
    """Return about how long something takes: "45 seconds", "5 minutes"."""
    return format_timedelta(timedelta(seconds=seconds), locale=LANGUAGES[code].locale)


@lru_cache(maxsize=1_000)
def number(code: str, value: float, digits: int | None = None) -> str:
    """Return a number with its thousands apart: "12,345"; with ``digits``, that many behind the point."""
    pattern = None if digits is None else f"#,##0.{'0' * digits}".rstrip(".")
    return format_decimal(value, pattern, LANGUAGES[code].locale)
