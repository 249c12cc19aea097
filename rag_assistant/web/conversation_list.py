"""How a list of conversations reads: grouped by date, page by page, and what was found in each. Pure.

It knows neither Flask nor the database, and no clock: the moment comes in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from rag_assistant.errors import InvalidRequest
from rag_assistant.records import LARGEST_NUMBER, Conversation

PINNED = "Pinned"
# How much of a turn stands around the first word that was found in it, in characters.
BEFORE_HIT = 40
SNIPPET = 160
# Up to so many letters at its end may differ where a word is found by its stem.
ENDING = 3
LONGEST_ZONE = 64

PLACE = re.compile(r"(\d{1,17})-(\d{1,10})", re.ASCII)
# What Markdown puts around words, and before a heading.
MARKDOWN = re.compile(r"\*\*|__|`+|^#+ ", re.MULTILINE)
WORD = re.compile(r"\w+")
BEGINNING_OF_TIME = datetime(1970, 1, 1, tzinfo=UTC)

Place = tuple[datetime, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Some conversations that follow each other in the list, under one heading."""

    title: str
    conversations: tuple[Conversation, ...]


def groups_of(conversations: Sequence[Conversation], moment: datetime, zone: tzinfo) -> list[Group]:
    """Return conversations, the latest used first, under the days, months and years in which they were last used."""
    today = moment.astimezone(zone).date()
    groups: list[tuple[str, list[Conversation]]] = []
    for one in conversations:
        title = _heading(one.updated_at.astimezone(zone).date(), today)
        if not groups or groups[-1][0] != title:
            groups.append((title, []))
        groups[-1][1].append(one)
    return [Group(title, tuple(members)) for title, members in groups]


def _heading(day: date, today: date) -> str:
    ago = (today - day).days
    if ago < 1:
        return "Today"
    if ago == 1:
        return "Yesterday"
    if ago <= 7:
        return "Previous 7 days"
    if ago <= 30:
        return "Previous 30 days"
    return f"{day:%B %Y}" if day.year == today.year else str(day.year)


def zone_named(name: str | None) -> tzinfo:
    """Return the time zone of that name, UTC if there is none."""
    if not name or len(name) > LONGEST_ZONE:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        # A name that is none, a folder of names, or a machine without the tables of zones.
        return UTC


def place_of(moment: datetime, conversation_id: int) -> str:
    """Return a place in a list as it stands in an address: microseconds since 1970, then the id."""
    microseconds = (moment - BEGINNING_OF_TIME) // timedelta(microseconds=1)
    return f"{microseconds}-{conversation_id}"


def place_in(name: str, text: str | None) -> Place | None:
    """Return the place that ``place_of`` spelled; None for None. Raises InvalidRequest."""
    if text is None:
        return None
    spelled = PLACE.fullmatch(text)
    if spelled is None or int(spelled[2]) > LARGEST_NUMBER:
        raise InvalidRequest(f'{name} is "{text[:50]}"; it must be what next_before said.')
    return BEGINNING_OF_TIME + timedelta(microseconds=int(spelled[1])), int(spelled[2])


def snippet_of(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the part of a text around the first of ``words`` as pieces, each with whether it is one of them.

    Without any of them in it, the text's beginning.
    """
    line = " ".join(MARKDOWN.sub("", text).split())
    hits = list(_hits(line, words))
    start = max(0, hits[0][0] - BEFORE_HIT) if hits else 0
    if start:
        # Begin with a whole word where there are blanks.
        blank = line.find(" ", start, hits[0][0])
        start = blank + 1 if blank >= 0 else start
    end = min(len(line), max(start + SNIPPET, hits[0][1] if hits else 0))
    pieces: list[tuple[str, bool]] = [("… ", False)] if start else []
    position = start
    for first, last in hits:
        if last > end:
            break
        pieces += [(line[position:first], False), (line[first:last], True)]
        position = last
    pieces.append((line[position:end] + (" …" if end < len(line) else ""), False))
    return [piece for piece in pieces if piece[0]]


def _hits(line: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where words of a line are some of those that were sought, or have their stem."""
    sought = [word.casefold() for word in words]
    for match in WORD.finditer(line):
        known = match[0].casefold()
        if any(_same_word(known, word) for word in sought):
            yield match.span()
        elif not known.isascii():
            # Scripts without blanks: the word stands somewhere within.
            places = [(known.find(word), len(word)) for word in sought if word in known]
            if places and len(known) == len(match[0]):
                first, length = min(places)
                yield match.start() + first, match.start() + first + length


def _same_word(known: str, sought: str) -> bool:
    if known.startswith(sought):
        return known.isascii() or known == sought
    shared = max(4, len(sought) - ENDING)
    return known[:shared] == sought[:shared] and len(sought) >= shared and len(known) - shared <= ENDING
