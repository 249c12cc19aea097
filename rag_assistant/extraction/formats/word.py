"""Read DOCX: paragraphs, headings, lists, tables, text boxes, equations, notes, comments, headers and footers."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from rag_assistant.extraction.formats.attachments import Read
from rag_assistant.extraction.formats.charts import charts_of
from rag_assistant.extraction.formats.kinds import DOCX, media_type_of
from rag_assistant.extraction.formats.markup import (
    INNER_RULE,
    Span,
    heading,
    item,
    joined,
    raised,
    spread,
    table,
    with_powers,
)
from rag_assistant.extraction.formats.packages import Element, Package, attribute, local, number
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

# Deleted text, field codes, and fallbacks for old programs.
SKIPPED = frozenset("pPr rPr del moveFrom instrText Fallback delText sectPr tblPr tblGrid trPr tcPr".split())
AS_TEXT = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
BETWEEN = {"f": "/", "sSup": "^", "sSub": "_"}
DEEPEST_LIST = 9
NO_NUMBER = ("bullet", "none")
AROUND = {"d": ("(", ")"), "rad": ("√(", ")")}


class Styles(Struct):
    """The meaning of paragraph styles, and the lists: which are numbered, and their counters.

    ``embedded`` are the texts of embedded files, by relationship id.
    """

    levels: dict[str, int] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)
    numbered: set[tuple[str, int]] = field(default_factory=set)
    counts: dict[str, list[int]] = field(default_factory=dict)
    numbering: dict[str, tuple[str, int]] = field(default_factory=dict)
    embedded: dict[str, str] = field(default_factory=dict)

    def mark(self, number_id: str, depth: int) -> str:
        """Return the marker of a list's next item, and count it."""
        if (number_id, depth) not in self.numbered:
            return "-"
        counts = self.counts.setdefault(number_id, [0] * DEEPEST_LIST)
        counts[depth:] = [counts[depth] + 1] + [0] * (DEEPEST_LIST - depth - 1)
        return f"{counts[depth]}."


def read_docx(package: Package, read: Read) -> ExtractedText:
    """Return the text of a DOCX as Markdown; ``read`` reads embedded files. Raises ExtractionFailed."""
    main = package.main_part()
    folder = main.rsplit("/", 1)[0]
    styles = _styles(package.optional(f"{folder}/styles.xml"))
    for identifier, (relation, part) in package.relations(main).items():
        if relation == "aFChunk" and part in package.names:
            try:
                content = package.read(part)
                styles.embedded[identifier] = read(content, media_type_of(content, part)).text
            except (ExtractionFailed, UnsupportedDocument):
                package.unread.append(part)
    styles.numbered = _numbered(package.optional(f"{folder}/numbering.xml"))
    blocks = _blocks(package.xml(main), styles)
    for part in ("footnotes", "endnotes", "comments"):
        root = package.optional(f"{folder}/{part}.xml")
        blocks += [_note(note, part, styles) for note in (root if root is not None else ())]
    blocks += charts_of(package.parts(f"{folder}/charts/chart"))
    for root in package.parts(f"{folder}/diagrams/data"):
        blocks.append(" ".join(part.text for part in root.findall(".//{*}t") if part.text))
    # Each section has its own headers and footers, most of them identical.
    for part in ("header", "footer"):
        blocks += dict.fromkeys(joined(_blocks(root, styles)) for root in package.parts(f"{folder}/{part}"))
    return ExtractedText(joined(blocks), DOCX, markdown=True)


def _styles(root: Element | None) -> Styles:
    styles = Styles()
    based_on: dict[str, str] = {}
    for style in root if root is not None else ():
        identifier = attribute(style, "styleId") or ""
        for part in style:
            value = attribute(part, "val") or ""
            if local(part) == "name" and value.lower().startswith("heading ") and value[8:9].isdigit():
                styles.levels[identifier] = int(value[8])
            elif local(part) == "name" and value.lower() == "title":
                styles.levels[identifier] = 1
            elif local(part) == "name" and value.lower().startswith("list ") and value.lower() != "list paragraph":
                styles.lists.add(identifier)
            elif local(part) == "basedOn":
                based_on[identifier] = value
            elif local(part) == "pPr" and (numbering := next((one for one in part if local(one) == "numPr"), None)):
                styles.numbering[identifier] = _list_place(numbering)
    for inherited in (styles.levels, styles.numbering):
        _inherit(inherited, based_on)
    return styles


def _inherit(inherited: dict[str, Any], based_on: dict[str, str]) -> None:
    """Inherit properties from the nearest style they are based on."""
    for identifier in based_on:
        parent, seen = based_on[identifier], {identifier}
        while parent not in inherited and parent in based_on and parent not in seen:
            seen.add(parent)
            parent = based_on[parent]
        if identifier not in inherited and parent in inherited:
            inherited[identifier] = inherited[parent]


def _list_place(numbering: Element) -> tuple[str, int]:
    """Return the list of a paragraph, and its depth."""
    values = {local(inner): attribute(inner, "val") or "0" for inner in numbering}
    return values.get("numId", ""), min(number(values.get("ilvl")), DEEPEST_LIST - 1)


def _numbered(root: Element | None) -> set[tuple[str, int]]:
    """Return the lists and depths with numbered items."""
    kinds: dict[str, set[int]] = {}
    numbered = set()
    for element in root if root is not None else ():
        if local(element) == "abstractNum":
            for level in element.findall("{*}lvl"):
                formats = [attribute(part, "val") for part in level.findall("{*}numFmt")]
                deep = attribute(level, "ilvl") or ""
                if deep.isdigit() and formats and formats[0] not in NO_NUMBER:
                    kinds.setdefault(attribute(element, "abstractNumId") or "", set()).add(int(deep))
        elif local(element) == "num":
            kind = next((attribute(part, "val") for part in element.findall("{*}abstractNumId")), None)
            numbered |= {(attribute(element, "numId") or "", deep) for deep in kinds.get(kind or "", ())}
    return numbered


def _blocks(parent: Element, styles: Styles) -> list[str]:
    blocks: list[str] = []
    for element in parent:
        kind = local(element)
        if kind == "p":
            blocks += _paragraph(element, styles)
        elif kind == "tbl":
            blocks.append(_table(element, styles))
        elif kind == "altChunk":
            blocks.append(styles.embedded.get(attribute(element, "id") or "", ""))
        elif kind not in SKIPPED:
            blocks += _blocks(element, styles)
    return blocks


def _paragraph(element: Element, styles: Styles) -> list[str]:
    """Return a paragraph, followed by its text boxes."""
    boxes: list[Element] = []
    text = with_powers(_text(element, boxes).strip())
    level, depth, number_id = _place(element, styles)
    block = heading(level, text) if level else text
    if not level and depth is not None and text:
        block = item(depth, text, styles.mark(number_id, depth))
    return [block, *(inner for box in boxes for inner in _blocks(box, styles))]


def _place(paragraph: Element, styles: Styles) -> tuple[int, int | None, str]:
    """Return the heading level (0 if none), the list depth (``None`` if none), and the list."""
    level, depth, number_id = 0, None, ""
    for part in paragraph.findall("{*}pPr/*"):
        value = attribute(part, "val") or ""
        if local(part) == "pStyle":
            level = level or styles.levels.get(value, 0)
            depth = 0 if value in styles.lists else depth
            number_id, depth = styles.numbering.get(value, (number_id, depth))
        elif local(part) == "outlineLvl" and value.isdigit() and int(value) < 9:
            level = int(value) + 1
        elif local(part) == "numPr":
            number_id, deep = _list_place(part)
            depth = deep if number_id != "0" else None
    return level, depth, number_id


def _text(element: Element, boxes: list[Element]) -> str:
    kind = local(element)
    if kind == "t":
        return element.text or ""
    if kind == "txbxContent":
        boxes.append(element)
        return ""
    if kind in SKIPPED:
        return ""
    if kind == "r" and any(attribute(one, "val") == "superscript" for one in element.findall("{*}rPr/{*}vertAlign")):
        return raised("".join(_text(child, boxes) for child in element))
    if kind == "docPr":
        described = element.get("descr", "").strip()
        return f" [Picture: {described}] " if described else ""
    if kind in ("footnoteReference", "endnoteReference"):
        return f"[^{attribute(element, 'id')}]"
    if kind in BETWEEN:
        return BETWEEN[kind].join(part for child in element if (part := _text(child, boxes)))
    before, after = AROUND.get(kind, (AS_TEXT.get(kind, ""), ""))
    if kind == "nary":
        before = next((attribute(part, "val") or "" for part in element.iter() if local(part) == "chr"), "∫")
    return before + "".join(_text(child, boxes) for child in element) + after


def _table(element: Element, styles: Styles) -> str:
    """Return a table in which a merged cell's text is repeated in each row it covers."""
    rows, spans, open_spans = list[list[str]](), list[Span](), dict[int, Span]()
    for line, row in enumerate(_inside(element, "tr")):
        cells: list[str] = []
        for cell in _inside(row, "tc"):
            properties = {local(part): part for one in cell if local(one) == "tcPr" for part in one}
            wide = attribute(properties["gridSpan"], "val") if "gridSpan" in properties else None
            left, right = len(cells), len(cells) + max(1, min(number(wide, 1), 100)) - 1
            above = open_spans.pop(left, None)
            if "vMerge" in properties and attribute(properties["vMerge"], "val") != "restart" and above is not None:
                open_spans[left] = Span(above.top, left, line, right)
            elif "vMerge" in properties:
                open_spans[left] = Span(line, left, line, right)
            elif right > left:
                spans.append(Span(line, left, line, right))
            spans += [above] if above is not None and open_spans.get(left, above).top != above.top else []
            # Cells in a row of a nested table are kept apart.
            lines = [INNER_RULE.sub("", block).strip().removeprefix("- ") for block in _blocks(cell, styles)]
            cells += [" ".join(lines), *[""] * (right - left)]
        rows.append(cells)
    width = max(map(len, rows), default=0)
    return table(spread([row + [""] * (width - len(row)) for row in rows], [*spans, *open_spans.values()]))


def _inside(parent: Element, tag: str) -> Iterator[Element]:
    """Yield the rows or cells of a table, including those in content controls, but not those of nested tables."""
    for child in parent:
        if local(child) == tag:
            yield child
        elif local(child) in ("sdt", "sdtContent", "ins", "customXml", "smartTag"):
            yield from _inside(child, tag)


def _note(note: Element, part: str, styles: Styles) -> str:
    text = " ".join(_blocks(note, styles)).strip()
    if not text:
        return ""
    if part == "comments":
        return f"Comment by {attribute(note, 'author') or 'somebody'}: {text}"
    return f"[^{attribute(note, 'id')}]: {text}"
