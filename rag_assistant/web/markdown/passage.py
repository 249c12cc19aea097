"""The part of a document's text that a page shows, and how its passage stays marked from Markdown to HTML. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct

from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.leads import Leads

# Longer texts are shown in parts: a browser needs minutes to lay out 20,000,000 characters.
MAX_WHOLE_TEXT_CHARS = 100_000
AROUND = 20_000
# A part begins and ends with whole lines, unless they are longer than this.
MAX_LINE_CHARS = 2_000

# Text, and the number of each page where it begins.
Pieces = list[str | int]

# Around the passage, from Unicode's private use area: removed where a text contains them.
START, END = "\ue000", "\ue001"
EDGES = re.compile(f"([{START}{END}])")
# What makes a line a heading, an item, a quote, a row or a formula; a character in front would make it plain text.
LINE_MARKS = re.compile(r"(?:[ \t>|]|#{1,6}[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t]|\$\$|\\\[)*")
# A line that is only markup: a fence, a rule, the line below a table's header.
MARK_LINE = re.compile(r"[ \t]*+(?:(?:`{3,}+|~{3,}+)[^\n]*|[-*_=:| \t]+)\n")
CLOSING_MARKS = " \t\n|`~*_=:>#\\-$["
# Two of these in a row can be one piece of markup, which must not be split.
GLUED = "$\\[`~"
TAG = re.compile(r"(<[^<>]*>)")
MARK, FIRST_MARK = "<mark>{}</mark>", '<mark id="passage" tabindex="-1">{}</mark>'


class ShownText(Struct, frozen=True):
    """The shown text, before, in and after the marked passage.

    ``earlier`` and ``later`` are where the parts before and after begin, ``None`` if there are none. A table of which
    only later rows are shown keeps its header. The passage begins on ``page`` and ends on ``last_page``.
    """

    before: Pieces
    passage: Pieces
    after: Pieces
    page: int | None
    last_page: int | None
    earlier: int | None
    later: int | None


def shown_text(extracted: ExtractedText, start: int, end: int, at: int | None = None) -> ShownText:
    """Return what is shown of a text with its passage from ``start`` to ``end`` marked.

    A large text is cut to the surroundings of the passage; with ``at``, to what begins there.
    """
    length = len(extracted.text)
    start = min(start, length)
    end = min(max(start, end), length)
    first, last = _window(extracted.text, start, end, at)
    marked_from, marked_to = min(max(start, first), last), min(max(end, first), last)
    starts = extracted.page_starts
    lead = Leads(extracted.text).at(first, AROUND) if first and extracted.markdown else ""
    # A page that begins where the passage begins or ends is named outside of it: only the passage is marked.
    first_page, page_in = bisect_left(starts, first), bisect_right(starts, marked_from)
    page_behind = max(page_in, bisect_left(starts, marked_to))
    before = _pieces(extracted, first, marked_from, range(first_page, page_in))
    return ShownText(
        before=[lead, *before] if lead else before,
        passage=_pieces(extracted, marked_from, marked_to, range(page_in, page_behind)),
        after=_pieces(extracted, marked_to, last, range(page_behind, bisect_right(starts, last))),
        page=bisect_right(starts, start) or None if end > start else None,
        last_page=bisect_left(starts, end) or None if end > start else None,
        earlier=max(0, first - 2 * AROUND) if first else None,
        later=last if last < length else None,
    )


def _window(text: str, start: int, end: int, at: int | None) -> tuple[int, int]:
    length = len(text)
    if length <= MAX_WHOLE_TEXT_CHARS:
        return 0, length
    if at is None:
        last = min(length, min(end, start + MAX_WHOLE_TEXT_CHARS) + AROUND)
        return _line_start(text, max(0, start - AROUND)), _line_end(text, last)
    first = _line_start(text, min(at, length))
    return first, _line_end(text, min(length, first + 2 * AROUND))


def _line_start(text: str, index: int) -> int:
    start = text.rfind("\n", max(0, index - MAX_LINE_CHARS), index) + 1
    return start or (index if index > MAX_LINE_CHARS else 0)


def _line_end(text: str, index: int) -> int:
    return text.find("\n", index, index + MAX_LINE_CHARS) + 1 or min(index, len(text))


def _pieces(extracted: ExtractedText, first: int, last: int, pages: range) -> Pieces:
    """Return the text from ``first`` to ``last``, with the number of each of the ``pages`` where it begins."""
    pieces: Pieces = []
    for index in pages:
        begins = extracted.page_starts[index]
        pieces += [extracted.text[first:begins], index + 1]
        first = begins
    return [piece for piece in (*pieces, extracted.text[first:last]) if piece]


def with_edges(before: Sequence[str | int], passage: Sequence[str | int], after: Sequence[str | int]) -> Pieces:
    """Return a text with START and END around its passage, as close as possible without breaking Markdown."""
    pieces: Pieces = [EDGES.sub("", one) if isinstance(one, str) else one for one in (*before, *passage, *after)]
    first, last = len(before), len(before) + len(passage) - 1
    if not passage:
        return pieces
    previous = pieces[first - 1] if first else ""
    line_begins = isinstance(previous, int) or not previous or previous.endswith("\n")
    # Markup may begin in the passage and end after it.
    begins, start = "".join(str(one) for one in takewhile(lambda one: not isinstance(one, int), pieces[first:])), 0
    if line_begins:
        while line := MARK_LINE.match(begins, start):
            start = line.end()
        start = marks.end() if (marks := LINE_MARKS.match(begins, start)) else start
    elif str(previous)[-1] in GLUED:
        start = len(begins) - len(begins.lstrip(GLUED))
    end = len(str(pieces[last]).rstrip(CLOSING_MARKS))
    if start > len(str(pieces[first])) or (first == last and end <= start):
        return pieces  # Only markup: nothing of it is visible.
    pieces[last] = f"{str(pieces[last])[:end]}{END}{str(pieces[last])[end:]}"
    pieces[first] = f"{str(pieces[first])[:start]}{START}{str(pieces[first])[start:]}"
    return pieces


def mark_between(html: str) -> str:
    """Return HTML with <mark> around the text from START to END, piece by piece; a ``<`` in it begins a tag."""
    pieces: list[str] = []
    inside, mark = False, FIRST_MARK
    for part in (part for whole in TAG.split(html) for part in EDGES.split(whole)):
        if part in (START, END):
            inside = part == START
        elif inside and part.strip() and not part.startswith("<"):
            pieces.append(mark.format(part))
            mark = MARK
        else:
            pieces.append(part)
    return "".join(pieces)
