"""Read the charts of Office documents: the figures behind them, as tables."""

from rag_assistant.extraction.formats.markup import table
from rag_assistant.extraction.formats.packages import Element, local


def charts_of(roots: list[Element]) -> list[str]:
    """Return title and table of each chart."""
    blocks: list[str] = []
    for root in roots:
        title = root.find(".//{*}title")
        text = "".join(part.text or "" for part in title.findall(".//{*}t")) if title is not None else ""
        blocks += [f"Chart: {text}" if text else "", _figures(root)]
    return blocks


def _figures(root: Element) -> str:
    """Return one row for each category and one column for each series."""
    head, rows = [""], dict[int, list[str]]()
    for number, series in enumerate(root.findall(".//{*}ser"), 1):
        parts = {local(part): _points(part) for part in series}
        head.append(" ".join(parts.get("tx", {}).values()))
        names = parts.get("cat") or parts.get("xVal") or {}
        values = parts.get("val") or parts.get("yVal") or {}
        for index in sorted(names.keys() | values.keys()):
            row = rows.setdefault(index, [names.get(index, "")])
            row += [""] * (number - len(row)) + [values.get(index, "")]
    return table([head, *(rows[index] for index in sorted(rows))])


def _points(element: Element) -> dict[int, str]:
    points: dict[int, str] = {}
    for point in element.iter():
        if local(point) in ("pt", "tx"):
            value, index = point.findtext("{*}v"), point.get("idx", "0")
            if value and index.isdigit():
                points[int(index)] = value
    return points
