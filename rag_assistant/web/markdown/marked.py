"""Keeps the start and end of a passage in a document's Markdown through to its HTML, by two characters. Pure."""

import re
from collections.abc import Sequence
from itertools import takewhile

# Text, and the number of each page where it begins.
Pieces = list[str | int]

# From Unicode's private use area: removed where a text contains them.
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
