"""The numbers of lists and headings in DOCX, OpenDocument and PPTX, as shown there: 3., 3.1, (a), Article 1:."""

from __future__ import annotations

import re

from msgspec import Struct, field

from rag_assistant.extraction.formats.markup import item
from rag_assistant.extraction.formats.packages import Element, attribute, local, number

DEEPEST_LIST = 9
MAX_NUMBER = 100_000
LEVEL = re.compile(r"%([1-9])")
ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x", 9: "ix"} | {
    5: "v", 4: "iv", 1: "i",
}  # fmt: skip
# What Markdown numbers by itself.
ORDERED = re.compile(r"\d+\.")


class Level(Struct):
    """One level of a list: its first number, how it is written, and what is around it, such as ``(%1)``."""

    start: int = 1
    style: str = "decimal"
    label: str = ""
    restarts: bool = True
    is_legal: bool = False
    for_style: str = ""


class Lists(Struct):
    """The lists of a document by id, each with its kind; lists of one kind count on, unless they start anew."""

    kinds: dict[str, dict[int, Level]] = field(default_factory=dict)
    kind_of: dict[str, str] = field(default_factory=dict)
    starts: dict[str, dict[int, int]] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)

    def depth_of(self, number_id: str, style: str) -> int:
        """Return at which level of a list the paragraphs of a style are."""
        levels = self.kinds.get(self.kind_of.get(number_id, ""), {})
        return next((depth for depth, level in levels.items() if level.for_style == style), 0)

    def next_label(self, number_id: str, depth: int) -> str:
        """Count a list's next item, and return what Word shows in front of it; empty for a bullet."""
        kind = self.kind_of.get(number_id, "")
        levels, counts = self.kinds.get(kind, {}), self.counts.setdefault(kind, {})
        level = levels.get(depth)
        if level is None or level.style == "bullet":
            return ""
        counts.update({deep: start - 1 for deep, start in self.starts.pop(number_id, {}).items()})
        for above in range(depth):
            counts.setdefault(above, levels.get(above, Level()).start)
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deep in [one for one in counts if one > depth and levels.get(one, Level()).restarts]:
            del counts[deep]

        def shown(match: re.Match[str]) -> str:
            deep = int(match[1]) - 1
            style = levels.get(deep, Level()).style
            return written(counts.get(deep, 1), "decimal" if level.is_legal and deep < depth else style)

        return " ".join(LEVEL.sub(shown, level.label).split())


def lists_of(root: Element | None) -> Lists:
    """Return the lists that the part ``numbering.xml`` defines."""
    lists = Lists()
    linked: dict[str, str] = {}  # A kind that is defined elsewhere, by the name of a style.
    named: dict[str, str] = {}
    for element in root if root is not None else ():
        if local(element) == "abstractNum":
            kind = attribute(element, "abstractNumId") or ""
            lists.kinds[kind] = dict(_level(one) for one in element.findall("{*}lvl"))
            for one in element:
                if local(one) == "numStyleLink":
                    linked[kind] = attribute(one, "val") or ""
                elif local(one) == "styleLink":
                    named[attribute(one, "val") or ""] = kind
        elif local(element) == "num":
            identifier = attribute(element, "numId") or ""
            kind = next((attribute(one, "val") or "" for one in element.findall("{*}abstractNumId")), "")
            for one in element.findall("{*}lvlOverride"):
                depth = number(attribute(one, "ilvl"))
                for start in one.findall("{*}startOverride"):
                    lists.starts.setdefault(identifier, {})[depth] = min(number(attribute(start, "val")), MAX_NUMBER)
                for level in one.findall("{*}lvl"):
                    own = f"{kind} of {identifier}"
                    lists.kinds[own] = lists.kinds.get(own, lists.kinds.get(kind, {})) | dict([_level(level)])
                    kind = own if own in lists.kinds else kind
            lists.kind_of[identifier] = kind
    for kind, style in linked.items():
        lists.kinds[kind] = lists.kinds[kind] or lists.kinds.get(named.get(style, ""), {})
    return lists


def _level(element: Element) -> tuple[int, Level]:
    values = {local(part): attribute(part, "val") for part in element}
    depth = min(number(attribute(element, "ilvl")), DEEPEST_LIST - 1)
    level = Level(
        min(number(values.get("start"), 1), MAX_NUMBER),
        values.get("numFmt") or "decimal",
        values.get("lvlText", f"%{depth + 1}.") or "",
        restarts=values.get("lvlRestart") != "0",
        is_legal="isLgl" in values and values["isLgl"] not in ("0", "false"),
        for_style=values.get("pStyle") or "",
    )
    return depth, level


def labelled(depth: int, label: str, text: str) -> str:
    """Return a list item with its number, empty for an empty text."""
    return item(depth, text, label) if ORDERED.fullmatch(label) else item(depth, text and f"{label} {text}")


def written(count: int, style: str) -> str:
    """Return a number as a format of Word writes it; in an unknown one as digits."""
    if style in ("lowerRoman", "upperRoman") and 0 < count < 4000:
        text = ""
        for value, letters in ROMAN.items():
            times, count = divmod(count, value)
            text += letters * times
        return text if style == "lowerRoman" else text.upper()
    if style in ("lowerLetter", "upperLetter") and 0 < count < 500:
        text = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
        return text if style == "lowerLetter" else text.upper()
    if style == "decimalZero":
        return f"{count:02}"
    return "" if style == "none" else str(count)
