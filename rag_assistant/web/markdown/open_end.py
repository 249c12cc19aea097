"""The open end of an answer in Markdown, as it will most probably read once it is finished. Pure.

Each step either takes away a last piece that may still turn into a mark (half a fence, the dash of a list), or closes
what is open (bold text, a piece of code, the head of a table).
"""

import re

# A last line that may become a mark: of a heading, a list, a quote, a rule, a fence, a table's second line. In front of
# it may stand the marks of the lists and quotes that hold it. Nothing that it took is tried once more in another way
# (``(?>``, ``++``): a long run would cost the square of its length.
MAYBE_MARK = re.compile(
    r"(?>(?:[ \t>]|(?:[*+-]|\d{1,9}[.)])[ \t])*)(?:[#*+=_:|\s-]++|\d{1,9}[.)]?|[`~*_#|]++|[`~]++[^\n`]*+)?"
)
FENCE = re.compile(r"^[ \t>]*(?:(?:[*+-]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})", re.MULTILINE)
# Half of what may become another character or a formula: an escape, an entity.
HALF_A_CHARACTER = re.compile(r"\\$")
LINK_WITHOUT_END = re.compile(r"\[([^\[\]\n]*)\](?:\([^()\s]*)?$")
BRACKET_WITHOUT_END = re.compile(r"\[([^\[\]\n]*)$")
NUMBER = re.compile(r"\d{0,3}")
# Where a paragraph, an item, a cell or a heading begins, marks of an earlier one are over.
NEW_UNIT = re.compile(r"\n[ \t]*\n|\n[ \t>]*(?=(?:[*+-]|\d{1,9}[.)])[ \t]|#{1,6}[ \t]|\|)")
ROW = re.compile(r"[ \t]*\|.*")
RULE_OF_TABLE = re.compile(r"[ \t]*\|[|:\- \t]*")
MARKS = re.compile(r"\*\*\*|\*\*|\*|~~|__|_")
ESCAPE_OR_TICKS = re.compile(r"\\.|`+")
TICKS = re.compile(r"`+")


def completed(text: str) -> str:
    """Return the end of an answer so that nothing that it shows will go away when more comes."""
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
    """Return the whole lines of a text, and the last line that has no end yet."""
    end = text.rfind("\n") + 1
    return text[:end], text[end:]


def _in_fence(text: str) -> bool:
    """Tell whether the text ends within a fenced piece of code, whose first line is whole."""
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
    """Return the text with the second line of a table that has only its head; ``None`` if it ends otherwise."""
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
    cells = len(re.split(r"(?<!\\)\|", row.strip().strip("|")))
    return "|" + "---|" * cells


def _closed(unit: str) -> str:
    """Return a piece of running text with everything closed that is open in it."""
    unit = _without_new_marks(unit)
    plain, open_code = _without_code(unit)
    if open_code:
        return unit + open_code
    unit = _without_half_a_link(unit)
    plain, _ = _without_code(unit)
    return unit + "".join(reversed(_open_marks(plain)))


def _without_new_marks(unit: str) -> str:
    """Take away the marks at the very end that have nothing in front that they could close."""
    text = unit.removesuffix("\n")
    before = text.rstrip("*_~`")
    if before == text:
        return unit
    plain, open_code = _without_code(before)
    if open_code or _open_marks(plain):
        return unit
    # Within a word, as in a name, an underscore is no mark.
    stripped = text.rstrip("*~`") if before and not before[-1].isspace() else before
    return stripped + unit[len(text) :]


def _without_code(unit: str) -> tuple[str, str]:
    """Return the text with its pieces of code blanked out, and the marks that would close one that is open."""
    plain, position = "", 0
    while (match := ESCAPE_OR_TICKS.search(unit, position)) is not None:
        plain += unit[position : match.start()]
        position = match.end()
        if match.group(0)[0] == "\\":
            plain += "xx"
            continue
        runs = TICKS.finditer(unit, position)
        end = next((run for run in runs if len(run.group(0)) == len(match.group(0))), None)
        if end is None:
            return plain, _rest_of(match.group(0), unit[position:])
        plain += "x" * (end.end() - match.start())
        position = end.end()
    return plain + unit[position:], ""


def _rest_of(marks: str, inside: str) -> str:
    """Return what closes a piece of code, half of whose closing marks may be there already."""
    there = len(inside) - len(inside.rstrip("`"))
    return marks[there:] if inside.strip("` ") else ""


def _without_half_a_link(unit: str) -> str:
    """Show of a link that has no address yet its text alone; a number in brackets cites a source."""
    if (match := BRACKET_WITHOUT_END.search(unit)) is not None:
        inside = match.group(1)
        return unit[: match.start()] + ("" if NUMBER.fullmatch(inside) else inside)
    if (match := LINK_WITHOUT_END.search(unit)) is not None and not NUMBER.fullmatch(match.group(1)):
        return unit[: match.start()] + match.group(1)
    return unit


def _open_marks(plain: str) -> list[str]:
    """Return the marks of emphasis that are open at the end of a text, the outermost first."""
    stack: list[str] = []
    for match in MARKS.finditer(plain):
        mark = match.group(0)
        before, behind = plain[max(0, match.start() - 1) : match.start()], plain[match.end() : match.end() + 1]
        if mark in stack and before.strip():
            del stack[stack.index(mark) :]
        elif behind.strip() and (mark in ("**", "~~") or not before.strip() or not before.isalnum()):
            stack.append(mark)
    return stack
