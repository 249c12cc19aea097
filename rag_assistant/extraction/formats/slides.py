"""Read PPTX: each slide is a page with its title, text, tables, charts, diagrams and notes."""

from collections.abc import Iterator

from rag_assistant.extraction.formats.charts import charts_of
from rag_assistant.extraction.formats.kinds import PPTX
from rag_assistant.extraction.formats.markup import Span, heading, item, joined, pages_of, spread, table
from rag_assistant.extraction.formats.packages import RELATION_ID, Element, Package, attribute, local, number
from rag_assistant.extraction.formats.word_lists import MAX_NUMBER, labelled, written
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

TITLES = ("title", "ctrTitle")
MAX_SPAN = 1_000
NUMBERS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
FURNITURE = ("sldNum", "dt", "sldImg")
Relations = dict[str, tuple[str, str]]


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
    for shape in _shapes(root):
        placeholder = _placeholder(shape)
        if placeholder in FURNITURE:
            continue
        if placeholder in TITLES and not title:
            title = heading(2, _line(shape))
        else:
            blocks += _shape(package, shape, relations, placeholder)
    notes = next((target for kind, target in relations.values() if kind == "notesSlide"), None)
    if notes and (part := package.optional(notes)) is not None:
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


def _shapes(parent: Element) -> Iterator[Element]:
    """Yield shapes, tables and pictures in order, including those in groups, but not fallbacks for old programs."""
    for element in parent:
        kind = local(element)
        if kind in ("sp", "graphicFrame", "pic"):
            yield element
        elif kind != "Fallback":
            yield from _shapes(element)


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
            numbers = paragraph.find("{*}pPr/{*}buAutoNum")
            yield depth, _label(counts, depth, numbers), text


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
