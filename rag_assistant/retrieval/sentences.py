"""Cut a passage into what can be quoted of it: sentences, list items, table rows and code, each as it stands. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from rag_assistant.retrieval.tokenize import unspaced_char

FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"#{1,6}\s+(.*?)[\s#]*$")
ROW = re.compile(r"\s*\|.*\|\s*$")
RULE = re.compile(r"\s*\|?[\s:|-]*--[\s:|-]*$")  # Between a table's header and its rows.
ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+\S")
# A sentence may end here: with what closes it, before a blank. Chinese and Japanese put no blank there. Hindi and its
# neighbours end with a line, Arabic and Urdu ask and end with marks of their own.
END = re.compile(r"[.!?…।॥؟۔]+[\"'”’»)\]*_]*\s+(?![a-z])|[。！？]+[”’」』）]*\s*")  # noqa: RUF001
AT_END = re.compile(f"(?:{END.pattern}|[:：]\\s)$")  # noqa: RUF001
# Before a blank these end a word and not a sentence: abbreviations, initials, and German ordinals ("am 3. Mai").
ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|cf|al|No|Nos|Fig|Figs|Eq|Sec|Vol|pp|Inc|Ltd|Co|Corp|Gen|Col|"
    r"Sgt|Capt|Lt|Rev|Hon|approx|Nr|Abs|Art|Abb|Tab|bzw|ca|usw|vgl|inkl|evtl|ggf|[A-Za-z]\.[A-Za-z])"
    r"|\b(?:am|im|der|den|dem|des|vom|zum|das|die|bis|ab|seit) \d{1,2})\.\s+$"
)
# A line that is shorter than this share of the longest one of its paragraph was ended by hand: a title, an address.
SHORT_LINE = 0.6
# A list up to this length is quoted whole; of a longer one single items are. An item or row beyond it is cut as text.
MAX_LIST_CHARS = 300


class Sentence(Struct, frozen=True):
    """What can be quoted. ``lead`` belongs in front of it: the header of a table row, the line that begins a list.

    ``heading`` is the nearest one above it in its passage. ``block`` tells a row, an item or code from running text.
    """

    text: str
    heading: str = ""
    lead: str = ""
    block: bool = False


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of a text in their order. Headings are none: they say what a text is about."""
    cut: list[Sentence] = []
    heading = lead = ""
    for kind, lines in _blocks(text):
        if kind == "heading":
            match = HEADING.match(lines[0])
            heading, lead = match[1] if match else "", ""
        elif kind == "text":
            sentences = [one for paragraph in _paragraphs(lines) for one in split_text(paragraph)]
            lead = sentences.pop() if sentences and _leads(lines, sentences[-1]) else ""
            cut += [Sentence(one, heading) for one in sentences]
            cut += [Sentence(lead, heading)] if lead else []
        else:
            if lead and cut and cut[-1].text == lead:
                cut.pop()  # It comes with what it introduces.
            cut += _pieces(kind, lines, heading, lead)
    return cut


def _leads(lines: list[str], last: str) -> bool:
    """Tell whether a block's last sentence may begin what stands behind it: by a colon, or as a caption."""
    return last.endswith((":", "：")) or (len(lines) == 1 and last == lines[0].strip() and not END.search(f"{last} "))  # noqa: RUF001


def ends_as_sentence(text: str) -> bool:
    """Tell whether a text ends with what ends a sentence, or with a colon."""
    return AT_END.search(f"{text} ") is not None


def split_text(text: str) -> list[str]:
    """Return the sentences of running text on one line."""
    ends = [match.end() for match in END.finditer(text) if not ABBREVIATION.search(text[: match.end()])]
    cut = (text[start:end].strip() for start, end in pairwise([0, *ends, len(text)]))
    return [sentence for sentence in cut if sentence]


def _pieces(kind: str, lines: list[str], heading: str, lead: str) -> Iterator[Sentence]:
    """Yield what can be quoted of code, of a table or of a list."""
    whole = "\n".join(lines)
    if kind == "code":
        yield Sentence(whole, heading, lead, block=True)
    elif kind == "table":
        has_header = len(lines) > 1 and RULE.match(lines[1])
        header = "\n".join(lines[:2]) if has_header else ""
        lead = "\n\n".join(filter(None, (lead, header)))
        for row in lines[2:] if has_header else lines:
            if not RULE.match(row):
                yield Sentence(row.strip(), heading, lead, block=True)
    elif len(whole) <= MAX_LIST_CHARS:
        yield Sentence(whole, heading, lead, block=True)
    else:
        for item in _items(lines):
            if len(item) <= MAX_LIST_CHARS:
                yield Sentence(item, heading, lead, block=True)
            else:
                yield from (Sentence(one, heading) for one in split_text(ITEM.sub(lambda marker: marker[0][-1], item)))


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the blocks of a Markdown text as kind and lines: heading, code, table, list or text."""
    kind, lines = "", list[str]()
    for line in text.split("\n"):
        now = _kind_of(line, kind, lines)
        if now != kind or now in ("", "heading"):
            if lines:
                yield kind, lines
            kind, lines = now, []
        if now:
            lines.append(line)
    if lines:
        yield kind, lines


def _kind_of(line: str, before: str, lines: list[str]) -> str:
    """Return the kind of the block that a line belongs to; ``""`` between two blocks."""
    if before == "code" and (len(lines) == 1 or not FENCE.match(lines[-1])):
        return "code"
    if FENCE.match(line):
        return "code"
    if not line.strip():
        return ""
    if HEADING.match(line):
        return "heading"
    if ROW.match(line):
        return "table"
    return "list" if before == "list" or ITEM.match(line) else "text"


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a block as running text, each line that was ended by hand as a paragraph of its own."""
    longest = max(map(len, lines))
    paragraph = ""
    for line in lines:
        paragraph = _joined(paragraph, line.strip())
        if len(line) < SHORT_LINE * longest:
            yield paragraph
            paragraph = ""
    if paragraph:
        yield paragraph


def _items(lines: list[str]) -> Iterator[str]:
    """Yield the items of a list, each with its marker, on one line."""
    item = ""
    for line in lines:
        if item and ITEM.match(line):
            yield item
            item = ""
        item = _joined(item, line.strip())
    yield item


def _joined(before: str, line: str) -> str:
    """Return a line behind another; scripts without blanks between words have none between lines either."""
    blank = " " if before and not unspaced_char().match(before[-1:]) else ""
    return f"{before}{blank}{line}"
