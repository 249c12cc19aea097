"""Read XLSX: the cells of each sheet, and behind them comments, text boxes, charts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rag_assistant.extraction.formats.charts import charts_of
from rag_assistant.extraction.formats.converted import NO_CELLS, cells_of, read_converted
from rag_assistant.extraction.formats.kinds import XLSX
from rag_assistant.extraction.formats.markup import item, joined
from rag_assistant.extraction.formats.packages import Element, Package, local
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionFailed

SHEETS = "xl/worksheets/"


def read_xlsx(package: Package, content: bytes) -> ExtractedText:
    """Return the text of a workbook as Markdown. Raises ExtractionFailed."""
    broken = [name for name in package.unpack_in_vain() if name.startswith(SHEETS)]
    sheets = [name for name in package.names if name.startswith(SHEETS) and name.endswith(".xml")]
    if broken and len(broken) == len(sheets):
        raise ExtractionFailed("This workbook is damaged: none of its sheets can be read.")
    extracted = read_converted(content, XLSX)
    if broken:
        extracted = replace(extracted, warning=f"{len(broken)} of {len(sheets)} sheets are damaged: parts are missing.")
    beside = [*_comments(package), *_boxes(package), *charts_of(package.parts("xl/charts/chart"))]
    if any(beside):
        return replace(extracted, text=joined([extracted.text, *beside]))
    if not cells_of(extracted.text):
        raise ExtractionFailed(NO_CELLS)
    return extracted


def _comments(package: Package) -> Iterator[str]:
    """Yield each comment with its cell. Newer ones are stored twice; the older form of them is no comment."""
    for root in [*package.parts("xl/comments"), *package.parts("xl/threadedComments/")]:
        for comment in root.iter():
            text = _texts(comment) if local(comment) in ("comment", "threadedComment") else ""
            if text and not text.startswith("[Threaded comment]"):
                yield item(0, f"Comment on {comment.get('ref', 'a cell')}: {text}")


def _boxes(package: Package) -> list[str]:
    return [
        " ".join(_texts(body).split())
        for root in package.parts("xl/drawings/drawing")
        for body in root.iter()
        if local(body) == "txBody"
    ]


def _texts(element: Element) -> str:
    return " ".join(part.text for part in element.iter() if local(part) in ("t", "text") and part.text).strip()
