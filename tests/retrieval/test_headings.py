"""Where the sections of a Markdown text begin."""

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.extraction.formats.kinds import MARKDOWN, PLAIN
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import MAX_CHARS, MAX_PATH_CHARS, chunk_document, indexed_text, section_starts


def sections(text: str) -> dict[str, str]:
    """Return the path that begins at each heading's line."""
    return {text[start:].splitlines()[0]: path for start, path in zip(*section_starts(text), strict=True)}


def test_a_path_names_the_headings_above() -> None:
    text = "# Prices\n\n## Europe\ntext\n\n### Norway\n\n## Asia\n\n# Contact\n"
    assert list(sections(text).values()) == [
        "Prices",
        "Prices > Europe",
        "Prices > Europe > Norway",
        "Prices > Asia",
        "Contact",
    ]


def test_what_looks_like_a_heading_in_code_is_none() -> None:
    assert sections("# Real\n\n```sh\n# no\n```\n\n    # neither\n") == {"# Real": "Real"}


def test_underlined_headings_and_marks_within_headings() -> None:
    assert list(sections("Prices *today*\n====\n\n## `set` and [link](x) ##\r\n").values()) == [
        "Prices today",
        "Prices today > set and link",
    ]


def test_lines_end_as_the_parser_counts_them() -> None:
    text = "first\r\rsecond\r\n\r\n# Here\nunder\u2028it\n\n# There"
    starts, _ = section_starts(text)
    assert [text[start : start + 4] for start in starts] == ["# He", "# Th"]


def test_a_long_path_loses_its_beginning() -> None:
    (path,) = section_starts("# " + "long " * 100)[1]
    assert len(path) == MAX_PATH_CHARS
    assert path.startswith("…")


def test_a_chunk_knows_its_section_and_is_indexed_with_it() -> None:
    text = "before\n\n# Prices\n\n" + "A boat. " * 10 + "\n\n## Europe\n\n" + "A goose. " * 20
    chunks = chunk_document(ExtractedText(text, MARKDOWN, markdown=True), 90)
    assert [chunk.section for chunk in chunks][:3] == [None, "Prices", "Prices > Europe"]
    assert indexed_text("list.md", "Prices > Europe", "A goose.") == "list.md\nPrices > Europe\nA goose."
    assert indexed_text("list.md", chunks[0].section, chunks[0].text) == "list.md\nbefore"
    assert {chunk.section for chunk in chunk_document(ExtractedText(text, PLAIN), 90)} == {None}
    assert chunk_document(ExtractedText(text, PLAIN, markdown=True), 90)[1].section == "Prices"


def test_a_huge_text_has_sections_at_its_beginning_only() -> None:
    text = "# First\n\n" + "word " * (MAX_CHARS // 5) + "\n\n# Last\n"
    assert list(sections(text).values()) == ["First"]


@given(st.text(alphabet=st.sampled_from("# =-\n\r`>*ab\t\u2028\0"), max_size=200))
def test_any_text_has_sections_that_begin_at_a_line(text: str) -> None:
    starts, paths = section_starts(text)
    assert starts == sorted(starts)
    assert len(starts) == len(paths)
    assert all(start == 0 or text[start - 1] in "\r\n" for start in starts)
