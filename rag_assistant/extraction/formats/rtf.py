"""Rewrite RTF so that the library which converts it reads what Word shows: list numbers, comments, text boxes, powers;
and not what Word has deleted.

RTF 1.9.1: https://interoperability.blob.core.windows.net/files/Archive_References/%5bMSFT-RTF%5d.pdf
"""

import re

from rag_assistant.extraction.formats.markup import raised

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
    """Return an RTF file whose text, as the library reads it, is what Word shows."""
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
