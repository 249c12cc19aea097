"""Groups conversations by date, and extracts search snippets. Pure.

Knows neither Flask, the database nor the clock: the time is passed in.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo

from msgspec import Struct

from rag_assistant.records import ListedConversation
from rag_assistant.retrieval.tokenize import unspaced_char
from rag_assistant.web.i18n.languages import N_

PINNED = N_("Pinned")
# Characters of a turn around the first matching word.
BEFORE_HIT = 40
SNIPPET = 160
# How much of a turn is searched for its first match. A page has up to fifty turns.
LOOKED_THROUGH = 50_000
# How many letters at a word's end may differ when its stem matches.
ENDING = 3
# How many letters at its beginning must match.
BEGINNING = 4
MAX_ZONE_CHARS = 64

# Markup around words, and before a heading.
MARKDOWN = re.compile(r"\*\*|__|`+|^#+ ", re.MULTILINE)
WORD = re.compile(r"\w+")


class Group(Struct, frozen=True):
    """Consecutive conversations in the list under one heading: text, or the first of a month.

    Those of a project are below its name.
    """

    title: str | date
    conversations: tuple[ListedConversation, ...]
    project_id: int | None = None


def groups_of(conversations: Sequence[ListedConversation], moment: datetime, zone: tzinfo) -> list[Group]:
    """Return conversations, most recently used first, grouped by day, month and year of last use."""
    today = moment.astimezone(zone).date()
    groups: list[tuple[str | date, list[ListedConversation]]] = []
    for one in conversations:
        title = _heading(one.updated_at.astimezone(zone).date(), today)
        if not groups or groups[-1][0] != title:
            groups.append((title, []))
        groups[-1][1].append(one)
    return [Group(title, tuple(members)) for title, members in groups]


def _heading(day: date, today: date) -> str | date:
    ago = (today - day).days
    if ago < 1:
        return N_("Today")
    if ago == 1:
        return N_("Yesterday")
    if ago <= 7:
        return N_("Previous 7 days")
    if ago <= 30:
        return N_("Previous 30 days")
    return day.replace(day=1) if day.year == today.year else str(day.year)


def zone_named(name: str | None) -> tzinfo:
    """Return the time zone of that name, UTC if there is none."""
    if not name or len(name) > MAX_ZONE_CHARS:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        # An invalid name, a folder of zones, or a machine without time zone data.
        return UTC


def snippet_of(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the part of a text around the first of ``words`` as pieces, each with whether it is one of them.

    Without a match, the text's beginning.
    """
    line = " ".join(MARKDOWN.sub("", text[:LOOKED_THROUGH]).split())
    first_hit = next(_hits(line, words), None)
    start = max(0, first_hit[0] - BEFORE_HIT) if first_hit else 0
    if start and first_hit:
        # Begin with a whole word if there are blanks.
        blank = line.find(" ", start, first_hit[0])
        start = blank + 1 if blank >= 0 else start
    end = min(len(line), start + SNIPPET)
    pieces: list[tuple[str, bool]] = [("… ", False)] if start else []
    position = start
    for first, last in _hits(line[:end], words, start):
        pieces += [(line[position:first], False), (line[first:last], True)]
        position = last
    more = end < len(line) or len(text) > LOOKED_THROUGH
    pieces.append((line[position:end] + (" …" if more else ""), False))
    return [piece for piece in pieces if piece[0]]


def _hits(line: str, words: Sequence[str], start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions in a line, from ``start`` on, of the words or their stems."""
    sought = [word.casefold() for word in words]
    beginnings = {word[:BEGINNING] for word in sought}
    lengths = {len(beginning) for beginning in beginnings}
    foreign = [word for word in sought if not word.isascii()]
    for match in WORD.finditer(line, start):
        text_word = match[0].casefold()
        # Nearly every word of a long text ends here, whatever is searched for.
        begins_so = any(text_word[:length] in beginnings for length in lengths)
        if begins_so and any(_same_word(text_word, word) for word in sought):
            yield match.span()
        elif not text_word.isascii():
            # Scripts without blanks: the word is somewhere within, even if in Latin letters.
            possible = sought if unspaced_char().search(text_word) else foreign
            hits = [(text_word.find(word), len(word)) for word in possible if word in text_word]
            if hits and len(text_word) == len(match[0]):
                first, length = min(hits)
                yield match.start() + first, match.start() + first + length


def _same_word(text_word: str, sought: str) -> bool:
    if text_word.startswith(sought):
        return text_word.isascii() or text_word == sought
    shared = max(BEGINNING, len(sought) - ENDING)
    return text_word[:shared] == sought[:shared] and len(sought) >= shared and len(text_word) - shared <= ENDING
