"""The sections of a Markdown text, with their headings and the headings above."""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_PATH_CHARS = 200
SEPARATOR = " > "
# Blocks are parsed into objects: 450 MB for a million characters of nothing but headings. There are no sections beyond
# this.
MAX_CHARS = 1_000_000
# As the parser counts lines.
LINE_BREAK = re.compile(r"\r\n?|\n")


def section_starts(text: str) -> tuple[list[int], list[str]]:
    """Return the offset of each heading, ascending, and the path of headings that applies from there.

    A path is like ``Prices > Europe``; the beginning of a long one is left out. Headings inside code don't count.
    """
    text = text[:MAX_CHARS]
    line_starts = [0, *(match.end() for match in LINE_BREAK.finditer(text))]
    starts: list[int] = []
    paths: list[str] = []
    above: list[tuple[int, str]] = []
    tokens = _parser().parse(text)
    for index, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        depth = int(token.tag[1:])
        above = [heading for heading in above if heading[0] < depth]
        title = _plain(tokens[index + 1])
        if title:
            above.append((depth, title))
        starts.append(line_starts[token.map[0]])
        path = SEPARATOR.join(name for _, name in above)
        paths.append(path if len(path) <= MAX_PATH_CHARS else "…" + path[1 - MAX_PATH_CHARS :])
    return starts, paths


def _plain(heading: Token) -> str:
    """Return a heading's text without markup."""
    inline = _inline_parser().parseInline(heading.content)
    children = [child for token in inline for child in token.children or ()]
    plain = "".join(
        child.content if child.type in ("text", "code_inline") else " " * child.type.endswith("break")
        for child in children
    )
    return " ".join(plain.split())


@cache
def _parser() -> MarkdownIt:
    """Return a block parser without lists and quotations, since no section begins within them."""
    parser = MarkdownIt("commonmark")
    parser.disable(["inline", "text_join", "list", "blockquote", "reference"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
