"""What lies on a slide is read as a person reads it, wherever it is stored."""

from pathlib import Path

import pytest

from rag_assistant.extraction.recognised import MAX_BOXES, Box, reading_order
from tests.extraction.archives import PREFIXES, a_pptx, an_opendocument, relations, shape
from tests.extraction.reading import read

INCH = 914_400


def at(left: float, top: float, width: float, height: float) -> str:
    """Return where a shape is, in inches."""
    x, y, across, down = (int(one * INCH) for one in (left, top, width, height))
    return f'<a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{across}" cy="{down}"/></a:xfrm>'


def placed(text: str, place: str, placeholder: str | None = None) -> str:
    return shape(text, placeholder).replace("<p:txBody>", f"<p:spPr>{place}</p:spPr><p:txBody>")


def words(tmp_path: Path, *slides: str, **parts: str) -> list[str]:
    return read(tmp_path, a_pptx(*slides, **parts), "talk.pptx").text.split()


BOXES = {
    "columns below a title": (
        [Box(0, 0, 10, 1), Box(5.2, 2, 9, 5), Box(0, 2, 4.8, 4), Box(0, 4.2, 4.8, 8), Box(5.2, 5.2, 9, 8)],
        [0, 2, 3, 1, 4],
    ),
    "numbers beside their lines": (
        [Box(2, 3, 9, 4), Box(0, 1, 1, 2), Box(0, 3, 1, 4), Box(2, 1, 9, 2)],
        [1, 3, 2, 0],
    ),
    "rows": ([Box(0, 4, 9, 5), Box(1, 0, 8, 1), Box(0, 2, 9, 3)], [1, 2, 0]),
    "frames that overlap a little": ([Box(0, 1.9, 9, 4), Box(0, 0, 9, 2)], [1, 0]),
    "a pinwheel, which no line divides": (
        [Box(0, 0, 6, 3), Box(7, 0, 10, 6), Box(4, 7, 10, 10), Box(0, 4, 3, 10), Box(4, 4, 6, 6)],
        [0, 1, 2, 3, 4],
    ),
    "nothing": ([], []),
}


@pytest.mark.parametrize("case", BOXES)
def test_boxes_are_read_by_columns_where_there_are_columns_else_by_rows(case: str) -> None:
    boxes, order = BOXES[case]
    assert reading_order(boxes) == order


def test_a_drawing_of_many_boxes_stays_as_it_is_stored() -> None:
    upwards = [Box(0, 2 * n, 1, 2 * n + 1) for n in range(MAX_BOXES + 1)][::-1]
    assert reading_order(upwards) == list(range(MAX_BOXES + 1))
    assert reading_order(upwards[1:]) == list(range(MAX_BOXES))[::-1]


def test_shapes_are_read_by_their_place_and_groups_as_one(tmp_path: Path) -> None:
    group = f"<p:grpSp><p:grpSpPr>{at(0, 2, 4, 2)}</p:grpSpPr>"
    group += placed("second", at(0, 9, 4, 1)) + placed("first", at(0, 0, 4, 1)) + "</p:grpSp>"
    slide = placed("right", at(5, 2, 4, 4)) + group + placed("left", at(0, 4.5, 4, 2)) + placed("top", at(0, 0, 9, 1))
    assert words(tmp_path, slide) == ["top", "first", "second", "left", "right"]


def test_empty_and_hidden_shapes_do_not_matter(tmp_path: Path) -> None:
    background = f"<p:sp><p:spPr>{at(0, 0, 10, 8)}</p:spPr></p:sp>"
    both = [f"<mc:{name}>{placed(name, at(0, 2, 9, 1))}</mc:{name}>" for name in ("Choice", "Fallback")]
    alternate = f"<mc:AlternateContent>{''.join(both)}</mc:AlternateContent>"
    slide = background + placed("below", at(0, 4, 9, 1)) + alternate + placed("above", at(0, 1, 9, 1))
    assert words(tmp_path, slide) == ["above", "Choice", "below"]


LAYOUT = f"<p:sldLayout {PREFIXES}>{placed('hint', at(5, 2, 4, 4), 'body')}</p:sldLayout>"
OF_MASTER = placed("hint", at(0, 2, 4, 4), "body") + placed("", at(0, 0, 9, 1), "title")
MASTER = f"<p:sldMaster {PREFIXES}>{OF_MASTER}</p:sldMaster>"
ON_LAYOUT = {
    "ppt/slides/_rels/slide1.xml.rels": relations(("slideLayout", "../layout.xml")),
    "ppt/layout.xml": LAYOUT,
    "ppt/_rels/layout.xml.rels": relations(("slideMaster", "master.xml")),
    "ppt/master.xml": MASTER,
}


def test_a_placeholder_is_where_its_layout_or_its_master_has_it(tmp_path: Path) -> None:
    slide = shape("title", "title") + shape("right", "body") + placed("left", at(0, 3, 4, 1))
    assert words(tmp_path, slide, **ON_LAYOUT) == ["##", "title", "left", "-", "right"]
    of_master = {**ON_LAYOUT, "ppt/layout.xml": f"<p:sldLayout {PREFIXES}/>"}
    slide = placed("right", at(5, 3, 4, 1)) + shape("left", "body") + shape("title", "title")
    assert words(tmp_path, slide, **of_master) == ["##", "title", "-", "left", "right"]


def test_without_all_places_the_stored_order_stays(tmp_path: Path) -> None:
    assert words(tmp_path, shape("first") + placed("second", at(0, 0, 1, 1))) == ["first", "second"]
    strange = at(0, 5, 9, 1).replace('y="', 'y="1e400')
    assert words(tmp_path, placed("first", strange) + placed("second", at(0, 1, 9, 1))) == ["first", "second"]


def frame(text: str, left: str, top: str, width: str = "9cm", height: str = "1cm") -> str:
    place = f'svg:x="{left}" svg:y="{top}" svg:width="{width}" svg:height="{height}" xmlns:svg="svg"'
    return f"<draw:frame {place}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"


def test_frames_of_an_odp_are_read_by_their_place_too(tmp_path: Path) -> None:
    notes = "<presentation:notes><draw:frame><text:p>at last</text:p></draw:frame></presentation:notes>"
    group = f"<draw:g>{frame('left', '0cm', '2cm')}{frame('lower', '0mm', '40mm')}</draw:g>"
    slide = f"{frame('right', '5in', '2cm')}{group}{frame('top', '0cm', '0pt', '25cm')}"
    for sibling, order in (
        ("", ["top", "left", "lower", "right"]),
        ("<draw:frame><text:p>odd</text:p></draw:frame>", ["right", "left"]),
    ):
        page = f"<office:presentation><draw:page>{slide}{sibling}{notes}</draw:page></office:presentation>"
        text = read(tmp_path, an_opendocument("presentation", page), "talk.odp").text
        assert [word for word in text.split() if word in ("top", "left", "lower", "right")][: len(order)] == order
        assert text.rstrip().endswith("Notes: at last")
