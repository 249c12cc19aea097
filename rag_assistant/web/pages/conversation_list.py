"""How a list of conversations reads: grouped by date, and what was found in each. Pure.

It knows neither Flask nor the database, and no clock: the moment comes in.
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
# How much of a turn stands around the first word that was found in it, in characters.
BEFORE_HIT = 40
SNIPPET = 160
# How much of a turn is looked through for its first word. Fifty turns that fill a page are looked through at once.
LOOKED_THROUGH = 50_000
# Up to so many letters at its end may differ where a word is found by its stem.
ENDING = 3
# So many letters at its beginning never differ.
BEGINNING = 4
MAX_ZONE_CHARS = 64

# What Markdown puts around words, and before a heading.
MARKDOWN = re.compile(r"\*\*|__|`+|^#+ ", re.MULTILINE)
WORD = re.compile(r"\w+")


class Group(Struct, frozen=True):
    """Some conversations that follow each other in the list, under one heading: in words, or the first of a month.

    Those of a project stand below its name.
    """

    title: str | date
    conversations: tuple[ListedConversation, ...]
    project_id: int | None = None


def groups_of(conversations: Sequence[ListedConversation], moment: datetime, zone: tzinfo) -> list[Group]:
    """Return conversations, the latest used first, under the days, months and years in which they were last used."""
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
        # A name that is none, a folder of names, or a machine without the tables of zones.
        return UTC


def snippet_of(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the part of a text around the first of ``words`` as pieces, each with whether it is one of them.

    Without any of them in it, the text's beginning.
    """
    line = " ".join(MARKDOWN.sub("", text[:LOOKED_THROUGH]).split())
    first_hit = next(_hits(line, words), None)
    start = max(0, first_hit[0] - BEFORE_HIT) if first_hit else 0
    if start and first_hit:
        # Begin with a whole word where there are blanks.
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
    """Yield where words of a line, from ``start`` on, are some of those that were sought, or have their stem."""
    sought = [word.casefold() for word in words]
    beginnings = {word[:BEGINNING] for word in sought}
    lengths = {len(beginning) for beginning in beginnings}
    foreign = [word for word in sought if not word.isascii()]
    for match in WORD.finditer(line, start):
        text_word = match[0].casefold()
        # Nearly every word of a long text ends here, whatever was sought.
        begins_so = any(text_word[:length] in beginnings for length in lengths)
        if begins_so and any(_same_word(text_word, word) for word in sought):
            yield match.span()
        elif not text_word.isascii():
            # Scripts without blanks: the word stands somewhere within, also one in Latin letters.
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
