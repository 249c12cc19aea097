"""Lists and quotes in answers, nested within each other only so far: what stands deeper stays text.

The parser has a limit of its own, by which it leaves out all that is nested deeper.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock, blockquote, list_block

# A list opens two levels, itself and its item, and what stands in it needs one more below the parser's own limit.
LEVELS_OF_A_LIST = 2
ENDED_BY = ["paragraph", "reference", "blockquote"]


def limit_nesting(parser: MarkdownIt) -> None:
    """Let a parser take the marks of a list or a quote that would be nested too deeply for text."""
    parser.block.ruler.at("blockquote", _not_too_deep(blockquote), {"alt": [*ENDED_BY, "list"]})
    parser.block.ruler.at("list", _not_too_deep(list_block), {"alt": ENDED_BY})


def _not_too_deep(rule: RuleFuncBlockType) -> RuleFuncBlockType:
    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        deepest = state.md.options.maxNesting - LEVELS_OF_A_LIST - 1
        return state.level <= deepest and rule(state, start, end, silent)

    return limited
