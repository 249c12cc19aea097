"""What is shown of a document's text: the passage exactly, the pages where they begin, no more than a browser takes."""

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.records.documents import ExtractedText
from rag_assistant.web.markdown.passage import AROUND, MAX_WHOLE_TEXT_CHARS, Pieces, ShownText, shown_text


def a_text(length: int, *page_starts: int) -> ExtractedText:
    return ExtractedText("".join(chr(97 + n % 26) for n in range(length)), "text/plain", page_starts)


def words_of(pieces: Pieces) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


def pages_of(shown: ShownText) -> list[int]:
    return [piece for piece in (*shown.before, *shown.passage, *shown.after) if isinstance(piece, int)]


@given(
    st.text(alphabet="ab\n<é世", max_size=60),
    st.lists(st.integers(0, 60), max_size=6),
    st.integers(0, 70),
    st.integers(0, 70),
)
def test_a_text_is_shown_whole_with_exactly_its_passage_marked_and_each_page_once(
    text: str, starts: list[int], start: int, end: int
) -> None:
    pages = tuple(sorted(min(one, len(text)) for one in starts))
    shown = shown_text(ExtractedText(text, "text/plain", pages), start, end)
    assert words_of(shown.passage) == text[start:end]
    assert words_of([*shown.before, *shown.passage, *shown.after]) == text
    assert pages_of(shown) == list(range(1, len(pages) + 1))
    assert (shown.earlier, shown.later) == (None, None)


def test_a_page_that_begins_with_the_passage_is_named_before_it() -> None:
    shown = shown_text(a_text(9, 0, 3, 6), 3, 6)
    assert shown.before == [1, "abc", 2]
    assert shown.passage == ["def"]
    assert shown.after == [3, "ghi"]
    assert shown.page == 2


def test_without_a_passage_there_is_no_page_to_name() -> None:
    assert shown_text(a_text(9, 0, 3), 0, 0).page is None
    assert shown_text(a_text(9), 3, 6).page is None


def test_of_a_large_text_only_what_is_around_the_passage_is_shown() -> None:
    text = a_text(1_000_000)
    shown = shown_text(text, 500_000, 500_700)
    assert words_of(shown.passage) == text.text[500_000:500_700]
    assert words_of(shown.before) == text.text[500_000 - AROUND : 500_000]
    assert words_of(shown.after) == text.text[500_700 : 500_700 + AROUND]


def test_a_large_text_can_be_read_on_from_end_to_end() -> None:
    text = a_text(1_000_000)
    shown, read = shown_text(text, 0, 0), ""
    while True:
        read += words_of([*shown.before, *shown.passage, *shown.after])
        if shown.later is None:
            break
        shown = shown_text(text, 0, 0, at=shown.later)
    assert read == text.text
    while shown.earlier is not None:
        assert len(words_of(shown.after)) <= 2 * AROUND
        shown = shown_text(text, 0, 0, at=shown.earlier)
    assert words_of(shown.after) == text.text[: 2 * AROUND]


def test_a_passage_that_is_elsewhere_in_a_large_text_is_not_marked() -> None:
    shown = shown_text(a_text(1_000_000), 500_000, 500_700, at=100_000)
    assert shown.passage == []
    shown = shown_text(a_text(1_000_000), 0, 1_000_000)
    assert len(words_of(shown.passage)) <= MAX_WHOLE_TEXT_CHARS + AROUND
