"""Pages without signing in: the documentation at /help, without scripts, and what makes the page an app.

The documentation is our own Markdown files, with pictures and headings with anchors. Links between the files work as in
a checkout; links to anything else, such as a test, become plain text.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

from flask import Blueprint, Response, abort, current_app, render_template, url_for
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from msgspec import Struct

from rag_assistant.settings.package_files import FILES
from rag_assistant.web.markdown.render import clean_handbook
from rag_assistant.web.routing import PUBLIC

blueprint = Blueprint("help_pages", __name__)
# W3C, Web Application Manifest.
MANIFEST_TYPE = "application/manifest+json"
MAX_AGE_SECONDS = 3600
# Removed from anchors; as on GitHub, where the files are read, too.
NOT_IN_SLUGS = re.compile(r"[^\w\- ]")
# Files outside docs/ that are part of it; a checkout may contain others, too.
BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
# The start page.
FRONT = "docs/README.md"
_parser = MarkdownIt("commonmark", {"html": True}).enable("table")
_parser.parse("*a*")  # It lists its rules at the first text: two threads would disturb each other.


class Page(Struct, frozen=True):
    """A documentation file: its ``title``, its HTML, and its ``sections``, as anchor and heading."""

    title: str
    html: Markup
    sections: tuple[tuple[str, str], ...]


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


@cache
def handbook() -> Handbook:
    """Return the documentation, whose files are located once."""
    return Handbook(FILES)


@cache
def _drawn(name: str, script_root: str) -> Page:  # noqa: ARG001 - its links begin with it
    return handbook().page(name, _address)


def _address(name: str) -> str:
    if name == FRONT:
        return url_for("help_pages.front")
    return url_for("help_pages.page", name=name.removesuffix(".md"))


@blueprint.get("/help", policy=PUBLIC)
def front() -> str:
    """Show the start page."""
    return _shown(FRONT)


@blueprint.get("/help/<path:name>", policy=PUBLIC)
def page(name: str) -> str | Response:
    """Show a file of the documentation, or one of its pictures."""
    if f"{name}.md" in handbook().names:
        return _shown(f"{name}.md")
    if name not in handbook().names or name.endswith(".md"):
        abort(404)
    picture = Response((handbook().root / name).read_bytes(), content_type="image/png")
    picture.cache_control.max_age = MAX_AGE_SECONDS
    return picture


def _shown(name: str) -> str:
    root = url_for("help_pages.front")
    guide = sorted(one for one in handbook().names if one.startswith("docs/guide/"))
    return render_template(
        "help.html",
        page=_drawn(name, root),
        guide=[(_address(one), _drawn(one, root).title, one == name) for one in guide],
        start=url_for("pages.start"),
        front=root if name != FRONT else None,
    )


@blueprint.get("/manifest.webmanifest", policy=PUBLIC)
def manifest() -> Response:
    """Return the web app manifest."""
    return Response(render_template("manifest.webmanifest"), content_type=MANIFEST_TYPE)


@blueprint.get("/favicon.ico", policy=PUBLIC)
def favicon() -> Response:
    """Return the icon for pages that name none, such as API responses."""
    return current_app.send_static_file("icon.svg")


@blueprint.get("/sw.js", policy=PUBLIC)
def service_worker() -> Response:
    """Return the service worker, whose scope is limited to paths below its own."""
    response = current_app.send_static_file("sw.js")
    response.headers["Cache-Control"] = "no-cache"
    return response


@blueprint.get("/offline", policy=PUBLIC)
def offline() -> str:
    """Show the page that a browser keeps for when the server can't be reached."""
    return render_template("offline.html")
