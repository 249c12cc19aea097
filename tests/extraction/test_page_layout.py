"""Text on a page as lines, and which parts of the page are shown."""

from rag_assistant.extraction.recognised import MIN_PART_WIDTH, Box, lines_of, parts_of

PAGE = Box(0, 0, 600, 800)


def a_column(left: float, top: float, lines: int, width: float = 240) -> list[Box]:
    return [Box(left, top + 14 * n, left + width, top + 14 * n + 10) for n in range(lines)]


def test_pieces_of_a_line_become_one_and_lines_touch_without_overlapping() -> None:
    bold, raised, plain = Box(50, 100, 90, 110), Box(90, 97, 95, 103), Box(96, 101, 300, 111)
    lines = lines_of([bold, raised, plain, *a_column(50, 114, 2)])
    assert [(line.left, line.right) for line in lines] == [(50, 300), (50, 290), (50, 290)]
    assert [one.bottom for one in lines[:-1]] == [other.top for other in lines[1:]]


def test_what_stands_in_the_next_column_is_no_part_of_the_line() -> None:
    assert len(lines_of([Box(50, 100, 280, 110), Box(320, 100, 550, 110)])) == 2


def test_a_passage_that_goes_on_in_the_next_column_is_shown_in_two_parts() -> None:
    left, right = a_column(50, 700, 2), a_column(320, 90, 2)
    first, second = parts_of([*left, *right], PAGE)
    assert (first.bottom, second.top) == (800, 10)
    assert first.right < 320 < second.right


def test_a_table_that_is_read_row_by_row_is_one_part() -> None:
    rows = [Box(left, top, left + 60, top + 10) for top in (100, 120, 140) for left in (50, 200, 350)]
    (part,) = parts_of(rows, PAGE)
    assert part.left < 50
    assert part.right > 410


def test_no_part_is_tiny_leaves_the_page_or_shows_nearly_all_of_it() -> None:
    (corner,) = parts_of([Box(580, 780, 595, 790)], PAGE)
    assert corner.width >= MIN_PART_WIDTH / 2
    assert (corner.right, corner.bottom) == (600, 800)
    assert parts_of(a_column(20, 20, 52, width=560), PAGE) == []
    assert parts_of([], PAGE) == []
