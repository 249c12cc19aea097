"""Read PPTX: each slide is a page with its title, text, tables, charts, diagrams and notes."""

import re
from collections.abc import Iterator, Mapping

from rag_assistant.extraction.formats.kinds import PPTX
from rag_assistant.extraction.formats.markup import Span, heading, item, joined, pages_of, spread, table
from rag_assistant.extraction.formats.packages import RELATION_ID, Element, Package, attribute, charts_of, local, number
from rag_assistant.extraction.formats.word_lists import MAX_NUMBER, labelled, written
from rag_assistant.extraction.recognised import Box, reading_order
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

TITLES = ("title", "ctrTitle")
MAX_SPAN = 1_000
NUMBERS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
FURNITURE = ("sldNum", "dt", "sldImg")
# A distance in 1/914,400 of an inch.
UNITS = re.compile(r"-?\d{1,10}")
CONTENT = ("t", "graphicFrame", "pic")
Relations = dict[str, tuple[str, str]]
# Where a layout and its master have their placeholders, by number or type.
Inherited = Mapping[str, Box]


def read_pptx(package: Package) -> ExtractedText:
    """Return the text of a PPTX as Markdown, slide by slide. Raises ExtractionFailed."""
    main = package.main_part()
    relations = package.relations(main)
    entries = package.xml(main).findall(".//{*}sldId")
    names = [relations.get(entry.get(RELATION_ID, ""), ("", ""))[1] for entry in entries]
    slides, pictured, broken = [], 0, 0
    for name in names:
        try:
            text, has_picture = _slide(package, name)
        except ExtractionFailed:
            text, has_picture = "", False
            broken += 1
        slides.append(text)
        pictured += has_picture and not text
    if names and broken == len(names):
        raise ExtractionFailed(f"This presentation is damaged: none of its {len(names)} slides can be read.")
    warnings = []
    if broken:
        warnings.append(f"{broken} of {len(names)} slides are damaged and could not be read.")
    if pictured:
        warnings.append(
            f"{pictured} of {len(names)} slides have only a picture and no text. Their content is not searchable."
        )
    return pages_of(slides, PPTX, " ".join(warnings) or None, markdown=True)


def _slide(package: Package, name: str) -> tuple[str, bool]:
    """Return a slide's text, and whether it has a picture."""
    root = package.xml(name)
    relations = package.relations(name)
    blocks: list[str] = []
    title = ""
    for shape in _shapes(root, _inherited(package, relations)):
        placeholder = _placeholder(shape)
        if placeholder in FURNITURE:
            continue
        if placeholder in TITLES and not title:
            title = heading(2, _line(shape))
        else:
            blocks += _shape(package, shape, relations, placeholder)
    part = package.optional(_related(relations, "notesSlide"))
    if part is not None:
        bodies = (shape for shape in _shapes(part) if _placeholder(shape) == "body")
        paragraphs = [_line(shape) for shape in bodies]
        blocks.append("Notes: " + " ".join(paragraphs) if any(paragraphs) else "")
    for kind, target in relations.values():
        if kind == "comments" and (part := package.optional(target)) is not None:
            for comment in (one for one in part if local(one) == "cm"):
                text = " ".join(one.text for one in comment.iter() if local(one) in ("text", "t") and one.text)
                blocks.append(f"Comment: {' '.join(text.split())}" if text.strip() else "")
    hidden = "(This slide is hidden.)" if root.get("show") == "0" else ""
    return joined([title, hidden, *blocks]), root.find(".//{*}pic") is not None


def _inherited(package: Package, relations: Relations) -> Inherited:
    """Return the places of the placeholders in a slide's layout, and of those of its master that it leaves there."""
    layout = _related(relations, "slideLayout")
    boxes: dict[str, Box] = {}
    for name in (_related(package.relations(layout), "slideMaster"), layout):
        part = package.optional(name)
        for shape in _shapes(part) if part is not None else ():
            placeholder, box = shape.find(".//{*}ph"), _box(shape, {})
            if placeholder is not None and box is not None:
                boxes |= dict.fromkeys(_names_of(placeholder), box)
    return boxes


def _related(relations: Relations, kind: str) -> str:
    return next((target for one, target in relations.values() if one == kind), "")


def _shapes(parent: Element, inherited: Inherited | None = None) -> Iterator[Element]:
    """Yield shapes, tables and pictures, including those in groups, but not fallbacks for old programs.

    With what placeholders inherit, they come in reading order, unless the place of one is unknown.
    """
    elements = [one for one in parent if local(one) != "Fallback"]
    if inherited is not None:
        elements = [one for one in elements if any(local(inner) in CONTENT for inner in one.iter())]
        boxes = [_box(one, inherited) for one in elements]
        if None not in boxes:
            elements = [elements[n] for n in reading_order([box for box in boxes if box is not None])]
    for element in elements:
        if local(element) in ("sp", "graphicFrame", "pic"):
            yield element
        else:
            yield from _shapes(element, inherited)


def _box(shape: Element, inherited: Inherited) -> Box | None:
    """Return the place of a shape or group on its slide or in its group, its own one or that of its placeholder."""
    offset, size = shape.find(".//{*}xfrm/{*}off"), shape.find(".//{*}xfrm/{*}ext")
    if offset is not None and size is not None:
        figures = [*map(offset.get, "xy"), size.get("cx"), size.get("cy")]
        left, top, width, height = (int(one) if one and UNITS.fullmatch(one) else 0 for one in figures)
        return Box(left, top, left + width, top + height)
    placeholder = shape.find(".//{*}ph")
    names = _names_of(placeholder) if placeholder is not None else []
    return next((inherited[name] for name in names if name in inherited), None)


def _names_of(placeholder: Element) -> list[str]:
    """Return the number and the type of a placeholder, by which others are found."""
    return [name for name in (placeholder.get("idx"), placeholder.get("type", "body")) if name]


def _shape(package: Package, shape: Element, relations: Relations, placeholder: str | None) -> list[str]:
    if local(shape) == "pic":
        described = next((element.get("descr", "") for element in shape.iter() if local(element) == "cNvPr"), "")
        return [f"[Picture: {' '.join(described.split())}]"] if described.strip() else []
    if local(shape) == "graphicFrame":
        return _frame(package, shape, relations)
    # Paragraphs in the body of a slide are list items.
    in_body = placeholder in ("body", "obj", "")
    return [labelled(depth, label, text) if in_body or label else text for depth, label, text in _paragraphs(shape)]


def _frame(package: Package, frame: Element, relations: Relations) -> list[str]:
    blocks: list[str] = []
    for element in frame.iter():
        kind = local(element)
        if kind == "tbl":
            blocks.append(_table(element))
        elif kind == "chart":
            part = package.optional(relations.get(element.get(RELATION_ID, ""), ("", ""))[1])
            blocks += charts_of([part]) if part is not None else []
        elif kind == "relIds":
            part = package.optional(relations.get(attribute(element, "dm") or "", ("", ""))[1])
            blocks += [item(0, text) for *_, text in _paragraphs(part)] if part is not None else []
    return blocks


def _table(element: Element) -> str:
    rows, spans = list[list[str]](), list[Span]()
    for line, row in enumerate(element.findall("{*}tr")):
        cells = row.findall("{*}tc")
        for column, cell in enumerate(cells):
            across, down = (min(number(cell.get(name), 1), MAX_SPAN) for name in ("gridSpan", "rowSpan"))
            if across > 1 or down > 1:
                spans.append(Span(line, column, line + down - 1, min(column + across, len(cells)) - 1))
        rows.append([_line(cell) for cell in cells])
    return table(spread(rows, spans))


def _placeholder(shape: Element) -> str | None:
    """Return the type of a placeholder, empty for the body, ``None`` if the shape isn't one."""
    placeholder = shape.find(".//{*}ph")
    return placeholder.get("type", "") if placeholder is not None else None


def _line(shape: Element) -> str:
    return " ".join(f"{label} {text}".strip() for _, label, text in _paragraphs(shape))


def _paragraphs(shape: Element) -> Iterator[tuple[int, str, str]]:
    """Yield depth, number in its list and text of each paragraph that isn't empty."""
    counts: dict[int, tuple[str, int]] = {}
    for paragraph in (element for element in shape.iter() if local(element) == "p"):
        texts = []
        for element in paragraph.iter():
            if local(element) == "t":
                texts.append(element.text or "")
            elif local(element) in ("br", "tab"):
                texts.append(" ")
        properties = paragraph.find("{*}pPr")
        if text := "".join(texts).strip():
            depth = number(properties.get("lvl")) if properties is not None else 0
            yield depth, _label(counts, depth, paragraph.find("{*}pPr/{*}buAutoNum")), text


def _label(counts: dict[int, tuple[str, int]], depth: int, numbers: Element | None) -> str:
    """Return a paragraph's number; it counts on from the one before in its list, below which others may be."""
    kind = numbers.get("type", "arabicPeriod") if numbers is not None else ""
    before, count = counts.get(depth, ("", 0))
    for deep in [one for one in counts if one >= depth]:
        del counts[deep]
    if numbers is None:
        return ""
    count = count + 1 if before == kind else min(number(numbers.get("startAt"), 1), MAX_NUMBER)
    counts[depth] = kind, count
    label = written(count, NUMBERS.get(kind[:7], "decimal"))
    return f"({label})" if "ParenBoth" in kind else f"{label})" if "ParenR" in kind else f"{label}."
