"""Read DOCX: paragraphs, headings, lists, tables, text boxes, equations, notes, comments, headers and footers."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from rag_assistant.extraction.formats import DATA, markup
from rag_assistant.extraction.formats.attachments import Read
from rag_assistant.extraction.formats.kinds import DOCX, media_type_of
from rag_assistant.extraction.formats.packages import Element, Package, attribute, charts_of, local, number
from rag_assistant.extraction.formats.word_lists import DEEPEST_LIST, Lists, labelled, lists_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed, UnsupportedDocument

# Deleted text, field codes, and fallbacks for old programs.
SKIPPED = frozenset("pPr rPr del moveFrom instrText Fallback delText sectPr tblPr tblGrid trPr tcPr".split())
AS_TEXT = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# By their numbers, characters of fonts that have signs instead of letters; others are only marked.
SYMBOLS: dict[str, dict[str, str]] = DATA["symbols"]
BETWEEN = {"f": "/", "sSup": "^", "sSub": "_"}
AROUND = {"d": ("(", ")"), "rad": ("√(", ")")}


class Styles(Struct):
    """What paragraph styles mean, and list items. ``embedded``: the texts of embedded files, by relationship id."""

    levels: dict[str, int] = field(default_factory=dict)
    bullets: set[str] = field(default_factory=set)
    numbering: dict[str, tuple[str | None, int | None]] = field(default_factory=dict)
    lists: Lists = field(default_factory=Lists)
    embedded: dict[str, str] = field(default_factory=dict)


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
    styles.lists = lists_of(package.optional(f"{folder}/numbering.xml"))
    blocks = _blocks(package.xml(main), styles)
    for part in ("footnotes", "endnotes", "comments"):
        root = package.optional(f"{folder}/{part}.xml")
        blocks += [_note(note, part, styles) for note in (root if root is not None else ())]
    blocks += charts_of(package.parts(f"{folder}/charts/chart"))
    for root in package.parts(f"{folder}/diagrams/data"):
        blocks.append(" ".join(part.text for part in root.findall(".//{*}t") if part.text))
    # Each section has its own headers and footers, most of them identical.
    for part in ("header", "footer"):
        blocks += dict.fromkeys(markup.joined(_blocks(root, styles)) for root in package.parts(f"{folder}/{part}"))
    return ExtractedText(markup.joined(blocks), DOCX, markdown=True)


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
                styles.bullets.add(identifier)
            elif local(part) == "basedOn":
                based_on[identifier] = value
            elif local(part) == "pPr" and (numbering := next((one for one in part if local(one) == "numPr"), None)):
                styles.numbering[identifier] = _list_place(numbering)
    for inherited in (styles.levels, styles.numbering):
        _inherit(inherited, based_on)
    return styles


def _inherit(inherited: dict[str, Any], based_on: dict[str, str]) -> None:
    for identifier in based_on:
        parent, seen = based_on[identifier], {identifier}
        while parent not in inherited and parent in based_on and parent not in seen:
            seen.add(parent)
            parent = based_on[parent]
        if identifier not in inherited and parent in inherited:
            inherited[identifier] = inherited[parent]


def _list_place(numbering: Element) -> tuple[str | None, int | None]:
    """Return the list of a paragraph, and its depth, as far as they are given."""
    values = {local(inner): attribute(inner, "val") or "0" for inner in numbering}
    depth = min(number(values["ilvl"]), DEEPEST_LIST - 1) if "ilvl" in values else None
    return values.get("numId"), depth


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
    text = markup.with_powers(_text(element, boxes).strip())
    level, depth, number_id = _place(element, styles)
    label = styles.lists.next_label(number_id, depth) if depth is not None else ""
    if level:
        block = markup.heading(level, f"{label} {text}" if text else "")
    elif depth is not None:
        block = labelled(depth, label, text)
    else:
        block = text
    return [block, *(inner for box in boxes for inner in _blocks(box, styles))]


def _place(paragraph: Element, styles: Styles) -> tuple[int, int | None, str]:
    """Return the heading level (0 if none), the list depth (``None`` if none), and the list."""
    level, depth, number_id = 0, None, ""
    for part in paragraph.findall("{*}pPr/*"):
        value = attribute(part, "val") or ""
        if local(part) == "pStyle":
            level = level or styles.levels.get(value, 0)
            depth = 0 if value in styles.bullets else depth
            if value in styles.numbering:
                listed, deep = styles.numbering[value]
                number_id = listed or ""
                depth = styles.lists.depth_of(number_id, value) if deep is None else deep
        elif local(part) == "outlineLvl" and value.isdigit() and int(value) < 9:
            level = int(value) + 1
        elif local(part) == "numPr":
            listed, deep = _list_place(part)
            number_id = number_id if listed is None else listed
            depth = (depth or 0) if deep is None else deep
    return level, None if number_id == "0" else depth, number_id


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
        return markup.raised("".join(_text(child, boxes) for child in element))
    if kind == "sym":
        signs = SYMBOLS.get(attribute(element, "font") or "", SYMBOLS["Wingdings"])
        return signs.get((attribute(element, "char") or "")[-2:].lower(), "[symbol]")
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
    rows, spans, open_spans = list[list[str]](), list[markup.Span](), dict[int, markup.Span]()
    for line, row in enumerate(_inside(element, "tr")):
        cells: list[str] = []
        for cell in _inside(row, "tc"):
            properties = {local(part): part for one in cell if local(one) == "tcPr" for part in one}
            wide = attribute(properties["gridSpan"], "val") if "gridSpan" in properties else None
            left, right = len(cells), len(cells) + max(1, min(number(wide, 1), 100)) - 1
            above = open_spans.pop(left, None)
            if "vMerge" in properties and attribute(properties["vMerge"], "val") != "restart" and above is not None:
                open_spans[left] = markup.Span(above.top, left, line, right)
            elif "vMerge" in properties:
                open_spans[left] = markup.Span(line, left, line, right)
            elif right > left:
                spans.append(markup.Span(line, left, line, right))
            spans += [above] if above is not None and open_spans.get(left, above).top != above.top else []
            # Cells in a row of a nested table are kept apart.
            lines = [markup.INNER_RULE.sub("", block).strip().removeprefix("- ") for block in _blocks(cell, styles)]
            cells += [" ".join(lines), *[""] * (right - left)]
        rows.append(cells)
    width = max(map(len, rows), default=0)
    return markup.table(
        markup.spread([row + [""] * (width - len(row)) for row in rows], [*spans, *open_spans.values()])
    )


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
