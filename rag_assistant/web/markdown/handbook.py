"""The documentation as HTML: our own Markdown files, with pictures, headings with anchors, and links.

Links between the files work as in a checkout; links to anything else, such as a test, become plain text.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from msgspec import Struct

from rag_assistant.web.markdown.render import clean_handbook

# Removed from anchors; as on GitHub, where the files are read, too.
NOT_IN_SLUGS = re.compile(r"[^\w\- ]")
# Files outside docs/ that are part of it; a checkout may contain others, too.
BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
# The start page.
FRONT = "docs/README.md"
# A heading with its section; and the markup removed from a line to make it readable.
SECTION = re.compile(r"^#{1,3} (.+)\n((?:(?!#{1,3} ).*\n?)*)", re.MULTILINE)
MARKS = re.compile(r"`|\*\*|\]\([^()]*\)|\[(?=[^\[\]]*\]\()|\|")
MAX_SECTIONS = 20
_parser = MarkdownIt("commonmark", {"html": True}).enable("table")


class Page(Struct, frozen=True):
    """A documentation file: its ``title``, its HTML, and its ``sections``, as anchor and heading."""

    title: str
    html: Markup
    sections: tuple[tuple[str, str], ...]


class FoundSection(Struct, frozen=True):
    """A search hit in the documentation: its section, and a line of it."""

    name: str
    anchor: str
    heading: str
    line: str


class Handbook:
    """The documentation in a folder. ``names`` are the files, relative to it, such as ``docs/api.md``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        files = [*root.glob("docs/**/*.md"), *root.glob("docs/pictures/*.png"), *(root / name for name in BESIDE)]
        self.names = frozenset(path.relative_to(root).as_posix() for path in files if path.is_file())

    def page(self, name: str, address: Callable[[str], str]) -> Page:
        """Return a file as a page; ``address`` gives the addresses of other ``names``."""

        def resolve(target: str) -> str | None:
            path, hash_sign, section = target.partition("#")
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if not path:
                return target
            return address(wanted) + hash_sign + section if wanted in self.names else None

        tokens = _parser.parse((self.root / name).read_text(encoding="utf-8"))
        sections = _name_headings(tokens)
        for token in (child for block in tokens for child in block.children or ()):
            _point(token, resolve)
        title = next((text for level, _, text in sections if level == 1), name)
        html = clean_handbook(_parser.renderer.render(tokens, _parser.options, {}))
        return Page(title, html, tuple((slug, text) for level, slug, text in sections if level == 2))

    def search(self, query: str) -> list[FoundSection]:
        """Return the sections that contain all words of a query, those with them in the heading first."""
        words = query.casefold().split()
        names = [name for name in self.names if words and name.endswith(".md") and name != FRONT]
        hits = []
        for name in sorted(names, key=lambda name: ("guide/" not in name, name)):
            for heading, text in SECTION.findall((self.root / name).read_text(encoding="utf-8")):
                if all(word in f"{heading}\n{text}".casefold() for word in words):
                    line = next((one for one in text.splitlines() if words[0] in one.casefold()), "")
                    section = FoundSection(name, slug_of(heading), heading, MARKS.sub("", line.strip("#-*> ")))
                    hits.append((sum(word not in heading.casefold() for word in words), section))
        return [section for _, section in sorted(hits, key=lambda hit: hit[0])[:MAX_SECTIONS]]


def slug_of(heading: str) -> str:
    """Return the anchor of a heading."""
    return NOT_IN_SLUGS.sub("", heading.strip().lower()).replace(" ", "-")


def _name_headings(tokens: list[Token]) -> list[tuple[int, str, str]]:
    """Give each heading its anchor; return level, anchor and text of all."""
    seen: Counter[str] = Counter()
    headings = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in inline.children or ())
            slug = slug_of(text)
            seen[slug] += 1
            anchor = slug if seen[slug] == 1 else f"{slug}-{seen[slug] - 1}"
            token.attrSet("id", anchor)
            headings.append((int(token.tag[1:]), anchor, text))
    return headings


def _point(token: Token, resolve: Callable[[str], str | None]) -> None:
    attribute = {"link_open": "href", "image": "src"}.get(token.type)
    if attribute is None or ":" in str(token.attrs[attribute]):
        return
    target = resolve(str(token.attrs[attribute]))
    if target is None:
        del token.attrs[attribute]
    else:
        token.attrSet(attribute, target)
    if token.type == "image":
        token.attrSet("loading", "lazy")
