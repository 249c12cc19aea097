"""Split a text into quotable pieces: sentences, items, rows, key-value lines and code. Pure.

What belongs together has one ``unit``: a table, a list, key-value lines, a short section.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.retrieval.languages import WORDS
from rag_assistant.retrieval.tables import HEADING, Tables
from rag_assistant.retrieval.tokenize import unspaced_char

FENCE = re.compile(r"\s*(```|~~~)")
FENCED_LINE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
ROW = re.compile(r"\s*\|.*\|\s*$")
RULE = re.compile(r"(?=.*--)[\s:|-]*$")  # Between a table's header and its rows.
ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+\S")
NOTE = re.compile(r"\s*\[\^?[\w-]{1,12}\]:?\s+\S")
# A key with its value, or text that ends with an amount, as in invoices.
PAIR = re.compile(r"\s*\**[^\W\d_a-z][^|:\t]{0,40}?\**(?:\s?[:：]\**\s+|\t+| {3,})(\S.{0,100})$")  # noqa: RUF001
NUMBER = r"[-+(]?\d(?:[\d.,'\u2019]*\d)?\)?"
UNIT = r"(?:\s?(?:%|[A-Z]{3}|[€$£¥]))?"
AMOUNT = re.compile(rf"\s*[^\W\d_][^|:.]{{1,40}}?\s{NUMBER}{UNIT}\s*$")
# A row of a table without borders, as in PDF: it ends with several figures.
FIGURES = re.compile(rf".*\S\s{NUMBER}{UNIT}\s+{NUMBER}{UNIT}\s*$")
# The end of a sentence, with closing punctuation, before a blank. Chinese and Japanese have no blank there. Hindi and
# related languages end with a danda; Arabic and Urdu have their own punctuation, as do Khmer and Burmese. A Japanese
# quotation continues after its end mark.
END = re.compile(
    r"(?<![.!?…।॥؟۔])[.!?…।॥؟۔]+[\"'”’»)\]*_]*\s+(?![a-z])"  # noqa: RUF001
    r"|(?<![。！？។៕။])[。！？។៕။]+[”’」』）]*(?![”’」』）]|(?<=」)と)\s*"  # noqa: RUF001
)
# Thai and Lao have no such mark: a blank ends a sentence, or a part of one, after this many characters
# (bench/retrieval/README.md).
UNMARKED_END = re.compile(r"(?<=[\u0e00-\u0eff]) +(?=[\u0e00-\u0eff])")
MIN_UNMARKED_CHARS = 200
AT_END = re.compile(f"(?:{END.pattern}|[:：]\\s)$")  # noqa: RUF001
# Before a blank these don't end a sentence: abbreviations, initials, and German ordinals ("am 3. Mai").
ABBREVIATION = re.compile(WORDS["abbreviation"])
# But these do, before a word that begins a sentence: "Berg Ltd. The rent", "Pets: No. Limit".
ENDS_WITH_ABBREVIATION = re.compile(WORDS["ends_with_abbreviation"])
MAX_ABBREVIATION_CHARS = 10
GERMAN_DAY = re.compile(r"\b\d{1,2}\.\s+(?=(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)")
# A line shorter than this share of the longest one in its paragraph was ended by hand: a title, an address.
SHORT_LINE = 0.6
MAX_TITLE_WORDS = 10
MIN_INDENT = 2
# Longer lists aren't one unit, but single items. Longer items are split as text.
MAX_LIST_CHARS = 300
# The minimum length of a wrapped line of text.
MIN_WRAPPED_CHARS = 50
# Longer code is cut between lines.
MAX_CODE_CHARS = 1_000
# Longer text between two headings isn't one unit.
MAX_SECTION_CHARS = 300
# The same for an indented block below a term, as in manuals.
MAX_TERM_CHARS = 800

Kind = Literal["text", "title", "note", "pair", "list", "row", "figures", "code"]


class Sentence(Struct, frozen=True):
    """A quotable piece, from ``start`` to ``end`` of its text.

    ``lead`` is put in front of it, such as a table's header. ``heading`` is the nearest one above it. Pieces with the
    same ``unit``, other than 0, belong together. ``note``: a footnote; ``figures``: a row without borders.
    """

    text: str
    heading: str = ""
    lead: str = ""
    kind: Kind = "text"
    unit: int = 0
    start: int = 0
    end: int = 0

    @property
    def block(self) -> bool:
        """Whether it is a row, an item or code, not running text."""
        return self.kind in ("row", "list", "code")

    @property
    def key(self) -> str:
        """The key of a key-value line, empty for anything else."""
        match = PAIR.match(self.text) if self.kind == "pair" else None
        return self.text[: match.start(1)] if match else ""

    @property
    def is_section(self) -> bool:
        """Whether it is part of a short section, introduced by its heading."""
        return self.unit < 0


# The offset of a line, and its text.
Line = tuple[int, str]


def is_in_code(text: str, position: int) -> bool:
    """Return whether the line that begins at a position is inside a block of code."""
    return len(FENCED_LINE.findall(text, 0, position)) % 2 == 1


def sentences_of(text: str, *, begins_in_code: bool = False, keeps_leads: bool = False) -> list[Sentence]:
    """Return the sentences of a text in order. Headings don't count: they are context; nor do leads, unless kept."""
    cut: list[Sentence] = []
    heading = above = lead = ""
    section, term_indent = 0, -1
    for unit, (kind, lines) in enumerate(_blocks(text, begins_in_code), 1):
        indent = _indent(lines[0][1])
        ends_term = -1 < indent <= term_indent
        if kind == "heading" or ends_term or (kind == "term" and term_indent < 0):
            cut[section:] = _as_section(cut[section:], ~section, is_term=term_indent >= 0)
            section, lead = len(cut), ""
        if kind == "heading":
            match = HEADING.match(lines[0][1])
            heading = above = match[1] if match else ""
            term_indent = -1
            continue
        if ends_term:
            heading, term_indent = above, -1
        if kind == "term" and term_indent < 0:
            heading, term_indent = lines[0][1].strip(), indent
            continue
        kind = "text" if kind == "term" else kind
        pieces = list(_pieces(kind, lines))
        if kind == "text":
            cut += [replace(one, heading=heading, unit=unit if one.kind == "title" else 0) for one in pieces]
            lead = _lead(pieces[-1], len(pieces) == 1 and len(lines) == 1) if pieces else ""
            continue
        if kind in ("pair", "note") and not lead.endswith((":", "：")):  # noqa: RUF001
            lead = ""
        if lead and cut and cut[-1].text == lead and not keeps_leads:
            cut.pop()  # It is quoted with what it introduces.
        for one in pieces:
            joined = "\n\n".join(filter(None, (lead, one.lead)))
            cut.append(replace(one, heading=heading, lead=joined, unit=unit))
        lead = pieces[0].text if kind == "pair" and len(pieces) == 1 else ""  # "Table 3: Birds".
    cut[section:] = _as_section(cut[section:], ~section, is_term=term_indent >= 0)
    return cut


def _lead(last: Sentence, stands_alone: bool) -> str:
    """Return a block's last sentence if it may introduce what follows: with a colon, or as a caption."""
    is_caption = (stands_alone or last.kind == "title") and not END.search(f"{last.text} ")
    return last.text if last.text.endswith((":", "：")) or is_caption else ""  # noqa: RUF001


def _as_section(pieces: Sequence[Sentence], unit: int, *, is_term: bool) -> Iterator[Sentence]:
    """Yield the pieces below a heading or a term, as one unit introduced by it if it is short."""
    is_short = sum(len(one.text) for one in pieces) <= (MAX_TERM_CHARS if is_term else MAX_SECTION_CHARS)
    if is_short and pieces and pieces[0].heading and all(one.kind in ("text", "pair", "title") for one in pieces):
        for one in pieces:
            yield replace(one, unit=unit, lead=f"**{one.heading}**", kind="text" if one.kind == "title" else one.kind)
    else:
        yield from pieces


def ends_as_sentence(text: str) -> bool:
    """Return whether a text ends like a sentence, or with a colon."""
    return AT_END.search(f"{text} ") is not None


def split_text(text: str) -> list[str]:
    """Return the sentences of running text on one line."""
    return [sentence for start, end in sentence_ranges(text) if (sentence := text[start:end].strip())]


def sentence_ranges(text: str) -> Iterable[tuple[int, int]]:
    """Yield the start and end of each sentence of running text."""
    whole, ends = ({one.end() for one in pattern.finditer(text)} for pattern in (GERMAN_DAY, ENDS_WITH_ABBREVIATION))
    for match in END.finditer(text):
        before = max(0, match.start() - MAX_ABBREVIATION_CHARS)
        if match.end() not in whole and not ABBREVIATION.search(text, before, match.end()):
            ends.add(match.end())
    for start, end in pairwise([0, *sorted(ends), len(text)]):
        for blank in UNMARKED_END.finditer(text, start, end):
            if blank.end() - start >= MIN_UNMARKED_CHARS:
                yield start, blank.end()
                start = blank.end()
        yield start, end


def _pieces(kind: str, lines: Sequence[Line]) -> Iterator[Sentence]:
    if kind == "text":
        for paragraph in _paragraphs(lines):
            yield from _running(paragraph)
    elif kind == "code":
        yield from _code(lines)
    elif kind == "table":
        table = next(iter(Tables("\n".join(line for _, line in lines)).all), None)
        for start, line in lines:
            if not RULE.match(line) and (table is None or start - lines[0][0] >= table.rows):
                lead = table.head.rstrip() if table else ""
                yield Sentence(line.strip(), lead=lead, kind="row", start=start, end=start + len(line))
    elif kind == "list" and len(_whole(lines, "list").text) > MAX_LIST_CHARS:
        for item in _items(lines):
            whole = _whole(item, "list")
            if len(whole.text) <= MAX_LIST_CHARS:
                yield replace(whole, text=_joined(line.strip() for _, line in item))
            else:
                yield from _running(item, marked=True)
    elif kind == "list":
        yield _whole(lines, "list")
    else:
        for start, line in lines:
            yield Sentence(line.strip(), kind=kind, start=start, end=start + len(line))  # type: ignore[arg-type]


def _code(lines: Sequence[Line]) -> Iterator[Sentence]:
    """Yield a block of code whole, or if it is long in parts between its fences."""
    whole = _whole(lines, "code")
    fence = FENCE.match(lines[0][1])
    if len(whole.text) <= MAX_CODE_CHARS or fence is None:
        yield whole
        return
    is_closed = FENCE.match(lines[-1][1]) is not None
    part: list[Line] = []
    for line in [*lines[1 : -1 if is_closed else None], (0, "")]:
        is_full = sum(len(one) + 1 for _, one in part) + len(line[1]) > MAX_CODE_CHARS
        if part and (is_full or line == (0, "")):
            inner = _whole(part, "code")
            yield replace(inner, text=f"{lines[0][1]}\n{inner.text}\n{fence[1]}")
            part = []
        part.append(line)


def _whole(lines: Sequence[Line], kind: Kind) -> Sentence:
    text = "\n".join(line for _, line in lines)
    return Sentence(text, kind=kind, start=lines[0][0], end=lines[0][0] + len(text))


def _running(lines: Sequence[Line], *, marked: bool = False) -> Iterator[Sentence]:
    """Yield the sentences of some lines of running text; if ``marked``, the first begins with an item's marker."""
    whole = " ".join(line for _, line in lines)
    mark = ITEM.match(whole) if marked else None
    first = lines[0][0]
    is_sentence = ends_as_sentence(whole.strip()) and not ABBREVIATION.search(f"{whole.strip()} ")
    is_short = len(whole.split()) <= MAX_TITLE_WORDS and len(list(sentence_ranges(whole))) == 1
    if len(lines) == 1 and is_short and not is_sentence and not mark:
        yield Sentence(whole.strip(), kind="title", start=first, end=first + len(whole))
        return
    skipped = mark.end() - 1 if mark else 0
    for start, end in sentence_ranges(whole[skipped:]):
        text = _joined(part.strip() for part in _lines_within(lines, first + skipped + start, first + skipped + end))
        if text:
            yield Sentence(text, start=first + skipped + start, end=first + skipped + end)


def _lines_within(lines: Sequence[Line], start: int, end: int) -> Iterator[str]:
    for begin, line in lines:
        if begin < end and start < begin + len(line):
            yield line[max(0, start - begin) : end - begin]


def _blocks(text: str, is_in_code: bool) -> Iterator[tuple[str, list[Line]]]:
    """Yield the blocks of a Markdown text as kind and lines."""
    lines: list[Line] = []
    kinds: list[str] = []
    tables = Tables(text)
    position = 0
    for line in text.split("\n"):
        is_fence = FENCE.match(line) is not None
        in_table = tables.at(position) is not None and line.strip()
        before = kinds[-1] if kinds else ""
        kinds.append("code" if is_fence or is_in_code else "table" if in_table else _kind_of(line, before))
        is_in_code ^= is_fence
        lines.append((position, line))
        position += len(line) + 1
    _correct(kinds, [line for _, line in lines])
    _mark_terms(kinds, [line for _, line in lines])
    for kind, block in groupby(zip(kinds, lines, strict=True), key=lambda pair: pair[0]):
        below = [line for _, line in block]
        if kind in ("heading", "term"):
            yield from ((kind, [line]) for line in below)
        elif kind:
            yield kind, below


def _kind_of(line: str, before: str) -> str:
    """Return the kind of a line's block, judged by itself and the line above; ``""`` between two blocks."""
    if not line.strip():
        return ""
    if HEADING.match(line):
        return "heading"
    if ROW.match(line):
        return "table"
    if NOTE.match(line) or (before == "note" and not ITEM.match(line)):
        return "note"
    pair = PAIR.match(line)
    if pair and not ends_as_sentence(pair[1]):
        return "pair"
    if AMOUNT.match(line) and before == "figures":
        return "figures"  # The last rows of a table: net, VAT, total.
    if AMOUNT.match(line) and (before == "amount" or not FIGURES.match(line)):
        return "amount"
    if FIGURES.match(line):
        return "figures"
    return "list" if before == "list" or ITEM.match(line) else "text"


def _correct(kinds: list[str], lines: Sequence[str]) -> None:
    """Treat a line that looks like a pair or a row, but is isolated in running text, as part of it."""
    for index, (above, kind, below) in enumerate(zip(["", *kinds], kinds.copy(), [*kinds[1:], ""], strict=False)):
        wrapped = above == "text" and index > 0 and len(lines[index - 1]) >= MIN_WRAPPED_CHARS
        is_wrapped = wrapped and not ends_as_sentence(lines[index - 1])
        if (kind in ("figures", "amount") and kind not in (above, below)) or (kind == "pair" and is_wrapped):
            kinds[index] = "text"
        elif kind == "amount":
            kinds[index] = "pair"


def _mark_terms(kinds: list[str], lines: Sequence[str]) -> None:
    """Mark each short line of its own followed by indented text."""
    below_of: dict[int, int] = {}
    following = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        below_of[index] = following
        if lines[index].strip():
            following = index
    for index, kind in enumerate(kinds):
        below = below_of[index]
        is_alone = kind == "text" and (index == 0 or not lines[index - 1].strip())
        if is_alone and below < len(lines) and kinds[below] in ("text", "pair"):
            is_short = len(lines[index].split()) <= MAX_TITLE_WORDS and not ends_as_sentence(lines[index].strip())
            if is_short and _indent(lines[below]) >= _indent(lines[index]) + MIN_INDENT:
                kinds[index] = "term"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield a block's lines as paragraphs, which end at each manual line break, as in an address."""
    longest = max(len(line) for _, line in lines)
    whole = " ".join(line.strip() for _, line in lines)
    is_address = longest < MIN_WRAPPED_CHARS and len(list(sentence_ranges(whole))) == 1 and not ends_as_sentence(whole)
    paragraph: list[Line] = []
    for start, line in lines:
        paragraph.append((start, line))
        if is_address or len(line) < SHORT_LINE * longest:
            yield paragraph
            paragraph = []
    if paragraph:
        yield paragraph


def _items(lines: Sequence[Line]) -> Iterator[list[Line]]:
    item: list[Line] = []
    for line in lines:
        if item and ITEM.match(line[1]):
            yield item
            item = []
        item.append(line)
    yield item


def _joined(lines: Iterable[str]) -> str:
    """Return lines joined; in scripts without blanks between words, without blanks."""
    whole = ""
    for line in lines:
        blank = " " if whole and line and not unspaced_char().match(whole[-1:]) else ""
        whole += f"{blank}{line}"
    return whole
