"""Chunks: nothing is lost, offsets are true, and no chunk reaches over two pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.extraction.formats.kinds import MARKDOWN, PDF, PLAIN
from rag_assistant.records.documents import ExtractedText
from rag_assistant.records.errors import ExtractionCancelled
from rag_assistant.retrieval.chunking import MAX_CHARS_AT_ONCE, MAX_UNBROKEN_CHARS, _sections, chunk_document
from tests.testkit.shared_data import shared_jsonl


@given(
    text=st.text(alphabet=st.sampled_from("ab .\n#-*|é机😀"), max_size=600),
    kind=st.sampled_from([PLAIN, MARKDOWN]),
    limit=st.integers(5, 80),
)
def test_chunks_hold_every_character_but_white_space(text: str, kind: str, limit: int) -> None:
    chunks = chunk_document(ExtractedText(text, kind, markdown=kind == MARKDOWN), limit)
    assert all(len(chunk.text) <= limit for chunk in chunks)
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    covered = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
    assert not [place for place, character in enumerate(text) if not character.isspace() and place not in covered]


def test_a_chunk_ends_where_its_page_ends() -> None:
    pages = ["First page.\n\n", "", "Third page. " * 40 + "\n\n"]
    starts = (0, len(pages[0]), len(pages[0]))
    chunks = chunk_document(ExtractedText("".join(pages), PDF, starts), 200)
    assert chunks[0].text == "First page."
    assert [chunk.page for chunk in chunks] == [1, 3, 3, 3]


def test_a_section_stays_together_under_its_heading() -> None:
    text = "# Boats\n\n" + "A boat floats. " * 6 + "\n\n# Geese\n\n" + "A goose hisses. " * 6
    chunks = chunk_document(ExtractedText(text, MARKDOWN, markdown=True), 150)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# Boats", "# Geese"]


@pytest.mark.parametrize("limit", [200, 900])
def test_real_passages_are_cut_without_loss(limit: int) -> None:
    for row in shared_jsonl("cranfield/corpus.jsonl")[:50]:
        text = row["text"]
        chunks = chunk_document(ExtractedText(text, PLAIN), limit)
        assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(text.split())


@pytest.mark.parametrize(
    "text", ["a" * 60_000, "鵝" * 60_000, "geese.are.noisy." * 4000], ids=["letters", "cjk", "dots"]
)
def test_a_line_with_hardly_a_blank_reaches_it_in_small_pieces_and_can_be_given_up(text: str) -> None:
    """The splitter's time for one word grows with the square of its length, and nobody else runs meanwhile."""
    sections = list(_sections(text, 0, len(text)))
    assert max(end - begin for begin, end in sections) <= MAX_UNBROKEN_CHARS
    asked: list[int] = []

    def refuse() -> None:
        asked.append(1)
        if len(asked) == 4:
            raise ExtractionCancelled

    with pytest.raises(ExtractionCancelled):
        chunk_document(ExtractedText(text, PLAIN), 900, refuse)
    assert len(asked) == 4
    assert "".join(chunk.text for chunk in chunk_document(ExtractedText(text, PLAIN), 900)) == text


def test_a_text_on_one_line_reaches_the_splitter_in_pieces() -> None:
    text = "word " * 30_000
    sections = list(_sections(text, 0, len(text)))
    assert max(end - begin for begin, end in sections) <= MAX_CHARS_AT_ONCE
    assert [begin for begin, _ in sections[1:]] == [end for _, end in sections[:-1]]
    chunks = chunk_document(ExtractedText(text, PLAIN), 900)
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "word" * 30_000
