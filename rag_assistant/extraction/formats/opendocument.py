"""Read ODT and ODP: headings, paragraphs, lists, tables, text boxes, notes; each slide is a page."""

import re
from collections.abc import Collection, Iterator
from functools import reduce

from rag_assistant.extraction.formats.kinds import ODP, ODT
from rag_assistant.extraction.formats.markup import Span, heading, joined, pages_of, spread, table
from rag_assistant.extraction.formats.packages import Element, Package, attribute, local, number
from rag_assistant.extraction.formats.word_lists import MAX_NUMBER, Level, Lists, labelled
from rag_assistant.extraction.recognised import Box, reading_order
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

MAX_REPEATS = 100
# How numbers are written; the list of numbered headings; and the attribute for a paragraph's number.
NUMBERS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", None: "none"}
HEADINGS, LABEL = "outline-style", "label"
LENGTH = re.compile(r"(-?\d{1,6}(?:\.\d{1,9})?)(cm|mm|in|pt)")
CENTIMETRES = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72}
SKIPPED = frozenset("tracked-changes forms sequence-decls variable-decls note-citation desc".split())


def read_opendocument(package: Package, media_type: str) -> ExtractedText:
    """Return the text of an ODT or ODP as Markdown. Raises ExtractionFailed."""
    refuse_encrypted(package)
    root, styles = package.xml("content.xml"), package.optional("styles.xml")
    _number(root, _lists_in(*(one for one in (styles, root) if one is not None)))
    if media_type == ODP:
        hidden = {
            attribute(style, "name")
            for style in root.findall("{*}automatic-styles/{*}style")
            if any(attribute(one, "visibility") == "hidden" for one in style)
        }
        return pages_of([_slide(slide, hidden) for slide in root.findall(".//{*}page")], ODP, markdown=True)
    body = root.find(".//{*}body")
    blocks = _blocks(root if body is None else body)
    for element in styles.iter() if styles is not None else ():
        if local(element) in ("header", "footer"):
            blocks += _blocks(element)
    return ExtractedText(joined(blocks), ODT, markdown=True)


def refuse_encrypted(package: Package) -> None:
    """Raise ExtractionFailed for a file with a password."""
    manifest = package.optional("META-INF/manifest.xml")
    if manifest is not None and manifest.find(".//{*}encryption-data") is not None:
        raise ExtractionFailed("This document has a password. Save it without one and add it again.")


def _lists_in(*roots: Element) -> Lists:
    """Return the list styles, by their names."""
    lists = Lists()
    for style in (one for root in roots for one in root.iter() if local(one) in ("list-style", HEADINGS)):
        name = HEADINGS if local(style) == HEADINGS else attribute(style, "name") or ""
        lists.kind_of[name], levels = name, lists.kinds.setdefault(name, {})
        for one in style:
            depth = number(attribute(one, "level"), 1)
            shown = range(depth + 1 - min(number(attribute(one, "display-levels"), 1), depth), depth + 1)
            way = attribute(one, "num-format") or None
            numbers = ".".join(f"%{level}" for level in shown if way)
            label = f"{attribute(one, 'num-prefix') or ''}{numbers}{attribute(one, 'num-suffix') or ''}"
            start = min(number(attribute(one, "start-value"), 1), MAX_NUMBER)
            written = "bullet" if local(one) == "list-level-style-bullet" else NUMBERS.get(way, "decimal")
            levels[depth - 1] = Level(start, written, label)
    return lists


def _number(parent: Element, lists: Lists, name: str = "", depth: int = -1) -> None:
    """Write the number of each list item and heading into its first paragraph."""
    for element in parent:
        inner, deep, kind = name, depth, local(element)
        if kind == "list":
            inner, deep = attribute(element, "style-name") or name, depth + 1
            continues = attribute(element, "continue-numbering") == "true" or attribute(element, "continue-list")
            if not deep and not continues:
                lists.counts.pop(inner, None)
        elif kind == "list-item" and depth >= 0:
            if start := attribute(element, "start-value"):
                lists.starts[name] = {depth: min(number(start, 1), MAX_NUMBER)}
            if len(element) and local(element[0]) in ("p", "h"):
                element[0].set(LABEL, lists.next_label(name, depth))
        elif kind == "h" and depth < 0 and attribute(element, "is-list-header") != "true":
            element.set(LABEL, lists.next_label(HEADINGS, number(attribute(element, "outline-level"), 1) - 1))
        _number(element, lists, inner, deep)


def _slide(slide: Element, hidden: Collection[str | None]) -> str:
    title, blocks = "", list[str]()
    frames = [element for element in slide if "".join(element.itertext()).strip()]
    boxes = [_box(frame) for frame in frames if local(frame) != "notes"]
    if None not in boxes:
        frames = [*(frames[n] for n in reading_order([box for box in boxes if box])), *frames[len(boxes) :]]
    for element in frames:
        if attribute(element, "class") == "title" and not title:
            title = heading(2, " ".join(_blocks(element)))
        elif local(element) == "notes":
            notes = " ".join(_blocks(element)).strip()
            blocks.append(f"Notes: {notes}" if notes else "")
        else:
            blocks += _blocks(element, itself=True)
    is_hidden = attribute(slide, "style-name") in hidden
    return joined([title, "(This slide is hidden.)" if is_hidden else "", *blocks])


def _box(frame: Element) -> Box | None:
    """Return the place of a frame on its slide, or what the frames of a group cover; ``None`` if it is unknown."""
    if local(frame) == "g":
        boxes = [box for box in map(_box, frame) if box is not None]
        return reduce(Box.with_, boxes) if boxes else None
    lengths = [LENGTH.fullmatch(attribute(frame, name) or "") for name in ("x", "y", "width", "height")]
    figures = [float(one[1]) * CENTIMETRES[one[2]] for one in lengths if one is not None]
    if len(figures) < len(lengths):
        return None
    left, top, width, height = figures
    return Box(left, top, left + width, top + height)


def _blocks(parent: Element, depth: int = -1, *, itself: bool = False) -> list[str]:
    """Return the blocks in an element; ``depth`` is that of the enclosing list, -1 outside."""
    blocks: list[str] = []
    for element in [parent] if itself else parent:
        kind = local(element)
        if kind in ("p", "h"):
            beside: list[Element] = []
            text = _text(element, beside, top=True).strip()
            label = element.get(LABEL, "")
            if kind == "h":
                blocks.append(heading(number(attribute(element, "outline-level"), 1), text and f"{label} {text}"))
            else:
                blocks.append(labelled(depth, label, text) if depth >= 0 else text)
            blocks += [block for frame in beside for block in _blocks(frame)]
        elif kind == "list":
            blocks += _blocks(element, depth + 1)
        elif kind == "table":
            blocks.append(_table(element))
        elif kind not in SKIPPED:
            blocks += _blocks(element, depth)
    return blocks


def text_of(element: Element) -> str:
    """Return the text of a paragraph or comment alone, on one line."""
    return " ".join(_text(element, [], top=True).split())


def _text(element: Element, beside: list[Element], *, top: bool = False) -> str:
    """Return the text of a paragraph; frames with their own text are put ``beside``."""
    kind = local(element)
    if not top and kind in SKIPPED:
        return ""
    if kind in ("text-box", "table"):
        beside.append(element)
        return ""
    text = {"tab": "\t", "line-break": "\n", "note": " (", "annotation": " ("}.get(kind, "")
    if kind == "s":
        text = " " * min(number(attribute(element, "c"), 1), MAX_REPEATS)
    text += element.text or ""
    for child in element:
        text += _text(child, beside) + (child.tail or "")
    return text + (")" if kind in ("note", "annotation") else "")


def rows_in(parent: Element) -> Iterator[Element]:
    """Yield the rows of a table, including those in groups, but not those of nested tables."""
    for element in parent:
        if local(element) == "table-row":
            yield element
        elif local(element) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from rows_in(element)


def _table(element: Element) -> str:
    rows, spans = list[list[str]](), list[Span]()
    for line, row in enumerate(rows_in(element)):
        cells: list[str] = []
        for cell in (one for one in row if local(one) in ("table-cell", "covered-table-cell")):
            across, down = (number(attribute(cell, f"number-{name}-spanned"), 1) for name in ("columns", "rows"))
            if across > 1 or down > 1:
                spans.append(Span(line, len(cells), line + down - 1, len(cells) + across - 1))
            text = " ".join(block.strip().removeprefix("- ") for block in _blocks(cell))
            cells += [text] * min(number(attribute(cell, "number-columns-repeated"), 1), MAX_REPEATS)
        rows.append(cells)
    return table(spread(rows, spans))
