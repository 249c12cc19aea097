"""Answers as HTML: the one place where text that we did not write becomes HTML. Markdown first, then the sanitiser.

No raw HTML, no images, no styles: whatever a model or a document says, nothing runs and nothing is fetched.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

LONGEST_MARKDOWN = 200_000

TAGS = frozenset(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split()
)
ATTRIBUTES = {"a": {"href"}, "ol": {"start"}}
SCHEMES = frozenset({"http", "https", "mailto"})
CITATION = re.compile(r"\[(\d{1,3})\]")


def render_markdown(text: str, sources: Collection[int] = (), anchor: str = "") -> Markup:
    """Return an answer as safe HTML; ``[n]`` of the ``sources`` becomes a link to ``#anchor-n``."""
    if len(text) > LONGEST_MARKDOWN:
        return Markup("<pre>") + text + Markup("</pre>")
    rendered = _parser.render(text, {"sources": frozenset(sources), "anchor": anchor})
    clean = nh3.clean(
        rendered,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
        clean_content_tags={"script", "style"},
    )
    return Markup(clean)  # noqa: S704 - the sanitiser's output, and the only such place


def _link_citations(state: StateCore) -> None:
    """Turn [n] in running text into a link to source n; any other number stays text."""
    known = state.env.get("sources") or ()
    for block in state.tokens:
        if block.type == "inline" and block.children and known:
            block.children = [made for token in block.children for made in _split(token, known, state.env["anchor"])]


def _split(token: Token, known: Collection[int], anchor: str) -> list[Token]:
    if token.type != "text" or "[" not in token.content:
        return [token]
    made: list[Token] = []
    end = 0
    for match in CITATION.finditer(token.content):
        if int(match.group(1)) not in known:
            continue
        made += [
            Token("text", "", 0, content=token.content[end : match.start()]),
            Token("link_open", "a", 1, attrs={"href": f"#{anchor}-{int(match.group(1))}"}),
            Token("text", "", 0, content=match.group(0)),
            Token("link_close", "a", -1),
        ]
        end = match.end()
    return [*made, Token("text", "", 0, content=token.content[end:])]


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"]).disable("image")
    parser.core.ruler.push("citations", _link_citations)
    parser.validateLink = _is_harmless  # type: ignore[method-assign]
    return parser


def _is_harmless(url: str) -> bool:
    scheme, colon, _ = html.unescape(url).strip().lower().partition(":")
    return not colon or scheme in SCHEMES


_parser = _make_parser()
