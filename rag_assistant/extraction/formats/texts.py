"""Read text files: in any encoding, CSV as a table, notebooks as their cells; and tell text from what is misread."""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rag_assistant.extraction.formats import DATA
from rag_assistant.extraction.formats.kinds import HTML, MARKDOWN, NOTEBOOK, PLAIN, TSV, wide_encoding
from rag_assistant.extraction.formats.markup import heading, joined, table
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

DECLARED_ENCODING = re.compile(
    rb"""\A\s*<\?xml[^>]{0,200}encoding\s*=\s*["']([\w.:-]{2,40})|<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{2,40})""",
    re.IGNORECASE,
)
# Enough to recognise an encoding; all of a large file takes minutes.
BYTES_TO_JUDGE = 200_000
# Common legacy encodings. Among all that ever existed, something rare fits by chance.
OLD_ENCODINGS: list[str] = DATA["old_encodings"].split()
# Below this, a guess is reported. Of 1,507 texts of XQuAD one in 27 was wrong below it, one in 1,480 above.
MIN_CONFIDENCE = 0.1
# Declared encodings, and what they mean in practice (https://encoding.spec.whatwg.org).
MEANT: dict[str, str] = DATA["meant_encodings"]
# With escape sequences that switch character sets, every byte is ASCII.
ESCAPED = re.compile(rb"\x1b(?:\$[@B]|\$\([DOQ]|\([IJ])")
SINGLE_BYTE = re.compile(r"us-ascii|iso-8859|windows-125|cp125|koi8|mac", re.IGNORECASE)
# Excel's separator line; how many preamble lines a table may have, and how many lines are examined for that.
SEPARATOR = re.compile(r"\s*\"?sep=([,;|\t])\"?[^\S\n]*\n", re.IGNORECASE)
MAX_LINES_BEFORE, MAX_ROWS_TO_JUDGE = 20, 100
# Terminal colour codes.
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
MAX_CELL_CHARS = 1_000_000


def read_utf8(content: bytes) -> str | None:
    """Return the text of a UTF-8 file, ``None`` if it isn't one."""
    with suppress(UnicodeDecodeError):
        return None if wide_encoding(content[:4096]) else clean(content.decode("utf-8-sig"))
    return None


def decoded(content: bytes) -> str:
    """Return the text of a file in any encoding. Raises ExtractionFailed if none is recognised."""
    return _decoded(content)[0]


def decoded_as(content: bytes, charset: str) -> str:
    """Return a text in a declared encoding; if it is UTF-8, or doesn't fit, as what it is."""
    if SINGLE_BYTE.match(charset) and (utf8 := read_utf8(content)) is not None:
        return utf8
    with suppress(LookupError, ValueError):
        return clean(content.decode(MEANT.get(charset, charset)))
    return decoded(content)


def read_text(content: bytes, media_type: str) -> ExtractedText:
    """Return a text file unchanged, with a warning if some bytes are invalid."""
    text, warning = _decoded(content)
    return ExtractedText(text, media_type, markdown=media_type == MARKDOWN, warning=warning)


def read_csv(content: bytes, media_type: str) -> ExtractedText:
    """Return a CSV or TSV as a Markdown table; unchanged if it isn't a table."""
    text, warning = _decoded(content)
    csv.field_size_limit(MAX_CELL_CHARS)
    try:
        declared = SEPARATOR.match(text)
        mark = "\t" if media_type == TSV else declared[1] if declared else _delimiter(text)
        rows = list(csv.reader(io.StringIO(text[declared.end() if declared else 0 :], newline=""), delimiter=mark))
    except csv.Error:
        rows = []
    if sum(len(row) > 1 for row in rows) < 2:
        return ExtractedText(text, media_type, warning=warning)
    head = _head_of(rows)
    before = [" ".join(cell for cell in row if cell.strip()) for row in rows[:head]]
    return ExtractedText(joined([*before, table(rows[head:])]), media_type, markdown=True, warning=warning)


def read_notebook(content: bytes, read: Callable[[bytes, str], ExtractedText]) -> ExtractedText:
    """Return a notebook's cells and output as Markdown; other text unchanged. ``read`` reads HTML output."""
    text, warning = _decoded(content)
    try:
        notebook = json.loads(text)
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
        # Before version 4, cells were in worksheets.
        sheets = notebook["worksheets"] if "cells" not in notebook else [notebook]
        blocks = [block for sheet in sheets for cell in sheet["cells"] for block in _cell(cell, language, read)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ExtractedText(text, PLAIN, warning=warning)
    return ExtractedText(joined(blocks), NOTEBOOK, markdown=True, warning=warning)


def clean(text: str) -> str:
    """Normalise line ends, and drop characters that no database or page accepts."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").encode("utf-8", "ignore").decode()


def _decoded(content: bytes) -> tuple[str, str | None]:
    """Return the text and a warning. The declared encoding is tried first, then detection."""
    declared = DECLARED_ENCODING.search(content[:2048])
    named = next((name.decode("ascii") for name in declared.groups() if name), None) if declared else None
    escaped = "iso2022_jp_ext" if ESCAPED.search(content) else None
    for encoding in (wide_encoding(content[:4096]), escaped, "utf-8-sig", named):
        with suppress(LookupError, ValueError):
            if encoding is not None:
                return clean(content.decode(MEANT.get(encoding.lower(), encoding))), None
    broken = content.decode("utf-8-sig", "replace")
    wrong, wide = broken.count("\ufffd"), sum(character > "\x7f" for character in broken[:BYTES_TO_JUDGE])
    # In other encodings, hardly any two consecutive bytes are valid UTF-8.
    if wide - wrong >= 2 * wrong or (wide > wrong and broken.find("\ufffd") == len(broken) - 1):
        return clean(broken), f"{_characters(wrong)} of this text could not be read: the file is damaged there."
    import chardet

    start = content[:BYTES_TO_JUDGE]
    guess = chardet.detect(start, include_encodings=OLD_ENCODINGS, compat_names=False)
    encoding, is_unsure = guess["encoding"], guess["confidence"] < MIN_CONFIDENCE
    if encoding is None or (is_unsure and is_misread(start.decode(encoding, "replace"))):
        # Of half-width Japanese, detection makes letters of any script.
        encoding = "cp932"
        if is_misread(text := content.decode(encoding, "replace")) or "\ufffd" in text:
            raise ExtractionFailed("The encoding of this text could not be recognised. Save it as UTF-8.")
    text = clean(content.decode(encoding, "replace"))
    if lost := text.count("\ufffd"):
        return text, f"{_characters(lost)} of this text could not be read as {encoding}, its assumed encoding."
    unsure = (
        f"This text does not declare its encoding; it was read as {encoding}. If letters are wrong, save it as UTF-8."
    )
    return text, unsure if is_unsure else None


def _characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count} characters"


def _delimiter(text: str) -> str:
    """Return the delimiter of the cells: what occurs equally often in the first lines."""
    lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in ",;\t|"}
    return max(counts, key=lambda mark: (min(counts[mark], default=0), sum(counts[mark])))


def _head_of(rows: list[list[str]]) -> int:
    """Return the header row's index: after the preamble, the first row as wide as most."""
    widths = [max((n for n, cell in enumerate(row, 1) if cell.strip()), default=0) for row in rows[:MAX_ROWS_TO_JUDGE]]
    usual = max(set(widths), key=widths.count)
    head = next(n for n, width in enumerate(widths) if width >= usual)
    is_named = not any(re.search(r"\d", cell) for cell in rows[head])
    return head if head <= MAX_LINES_BEFORE and usual > 1 and is_named else 0


def _cell(cell: dict[str, Any], language: str, read: Callable[[bytes, str], ExtractedText]) -> list[str]:
    source, kind = _lines(cell.get("source") or cell.get("input")), cell.get("cell_type")
    if kind == "heading":
        return [heading(int(cell.get("level", 1)), source)]
    if kind != "code":
        return [source]
    blocks = [f"```{language or cell.get('language', '')}\n{source}\n```"] if source.strip() else []
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else []:
        data = output.get("data", {})
        page = _lines(data.get("text/html") or output.get("html"))
        plain = _lines(output.get("text") or data.get("text/plain")).strip()
        if "<table" in page or (page and not plain):
            with suppress(ExtractionFailed):
                blocks.append(read(f"<html><body>{page}</body></html>".encode(), HTML).text.strip())
                continue
        plain = plain or COLOURS.sub("", "\n".join(map(str, output.get("traceback") or ()))).strip()
        if plain:
            blocks.append(f"```\n{plain}\n```")
    return blocks


def _lines(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


WORD = re.compile(r"[^\W\d_]{4,}")
# In languages in Latin letters, these are 50 to 70 % of the letters of prose; in exchanged ones about 30 %.
COMMON, MIN_COMMON = frozenset("etaoinsr"), 0.4
ALPHABETS = frozenset("LATIN CYRILLIC GREEK ARABIC HEBREW THAI ARMENIAN GEORGIAN DEVANAGARI".split())
MAX_MIXED = 0.2
# What is judged, and what is enough for a judgement.
MAX_CHARS, MIN_LETTERS, MIN_WORDS = 20_000, 200, 5
# Symbols and numbers beyond ASCII, and control characters, are rare in any text.
MAX_SYMBOLS, MAX_CONTROL = 0.1, 0.02
# UTF-8 read as Latin-1 or cp1252.
MOJIBAKE, MIN_MOJIBAKE = re.compile(r"(?:(?<![A-Z\xc0-\xde])[\xc2\xc3]|\xe2[\x80\u20ac])[\x80-\xbf\u0152-\u2122]"), 4
TOKEN, DIGIT = re.compile(r"[\w:+/-]+"), re.compile(r"\d")


def is_no_language(text: str) -> bool:
    """Return whether the letters of a text's prose are distributed as in no language, or its words mix alphabets."""
    # Cells of tables, and identifiers and files within a text, say nothing of that.
    prose = " ".join(line for line in text[:MAX_CHARS].split("\n") if " | " not in f" {line}")
    words = WORD.findall(" ".join(one for one in TOKEN.findall(prose) if not DIGIT.search(one)))
    letters = [one for one in unicodedata.normalize("NFD", "".join(words).lower()) if "a" <= one <= "z"]
    if len(letters) >= MIN_LETTERS and sum(one in COMMON for one in letters) < MIN_COMMON * len(letters):
        return True
    mixed = sum(len({unicodedata.name(one, "").split(" ")[0] for one in word} & ALPHABETS) > 1 for word in words)
    return len(words) >= MIN_WORDS and mixed > MAX_MIXED * len(words)


def is_misread(text: str) -> bool:
    """Return whether a text can't be what was meant: it is no language, or has symbols in place of letters."""
    start = text[:MAX_CHARS]
    symbols = sum(unicodedata.category(one)[0] in "SN" for one in start if one > "\x7f")
    controls = sum(one < " " and not one.isspace() for one in start)
    is_symbols = symbols > MAX_SYMBOLS * len(start) or controls > MAX_CONTROL * len(start)
    return is_symbols or len(MOJIBAKE.findall(start)) >= MIN_MOJIBAKE or is_no_language(text)
