"""Answers and documents as HTML: the only place where foreign text becomes HTML.

Markdown first, then the sanitiser. No raw HTML, no images, no styles: whatever a model or a document says, nothing runs
and nothing is fetched. Formulas ($...$, $$...$$, and in brackets with backslashes) stay readable as source.
"""

import html
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape
from msgspec import Struct

from rag_assistant.retrieval.claims import CITATION, cited_numbers
from rag_assistant.web.languages import gettext
from rag_assistant.web.markdown.passage import END, START, mark_between

# A list opens two levels, itself and its item, and its content needs one more below the parser's own limit.
LEVELS_OF_A_LIST = 2
ENDED_BY = ["paragraph", "reference", "blockquote"]


def _not_too_deep(rule: RuleFuncBlockType) -> RuleFuncBlockType:
    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        deepest = state.md.options.maxNesting - LEVELS_OF_A_LIST - 1
        return state.level <= deepest and rule(state, start, end, silent)

    return limited


def _not_too_large(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table: a row has as many cells as the first, even a single letter in a table of hundreds."""
    columns = _line(state, start).count("|") + 1
    left = MAX_MARKS - state.env.get("cells", 0)
    if left < columns or not table(state, start, min(end, start + 2 + left // columns), silent):
        return False
    if not silent:
        state.env["cells"] = MAX_MARKS - left + columns * (state.line - start)
    return True


# Between single dollars as in pandoc: no blank inside at either end, no digit after. Nor does a sum of money, such as
# "$5 and ", start a formula. The end of the others is searched for only this far: an answer full of starts would take
# quadratic time.
INLINE = re.compile(
    r"\$\$(?!\s*\$)(?:[^$\\]|\\.)+\$\$"
    r"|\$(?![\s$]|\d[\d.,]*[\s,;])(?:[^$\\\n]|\\.)*(?<![\s\\])\$(?!\d)"
    r"|\\\((?!\\\)).{1,2000}?\\\)"
    r"|\\\[(?!\\\]).{1,2000}?\\\]",
    re.DOTALL,
)
OPENINGS = {"$$": "$$", "\\[": "\\]"}


def _inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    match = INLINE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("formula", "", 0).content = match.group(0)
    state.pos = match.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse the lines of a formula from its start to its end; they may include empty lines."""
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    closing = OPENINGS.get(first[:2])
    # A formula followed by text is part of a paragraph.
    if closing is None or (closing in first[2:] and not first.endswith(closing)):
        return False
    if silent:
        return True
    last = start
    if not (len(first) > 3 and first.endswith(closing)):
        last += 1
        while last < end and not _line(state, last).endswith(closing):
            last += 1
    state.line = min(last + 1, end)
    token = state.push("formula_block", "", 0)
    token.content = state.getLines(start, state.line, state.blkIndent, False).strip()
    token.map = [start, state.line]
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _draw(_self: RendererProtocol, tokens: list[Token], number: int, _options: OptionsDict, _env: EnvType) -> str:
    return f'<code class="math">{escapeHtml(tokens[number].content)}</code>'


def _draw_block(self: RendererProtocol, tokens: list[Token], number: int, options: OptionsDict, env: EnvType) -> str:
    return f'<pre data-language="LaTeX">{_draw(self, tokens, number, options, env)}</pre>\n'


MAX_MARKDOWN_CHARS = 200_000
MARKS = "[]()*_`<>!$\\|&~#"
MAX_MARKS = 20_000
# The answers of one page. And a line takes as long as this many marks, since it may be an item or a paragraph.
MAX_MARKS_OF_PAGE = 2 * MAX_MARKS
MARKS_OF_LINE = 2

# Characters with which the parser's rules begin or end, so that plain text may stop there. The parser's own list has
# twice as many, and tries all rules at each.
MARKUP = re.compile(r"[\n\\$`~*_\[\]<]")

TAGS = frozenset(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split()
)
ATTRIBUTES = {"*": set[str](), "a": {"href", "data-doubt"}, "ol": {"start"}, "pre": {"data-language"}}
HANDBOOK_ATTRIBUTES = {
    "a": {"href"},
    "img": {"src", "alt", "loading"},
    "ol": {"start"},
    **{f"h{level}": {"id"} for level in range(1, 7)},
}
CLASSES = {"code": {"math"}}
SCHEMES = frozenset({"http", "https", "mailto"})
LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,30}")
PRE = re.compile(r'<pre(?: data-language="([^"]*)")?>')
CODE_BAR = (
    '<div class="code"><div class="code-bar"><span>{language}</span>'
    '<button class="copy-code scripts-only" type="button" data-copy-code>{copy}</button></div><pre tabindex="0">'
)
PAGE_START = '<span class="page-start" id="page-{0}" role="doc-pagebreak" aria-label="{1}"></span>'
# What a line of Markdown may begin with. The number of an item counts as text.
LINE_MARK = re.compile(r"\s*(?:(?:#{1,6}|[-*+>])\s+)+")
ABSOLUTE = re.compile(r"(?:https?|mailto):", re.I)


def render_markdown(
    text: str,
    sources: Collection[int] = (),
    anchor: str = "",
    doubts: Mapping[tuple[int, int], str] | None = None,
    *,
    plain: bool = False,
) -> Markup:
    """Return an answer as safe HTML; ``[n]`` of the ``sources`` becomes a link to ``#anchor-n``.

    ``doubts`` describes doubtful citations, by source number and occurrence, from 1. A ``plain`` one isn't rendered.
    """
    if plain or is_too_much(text):
        return Markup("<pre>") + text + Markup("</pre>")
    return drawn(parse(text, sources, anchor, doubts))


def is_too_much(text: str) -> bool:
    """Return whether a text is shown unrendered: rendering takes 15 µs for each possible markup character."""
    return len(text) > MAX_MARKDOWN_CHARS or _marks(text) > MAX_MARKS


def _marks(text: str) -> int:
    return sum(map(text.count, MARKS)) + MARKS_OF_LINE * text.count("\n")


def too_much_for_page(answers: Sequence[str]) -> set[int]:
    """Return the positions of the answers that a page shows unrendered: the newest, at the end, are rendered first."""
    marks = accumulate(0 if is_too_much(one) else _marks(one) for one in reversed(answers))
    return {
        position
        for position, total in zip(reversed(range(len(answers))), marks, strict=True)
        if total > MAX_MARKS_OF_PAGE
    }


def render_document(pieces: Sequence[str | int]) -> Markup | None:
    """Return a document's Markdown as safe HTML; a number among the pieces is a page that begins there.

    The text between START and END is marked; ``None`` if their places were lost, such as in a link's target.
    """
    html = ""
    for page, part in groupby(pieces, lambda one: one if isinstance(one, int) else None):
        html += (
            PAGE_START.format(page, escape(gettext("Page {n}", n=page)))
            if page
            else _drawn_part("".join(map(str, part)))
        )
    edges = sum(one.count(START) for one in pieces if isinstance(one, str))
    if (html.count(START), html.count(END)) != (edges, edges):
        return None
    return Markup(mark_between(html))  # noqa: S704 - the sanitiser's output, with tags of ours


def _drawn_part(text: str) -> str:
    tokens = parse(text)
    for token in tokens:
        # The page's only first-level heading is the document's name.
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"
    for token in (child for block in tokens for child in block.children or ()):
        # A relative target would point into our site.
        if token.type == "link_open" and not ABSOLUTE.match(str(token.attrs.get("href"))):
            del token.attrs["href"]
    return str(drawn(tokens))


def parse(
    text: str, sources: Collection[int] = (), anchor: str = "", doubts: Mapping[tuple[int, int], str] | None = None
) -> list[Token]:
    """Return the tokens of a text, block by block."""
    citations = {n: Citations(f"#{anchor}-{n}", n, doubts or {}) for n in sources}
    return _parser.parse(text, {"citations": citations})


def plain_text(line: str) -> str:
    """Return a line of Markdown without its markup."""
    (inline,) = _parser.parseInline(
        line[match.end() :] if (match := LINE_MARK.match(line)) else line, {"citations": {}}
    )
    return "".join(" " if one.type.endswith("break") else one.content for one in inline.children or ())


def drawn(tokens: Sequence[Token], copy: str | None = None) -> Markup:
    """Return blocks as safe HTML, one element for each; ``copy`` is the button's label."""
    clean = _sanitiser.clean(_parser.renderer.render(tokens, _parser.options, {}))
    # In sanitised HTML every tag is ours: a literal "<" is "&lt;".
    bar = escape(copy or gettext("Copy"))
    framed = PRE.sub(lambda match: CODE_BAR.format(language=match.group(1) or "", copy=bar), clean)
    framed = _in_boxes(framed.replace("</pre>", "</pre></div>"))
    return Markup(framed)  # noqa: S704 - the sanitiser's output, and the only such place


def clean_handbook(drawn_pages: str) -> Markup:
    """Return a page of our own documentation as HTML, with pictures and anchors."""
    clean = _handbook_sanitiser.clean(drawn_pages).replace("<pre>", '<pre tabindex="0">')
    return Markup(_in_boxes(clean))  # noqa: S704 - the sanitiser's output


def _in_boxes(clean: str) -> str:
    """Put tables, which may be wide, into scrolling boxes."""
    return clean.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")


def _draw_code(
    _self: RendererProtocol, tokens: Sequence[Token], number: int, _options: OptionsDict, _env: EnvType
) -> str:
    token = tokens[number]
    language = (token.info.split() or [""])[0]
    named = f' data-language="{language}"' if LANGUAGE.fullmatch(language) else ""
    return f"<pre{named}><code>{escapeHtml(token.content)}</code></pre>\n"


class Citations(Struct):
    """The citations of one source in an answer, rendered one after the other."""

    href: str
    n: int
    doubts: Mapping[tuple[int, int], str]
    drawn: int = 0

    def next_link(self) -> Token:
        """Return the opening token of the next one."""
        self.drawn += 1
        attrs: dict[str, str | int | float] = {"href": self.href}
        if doubt := self.doubts.get((self.n, self.drawn)):
            attrs["data-doubt"] = doubt
        return Token("link_open", "a", 1, attrs=attrs)


def _link_citations(state: StateCore) -> None:
    """Turn citations, written [n], into links to their sources; other numbers stay text."""
    citations: dict[int, Citations] = state.env.get("citations") or {}
    for block in state.tokens:
        if block.type == "inline" and block.children and citations:
            block.children = [part for token in block.children for part in _split(token, citations)]


def _split(token: Token, citations: Mapping[int, Citations]) -> list[Token]:
    if token.type != "text":
        return [token]
    parts: list[Token] = []
    end = 0
    for match in CITATION.finditer(token.content):
        numbers = cited_numbers(match)
        if citations.keys().isdisjoint(numbers):
            continue
        parts.append(Token("text", "", 0, content=token.content[end : match.start()]))
        for number in numbers:
            text = Token("text", "", 0, content=f"[{number}]")
            parts += (
                [citations[number].next_link(), text, Token("link_close", "a", -1)] if number in citations else [text]
            )
        end = match.end()
    return [*parts, Token("text", "", 0, content=token.content[end:])]


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"])
    # No pictures. And no link definitions: a list of sources such as "[1]: Handbook" should stay visible.
    parser.disable(["image", "reference", "entity"])
    # Formulas go before escapes and emphasis.
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before("fence", "formula", _block, {"alt": ["paragraph", "blockquote", "list"]})
    parser.add_render_rule("formula", _draw)
    parser.add_render_rule("formula_block", _draw_block)
    # What is nested too deeply, and rows beyond a number of cells, stay text.
    parser.block.ruler.at("blockquote", _not_too_deep(blockquote), {"alt": [*ENDED_BY, "list"]})
    parser.block.ruler.at("list", _not_too_deep(list_block), {"alt": ENDED_BY})
    parser.block.ruler.at("table", _not_too_large, {"alt": ["paragraph", "reference"]})
    parser.inline.terminator_re = MARKUP
    parser.add_render_rule("fence", _draw_code)
    parser.add_render_rule("code_block", _draw_code)
    parser.core.ruler.push("citations", _link_citations)
    parser.validateLink = _is_harmless  # type: ignore[method-assign]
    parser.parse("*a*")  # It lists its rules at the first text: two threads would disturb each other.
    return parser


def _is_harmless(url: str) -> bool:
    scheme, colon, _ = html.unescape(url).strip().lower().partition(":")
    return not colon or scheme in SCHEMES


_parser = _make_parser()
# Created once: that takes longer than sanitising a short answer.
_sanitiser = nh3.Cleaner(
    tags=set(TAGS),
    attributes=ATTRIBUTES,
    allowed_classes=CLASSES,
    url_schemes=set(SCHEMES),
    link_rel="noopener noreferrer nofollow",
    clean_content_tags={"script", "style"},
)
_handbook_sanitiser = nh3.Cleaner(
    tags={*TAGS, "img"}, attributes=HANDBOOK_ATTRIBUTES, url_schemes=set(SCHEMES), link_rel=None
)
