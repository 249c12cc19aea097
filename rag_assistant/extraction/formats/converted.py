"""Formats that a library converts to Markdown: HTML, Outlook mails, workbooks, EPUB, RTF, Office before 2007.

It is given the kind of a file, never its name: for source code it would download grammars.
"""

import html
import re
from typing import Any

from rag_assistant.extraction.formats.kinds import DOC, EPUB, HTML, MSG, PPT, RTF, XLSX
from rag_assistant.extraction.formats.markup import MARK, raised, with_plain_tables, with_powers
from rag_assistant.extraction.formats.packages import date_in, number
from rag_assistant.extraction.formats.texts import clean, decoded
from rag_assistant.extraction.formats.web_pages import attributes_of, content_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed
from rag_assistant.records.validation import without_between

# A cell, with attributes that may contain a quoted ">".
CELL = re.compile(r"""<(t[dh])(?=[\s>])((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>""", re.I)
MERGED = re.compile(r"\b(?:row|col)span\b", re.I)
# More is an error of the page's author, also of all cells together.
MAX_SPAN, MAX_PLACES = 200, 10_000


def _with_marked_spans(page: str) -> str:
    """Return a page whose merged cells begin with the columns and rows they cover, for ``with_plain_tables``."""
    left = MAX_PLACES

    def marked(match: re.Match[str]) -> str:
        nonlocal left
        attributes = attributes_of(match[2])
        wide, deep = (max(1, min(number(attributes.get(name), 1), MAX_SPAN)) for name in ("colspan", "rowspan"))
        left -= wide * deep if wide * deep > 1 else 0
        if wide * deep == 1 or left < 0:
            return f"<{match[1]}>"
        # Of rows that differ in number of cells the library makes no table: the others stand in front of this one.
        cell = f'<{match[1]} rowspan="{deep}">' if deep > 1 else f"<{match[1]}>"
        return f"{cell}</{match[1]}>" * (wide - 1) + cell + f"{MARK}{wide},{deep}{MARK}"

    return CELL.sub(marked, page) if MERGED.search(page) else page


NAMES = {
    HTML: "page", MSG: "mail", XLSX: "workbook", EPUB: "book",
    RTF: "RTF file", DOC: "DOC file", PPT: "PPT file",
}  # fmt: skip
NO_CELLS = "There is no text in the cells of this workbook. Pictures are not read."
NEWER = {DOC: "DOCX", PPT: "PPTX"}
# Metadata in a page, which the library would put in front of the text.
FOR_PROGRAMS = re.compile(r"<(?:meta|link|base)\b[^<>]*>", re.I)
NOT_SHOWN = [
    (re.compile(rf"<{tag}\b", re.I), re.compile(rf"</{tag}\s*>", re.I)) for tag in ("title", "svg", "style", "script")
] + [(re.compile("<!--"), re.compile("-->"))]
STAMP = re.compile(
    r"<meta\b[^<>]{0,80}(?:modified|published|issued|date)[^<>]{0,40}content=[\"']?(\d{4}-?\d\d-?\d\d)", re.I
)
ABOVE = re.compile(r"<sup\b[^<>]*>\s*([\d+-]{1,9})\s*</sup\s*>", re.I)
TITLE = re.compile(r"<title\b[^<>]*>([^<]{1,500})</title", re.I)
PICTURE = re.compile(r"!\[([^\[\]\n]{0,2000})\]\([^()\n]*\)|\\!\[([^\[\]\n]{0,2000})\]\([^()\n]*\)")
# Dates in a workbook come with midnight, and times with the first day of its calendar.
MIDNIGHT = re.compile(r"(?<=\| )(\d{4}-\d\d-\d\d) 00:00:00(?= \|)")
DAY_ZERO = re.compile(r"(?<=\| )(?:1899-12-3[01]|1904-01-01) (\d\d:\d\d:\d\d)(?= \|)")


def read_converted(content: bytes, media_type: str) -> ExtractedText:
    """Return the text of a file as Markdown. Raises ExtractionFailed."""
    title, stamps = "", list[str]()
    if media_type == HTML or (media_type == RTF and b"\0" in content[:100]):
        content, title, stamps = _in_utf8(content, media_type)
    if media_type == RTF:
        content = prepared(content)
    result = _convert(content, media_type)
    text = clean(result.content).replace("\xad", "")
    text = with_powers(with_list_marks(text)) if media_type == RTF else text
    text = with_plain_tables(PICTURE.sub(lambda match: match[1] or match[2] or "", text))
    if title and not re.search(r"^# ", text, re.M):
        text = f"# {title}\n\n{text}"
    if media_type == XLSX:
        text = DAY_ZERO.sub(r"\1", MIDNIGHT.sub(r"\1", text))
    warning = "Not all parts of this file could be read." if result.processing_warnings else None
    # The last of them: a page may have been changed since it was published.
    stamps = sorted(stamps, reverse=True) or [str(result.metadata.get(name)) for name in ("modified_at", "created_at")]
    return ExtractedText(text, media_type, markdown=True, warning=warning, dates={"properties": date_in(*stamps)})


def _convert(content: bytes, media_type: str) -> Any:
    import kreuzberg

    config = kreuzberg.ExtractionConfig(
        output_format="markdown",
        use_cache=False,  # It would be treated as a folder on disk.
        enable_quality_processing=False,  # It leaves out what it doesn't consider prose.
        html_options={"strip_tags": ["a", "audio", "video"]},  # type: ignore[arg-type]  # Their text stays.
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )
    config.max_archive_depth = 0  # Attachments of mails are read by our readers.
    try:
        return kreuzberg.extract_bytes_sync(content, media_type, config=config)
    except kreuzberg.KreuzbergError as error:
        name = NAMES[media_type]
        if media_type in NEWER or "password" in str(error).lower() or "encrypt" in str(error).lower():
            raise unreadable(name, str(error), NEWER.get(media_type, "")) from error
        raise ExtractionFailed(f"This {name} is damaged and cannot be read.") from error


def unreadable(name: str, reason: str, newer: str) -> ExtractionFailed:
    """Return the error for a file that a library could not read, which gave its reason."""
    if "password" in reason.lower() or "encrypt" in reason.lower():
        return ExtractionFailed(f"This {name} has a password. Save it without one and add it again.")
    return ExtractionFailed(
        f"This {name} cannot be read: it is damaged, has a password, or is in a very old format. "
        f"Save it as {newer} and add it again."
    )


def _in_utf8(content: bytes, media_type: str) -> tuple[bytes, str, list[str]]:
    """Return a text as UTF-8, and the title and the dates of a page."""
    text = decoded(content)
    title, stamps = (TITLE.search(text), STAMP.findall(text)) if media_type == HTML else (None, [])
    if media_type == HTML:
        text = FOR_PROGRAMS.sub("", text)
        for opens, closes in NOT_SHOWN:
            text = without_between(text, opens, closes)
        text = with_powers(ABOVE.sub(lambda match: raised(match[1]), text))
        text = _with_marked_spans(content_of(text))
    return text.encode(), html.unescape(" ".join(title[1].split())) if title else "", stamps


# An escaped backslash first, so that what follows it is text.
REWRITTEN = re.compile(
    rb"""(?P<kept>\\\\)
    |\\(?P<deleted>deleted(?![a-z]))
    |(?P<space>\\~|\\(?:em|en|qm)space(?![a-z])[ ]?)
    |(?P<hyphen>\\_)
    |(?P<break>\\(?:sect|page|column)(?![a-z]))
    |(?P<list>\{\\(?:listtext|pntext)(?![a-z])(?:\\pard(?![a-z]))?[ ]?)
    |(?:\{\\\*\\atnauthor[ ]?(?P<author>[^{}\\]{0,200})\}(?:\s|\\chatn)*)?(?P<comment>\{\\\*\\annotation(?![a-z]))
    |(?P<beside>\{\\\*\\atn(?:ref|date|id|author|time|icn|parent)(?![a-z])[^{}]{0,500}\})
    |(?P<box>\{\\\*\\(?:shpinst|do)(?![a-z]))
    |(?P<hidden>\{\\(?=(?:sp|shprslt|xe|tc)(?![a-z])))
    |(?P<style>\\\*(?=\\cs\d))
    |(?P<link>\\fldinst[^"]{0,200}?)HYPERLINK[^{}]*
    |(?:\\super[ ]?(?P<power>[\d+-]{1,9})(?=[\\}]))""",
    re.X,
)
# In front of what a list shows; the library may put it into a paragraph of its own.
LABEL = "\ue000"
LABELLED = re.compile(rf"^( *)(?:- |(#+ ))?{LABEL}(\S{{1,20}}?)(?:&#9;|\s)+(?=\S)", re.M)
ORDERED = re.compile(r"\d+\. ")
BULLETS = "•·§Øo▪‣◦-"


def prepared(content: bytes) -> bytes:
    """Return an RTF file whose text, as the library reads it, is what Word shows, without what is deleted.

    RTF 1.9.1: https://interoperability.blob.core.windows.net/files/Archive_References/%5bMSFT-RTF%5d.pdf
    """
    return REWRITTEN.sub(_rewritten, content)


def with_list_marks(text: str) -> str:
    """Return the converted text with the bullets and numbers of its lists as Markdown's."""

    def marked(match: re.Match[str]) -> str:
        indent, title, label = match.groups()
        label = "" if label in BULLETS else f"{label} "
        return f"{title}{label}" if title else f"{indent}{label if ORDERED.fullmatch(label) else '- ' + label}"

    return LABELLED.sub(marked, text).replace(LABEL, "")


def _rewritten(match: re.Match[bytes]) -> bytes:
    kind = match.lastgroup
    if kind == "comment":
        author = b" by " + match["author"] if match["author"] else b""
        return b"{\\footnote Comment" + author + b": "
    if kind == "power":
        return b"".join(f"{{\\uc0\\u{ord(sign)} }}".encode() for sign in raised(match["power"].decode()))
    fixed = {
        "deleted": b"\\v", "space": b"{ }", "hyphen": b"\\'2d", "break": b"\\par",
        "list": b"{\\uc0\\u57344 ", "box": b"{", "beside": b"", "style": b"", "hidden": b"{\\*\\",
        "link": match["link"],
    }  # fmt: skip
    return fixed.get(kind or "", match[0])
