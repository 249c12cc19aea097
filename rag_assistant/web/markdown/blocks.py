"""Renders a streaming answer block by block: finished blocks once, the open end with each piece.

What a reader has seen never disappears. So the open end is rendered as it will most likely read when it is finished:
each step removes a last piece that may still become markup (half a fence, the dash of a list), or closes what is open
(bold text, code, a table's header). What can still become either text or markup is held back.
"""

import re

from rag_assistant.web.languages import gettext
from rag_assistant.web.markdown.render import drawn, is_too_much, parse, render_markdown

# A last line that may become markup: a heading, a list, a quote, a rule, a fence, a table's second line, after the
# markers of enclosing lists and quotes. No backtracking (``(?>``, ``++``): a long run would take quadratic time.
MAYBE_MARK = re.compile(
    r"(?>(?:[ \t>]|(?:[*+-]|\d{1,9}[.)])[ \t])*)(?:[#*+=_:|\s-]++|\d{1,9}[.)]?|[`~*_#|]++|[`~]++[^\n`]*+)?"
)
FENCE = re.compile(r"^[ \t>]*(?:(?:[*+-]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})", re.MULTILINE)
# Half of what may become another character or a formula: an escape, an entity.
HALF_A_CHARACTER = re.compile(r"\\$")
LINK_WITHOUT_END = re.compile(r"\[([^\[\]\n]*)\](?:\([^()\s]*)?$")
BRACKET_WITHOUT_END = re.compile(r"\[([^\[\]\n]*)$")
NUMBER = re.compile(r"\d{0,3}")
# Where a paragraph, an item, a cell or a heading begins, earlier inline markup ends.
NEW_UNIT = re.compile(r"\n[ \t]*\n|\n[ \t>]*(?=(?:[*+-]|\d{1,9}[.)])[ \t]|#{1,6}[ \t]|\|)")
ROW = re.compile(r"[ \t]*\|.*")
RULE_OF_TABLE = re.compile(r"[ \t]*\|[|:\- \t]*")
MARKS = re.compile(r"\*\*\*|\*\*|\*|~~|__|_")
ESCAPE_OR_TICKS = re.compile(r"\\.|`+")
TICKS = re.compile(r"`+")


def completed(text: str) -> str:
    """Return the end of an answer so that nothing it shows disappears when more comes."""
    head, line = _last_line(text)
    if _in_fence(text):
        return head if re.fullmatch(r"[ \t>]*[`~]+[ \t]*", line) else text
    table = _table_head(head, line)
    if table is not None:
        return table
    if line and MAYBE_MARK.fullmatch(line) and not ROW.fullmatch(line):
        return head
    text = HALF_A_CHARACTER.sub("", text)
    start = max((match.end() for match in NEW_UNIT.finditer(text)), default=0)
    unit = text[start:]
    cell = unit.rfind("|") + 1 if ROW.fullmatch(_last_line(text)[1]) else 0
    return text[: start + cell] + _closed(unit[cell:])


def _last_line(text: str) -> tuple[str, str]:
    """Return the complete lines of a text, and the incomplete last one."""
    end = text.rfind("\n") + 1
    return text[:end], text[end:]


def _in_fence(text: str) -> bool:
    """Return whether the text ends within a fenced code block whose first line is complete."""
    opening = None
    whole = text[: text.rfind("\n") + 1]
    for match in FENCE.finditer(whole):
        marks = match.group(1)
        if opening is None:
            opening = marks
        elif marks[0] == opening[0] and len(marks) >= len(opening):
            opening = None
    return opening is not None


def _table_head(head: str, line: str) -> str | None:
    """Return the text with a delimiter row if a table has only its header; ``None`` if it ends otherwise."""
    lines = head.split("\n")[:-1]
    if (not line or RULE_OF_TABLE.fullmatch(line)) and _is_row(lines) and not _is_row(lines[:-1]):
        return head + _rule_for(lines[-1])
    if ROW.fullmatch(line) and not _is_row(lines):
        filled = line if line.rstrip().endswith("|") and len(line.strip()) > 1 else line + "|"
        if not filled.strip("| \t"):
            return head
        cut = filled.rstrip().rstrip("|")
        start = cut.rfind("|") + 1
        row = cut[:start] + _closed(cut[start:]) + "|"
        return f"{head}{row}\n{_rule_for(row)}"
    return None


def _is_row(lines: list[str]) -> bool:
    return bool(lines) and ROW.fullmatch(lines[-1]) is not None


def _rule_for(row: str) -> str:
    return "|" + "---|" * len(re.split(r"(?<!\\)\|", row.strip().strip("|")))


def _closed(unit: str) -> str:
    """Return inline text with all open markup closed."""
    unit = _without_new_marks(unit)
    plain, open_code = _without_code(unit)
    if open_code:
        return unit + open_code
    unit = _without_half_a_link(unit)
    plain, _ = _without_code(unit)
    return unit + "".join(reversed(_open_marks(plain)))


def _without_new_marks(unit: str) -> str:
    """Remove the markers at the very end that have nothing to close."""
    text = unit.removesuffix("\n")
    before = text.rstrip("*_~`")
    if before == text:
        return unit
    plain, open_code = _without_code(before)
    if open_code or _open_marks(plain):
        return unit
    # Within a word, as in a name, an underscore is no markup.
    stripped = text.rstrip("*~`") if before and not before[-1].isspace() else before
    return stripped + unit[len(text) :]


def _without_code(unit: str) -> tuple[str, str]:
    """Return the text with its code spans blanked out, and the backticks that would close an open one."""
    plain, position = "", 0
    while (match := ESCAPE_OR_TICKS.search(unit, position)) is not None:
        plain += unit[position : match.start()]
        position = match.end()
        if match.group(0)[0] == "\\":
            plain += "xx"
            continue
        runs = TICKS.finditer(unit, position)
        end = next((run for run in runs if len(run.group(0)) == len(match.group(0))), None)
        if end is None:  # Part of its closing backticks may be there already.
            inside = unit[position:]
            there = len(inside) - len(inside.rstrip("`"))
            return plain, match.group(0)[there:] if inside.strip("` ") else ""
        plain += "x" * (end.end() - match.start())
        position = end.end()
    return plain + unit[position:], ""


def _without_half_a_link(unit: str) -> str:
    """Show only the text of a link without a complete address; a number in brackets cites a source."""
    if (match := BRACKET_WITHOUT_END.search(unit)) is not None:
        inside = match.group(1)
        return unit[: match.start()] + ("" if NUMBER.fullmatch(inside) else inside)
    if (match := LINK_WITHOUT_END.search(unit)) is not None and not NUMBER.fullmatch(match.group(1)):
        return unit[: match.start()] + match.group(1)
    return unit


def _open_marks(plain: str) -> list[str]:
    """Return the emphasis markers open at the end of a text, outermost first."""
    stack: list[str] = []
    for match in MARKS.finditer(plain):
        mark = match.group(0)
        before, behind = plain[max(0, match.start() - 1) : match.start()], plain[match.end() : match.end() + 1]
        if mark in stack and before.strip():
            del stack[stack.index(mark) :]
        elif behind.strip() and (mark in ("**", "~~") or not before.strip() or not before.isalnum()):
            stack.append(mark)
    return stack


# Lines as Markdown counts them; str.splitlines also breaks at form feeds and Unicode separators.
LINES = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


class Blocks:
    """Takes an answer piece by piece, from its beginning."""

    def __init__(self) -> None:
        self._open = ""
        self._finished = 0
        # Rendering continues after the request has ended.
        self._copy = gettext("Copy")

    def add(self, text: str) -> tuple[int, str]:
        """Add a piece; return how many rendered elements stay, and the HTML after them."""
        self._open += text
        keep = self._finished
        if is_too_much(self._open):
            return keep, str(render_markdown(self._open))
        tokens, html = parse(self._open), ""
        starts = [number for number, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
        if len(starts) > 1:  # All blocks but the last are finished.
            last = tokens[starts[-1]]
            self._finished += len(starts) - 1
            html = str(drawn(tokens[: starts[-1]], self._copy))
            self._open = "".join(LINES.findall(self._open)[last.map[0] if last.map else 0 :])
        return keep, html + str(drawn(parse(completed(self._open)), self._copy))
