r"""Formulas in answers: they stay readable as source, and Markdown leaves them alone.

Supported are $...$, $$...$$, \(...\) and \[...\], as models write LaTeX.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# A list opens two levels, itself and its item, and its content needs one more below the parser's own limit.
LEVELS_OF_A_LIST = 2
ENDED_BY = ["paragraph", "reference", "blockquote"]


def limit_nesting(parser: MarkdownIt) -> None:
    """Make the parser treat lists and quotes that are nested too deeply as text."""
    parser.block.ruler.at("blockquote", _not_too_deep(blockquote), {"alt": [*ENDED_BY, "list"]})
    parser.block.ruler.at("list", _not_too_deep(list_block), {"alt": ENDED_BY})


def _not_too_deep(rule: RuleFuncBlockType) -> RuleFuncBlockType:
    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        deepest = state.md.options.maxNesting - LEVELS_OF_A_LIST - 1
        return state.level <= deepest and rule(state, start, end, silent)

    return limited


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


def enable_formulas(parser: MarkdownIt) -> None:
    """Add formulas to a parser, before escapes and emphasis."""
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before("fence", "formula", _block, {"alt": ["paragraph", "blockquote", "list"]})
    parser.add_render_rule("formula", _draw)
    parser.add_render_rule("formula_block", _draw_block)


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
