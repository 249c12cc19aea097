"""Put what lies on a slide in reading order: column by column where there are columns, else row by row. Pure."""

from collections.abc import Sequence

from rag_assistant.extraction.recognised import Box

# Boxes may overlap by this share of their size at each end, as frames around text do.
OVERLAP = 0.1
# Beside others at least so many times as wide, a column holds their labels or numbers.
LABEL_RATIO = 2.0
# Slides with more boxes are drawings.
MAX_BOXES = 200


def reading_order(boxes: Sequence[Box]) -> list[int]:
    """Return the indexes of boxes in reading order; those that no straight line separates stay as they are given."""
    indexes = list(range(len(boxes)))
    return _ordered(indexes, boxes) if len(boxes) <= MAX_BOXES else indexes


def _ordered(indexes: list[int], boxes: Sequence[Box]) -> list[int]:
    columns = _apart(indexes, [(boxes[n].left, boxes[n].right) for n in indexes])
    widths = [max(boxes[n].width for n in column) for column in columns]
    if len(columns) < 2 or max(widths) > LABEL_RATIO * min(widths):
        rows = _apart(indexes, [(boxes[n].top, boxes[n].bottom) for n in indexes])
        columns = rows if len(rows) > 1 else columns
    return [n for part in columns for n in _ordered(part, boxes)] if len(columns) > 1 else indexes


def _apart(indexes: list[int], spans: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return the indexes in groups whose spans leave a gap between them."""
    groups: list[list[int]] = []
    reach = 0.0
    for (start, end), index in sorted(zip(spans, indexes, strict=True)):
        inset = OVERLAP * (end - start)
        if not groups or start + inset >= reach:
            groups.append([])
            reach = end - inset
        groups[-1].append(index)
        reach = max(reach, end - inset)
    return [sorted(group) for group in groups]
