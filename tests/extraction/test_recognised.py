"""Recognised text: read column by column, put in its place, and found again on its page."""

from rag_assistant.extraction.formats.markup import pages_of
from rag_assistant.extraction.recognised import in_reading_order, lines_marked, text_of, with_recognised
from rag_assistant.records.documents import ExtractedText, RecognisedPage, Word

HEIGHT, PITCH = 10.0, 14.0


def a_line(text: str, left: float, top: float, char: float = 5.0) -> tuple[Word, ...]:
    words, x = [], left
    for word in text.split():
        words.append(Word(word, x, top, x + char * len(word), top + HEIGHT))
        x += char * (len(word) + 1)
    return tuple(words)


def texts(lines: list[tuple[Word, ...]]) -> list[str]:
    return [" ".join(word.text for word in line) for line in lines]


def test_columns_are_read_one_after_the_other_below_a_heading_over_both() -> None:
    heading = a_line("A heading that reaches over both columns of this page and farther", 50, 10)
    rows = [
        line
        for n in range(4)
        for line in (
            a_line(f"left line {n} of the story goes here", 50, 40 + n * PITCH),
            a_line(f"right line {n} of the story goes on", 300, 40 + n * PITCH),
        )
    ]
    ordered = texts(in_reading_order([heading, *rows]))
    assert ordered[0].startswith("A heading")
    assert [text.split()[0] + text.split()[2] for text in ordered[1:]] == [
        *(f"left{n}" for n in range(4)),
        *(f"right{n}" for n in range(4)),
    ]


def test_the_cells_of_a_table_stay_in_their_rows() -> None:
    cells = [a_line(text, left, n * PITCH) for n in range(4) for text, left in ((f"goose {n}", 50), (f"{n} kg", 300))]
    page = RecognisedPage(1, tuple(in_reading_order(cells)))
    assert text_of(page).splitlines() == [f"goose {n} {n} kg" for n in range(4)]


def test_white_between_lines_ends_a_paragraph() -> None:
    page = RecognisedPage(1, (a_line("One goose", 50, 0), a_line("flies.", 50, PITCH), a_line("Two swim.", 50, 60)))
    assert text_of(page) == "One goose\nflies.\n\nTwo swim."


def test_a_recognised_page_takes_its_place_between_the_others() -> None:
    written = pages_of(["First.", "", "Third."], "application/pdf")
    merged = with_recognised(written, {2: RecognisedPage(2, (a_line("Second page.", 50, 0),))})
    assert [merged.text[start:].split("\n")[0] for start in merged.page_starts] == ["First.", "Second page.", "Third."]
    assert with_recognised(written, {}) == written
    assert with_recognised(ExtractedText("x", "text/plain"), {}).text == "x"


def test_a_passage_is_marked_where_its_words_stand_and_nowhere_else() -> None:
    page = RecognisedPage(
        1,
        (a_line("Boats pass. The keeper", 50, 0), a_line("feeds 17 geese. Gulls", 50, PITCH), a_line("steal.", 50, 60)),
    )
    passage = lines_marked(page, "The keeper feeds 17 geese.", 0)
    assert [(box.left, box.right) for box in passage] == [(110.0, 160.0), (50.0, 125.0)]
    assert lines_marked(page, "What stands nowhere", 0) == []
