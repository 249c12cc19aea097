"""Read files that are text: in any encoding, CSV as a table, notebooks as their cells."""

from __future__ import annotations

import csv
import io
import json
import re

from rag_assistant.extraction.formats.kinds import MARKDOWN, NOTEBOOK, PLAIN, TSV, wide_encoding
from rag_assistant.extraction.formats.markup import joined, table
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

DECLARED_ENCODING = re.compile(
    rb"""\A\s*<\?xml[^>]{0,200}encoding\s*=\s*["']([\w.:-]{2,40})|<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{2,40})""",
    re.IGNORECASE,
)
# Enough to recognise an encoding; all of a large file takes minutes.
BYTES_TO_JUDGE = 200_000
# What people's old files are written in. Among all that there ever was, something rare fits by chance.
OLD_ENCODINGS = (
    "cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp874 koi8_r cp932 euc_jp gb18030 big5 cp949".split()
)
# Spanish and Portuguese look Baltic to the guess.
MORE_LIKELY = {"cp1257": "cp1252"}
MAX_CELL_CHARS = 1_000_000


def read_utf8(content: bytes) -> str | None:
    """Return the text of a file that is UTF-8, ``None`` if it is not."""
    if wide_encoding(content[:4096]) is not None:
        return None
    try:
        return clean(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def decoded(content: bytes) -> str:
    """Return the text of a file in whatever encoding. Raises ExtractionFailed if none can be recognised."""
    return _decoded(content)[0]


def read_text(content: bytes, media_type: str) -> ExtractedText:
    """Return a text file as it is, with a warning if some of its bytes mean nothing."""
    text, warning = _decoded(content)
    return ExtractedText(text, media_type, markdown=media_type == MARKDOWN, warning=warning)


def read_csv(content: bytes, media_type: str) -> ExtractedText:
    """Return a CSV or TSV as a Markdown table; one that is no table comes as it is."""
    text, warning = _decoded(content)
    csv.field_size_limit(MAX_CELL_CHARS)
    try:
        mark = "\t" if media_type == TSV else _delimiter(text)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    except csv.Error:
        rows = []
    if sum(len(row) > 1 for row in rows) < 2:
        return ExtractedText(text, media_type, warning=warning)
    return ExtractedText(table(rows), media_type, markdown=True, warning=warning)


def read_notebook(content: bytes) -> ExtractedText:
    """Return the cells of a notebook as Markdown, with what they printed; what is no notebook comes as it is."""
    text, warning = _decoded(content)
    try:
        notebook = json.loads(text)
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
        blocks = [block for cell in notebook["cells"] for block in _cell(cell, language)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ExtractedText(text, PLAIN, warning=warning)
    return ExtractedText(joined(blocks), NOTEBOOK, markdown=True, warning=warning)


def clean(text: str) -> str:
    """Normalise line ends, and drop what no database or page takes."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").encode("utf-8", "ignore").decode()


def _decoded(content: bytes) -> tuple[str, str | None]:
    """Return the text and a warning. What the file says of itself is tried first, then what its bytes look like."""
    declared = DECLARED_ENCODING.search(content[:2048])
    named = next((name.decode("ascii") for name in declared.groups() if name), None) if declared else None
    for encoding in (wide_encoding(content[:4096]), "utf-8-sig", named):
        try:
            if encoding is not None:
                return clean(content.decode(encoding)), None
        except (UnicodeDecodeError, LookupError, ValueError):
            continue
    broken = content.decode("utf-8-sig", "replace")
    # A few bad bytes in what is UTF-8 otherwise are damage, not another encoding.
    wrong, wide = broken.count("\ufffd"), sum(character > "\x7f" for character in broken[:BYTES_TO_JUDGE])
    if wide > 20 * wrong:
        return clean(broken), f"{_characters(wrong)} of this text could not be read: the file is damaged there."
    import charset_normalizer

    start = content[:BYTES_TO_JUDGE]
    guess = charset_normalizer.from_bytes
    best = guess(start, cp_isolation=OLD_ENCODINGS).best() or guess(start).best()
    if best is None:
        raise ExtractionFailed("The encoding of this text could not be recognised. Save it as UTF-8.")
    encoding = MORE_LIKELY.get(best.encoding, best.encoding)
    text = clean(content.decode(encoding, "replace"))
    lost = text.count("\ufffd")
    warning = f"{_characters(lost)} of this text could not be read; it was taken for {encoding}." if lost else None
    return text, warning


def _characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count} characters"


def _delimiter(text: str) -> str:
    """Return what parts the cells: whatever stands in the first lines equally often, at its most frequent."""
    lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in ",;\t|"}
    return max(counts, key=lambda mark: (min(counts[mark], default=0), sum(counts[mark])))


def _cell(cell: dict[str, object], language: str) -> list[str]:
    source = _lines(cell.get("source"))
    if cell.get("cell_type") != "code":
        return [source]
    blocks = [f"```{language}\n{source}\n```"] if source.strip() else []
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else []:
        shown = output.get("text") or output.get("data", {}).get("text/plain")
        if output := _lines(shown).strip():
            blocks.append(f"```\n{output}\n```")
    return blocks


def _lines(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
