"""A document as HTML with a passage marked: all of its text is there, and the mark holds the passage."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from rag_assistant.web.markdown.passage import END, START, with_edges
from rag_assistant.web.markdown.render import render_document

TEXT = (
    "# Geese\n\nA *goose* hisses. It **bites** too.\n\n- one\n  - two\n\n1. first\n\n"
    "| bird | number |\n| --- | --- |\n| goose | 17 |\n| duck | 4 |\n\n```py\nprint(1)\n```\n\n> said\n\nThe end."
)
MARK = re.compile(r'<mark(?: id="passage" tabindex="-1")?>(.*?)</mark>', re.S)


def drawn(text: str, start: int, end: int) -> Markup:
    made = render_document(with_edges([text[:start]], [text[start:end]], [text[end:]]))
    assert made is not None
    return made


def letters(text: str) -> str:
    return "".join(re.findall("[ab]", Markup(text).striptags()))


@pytest.mark.parametrize(
    ("passage", "marked"),
    [
        ("# Geese", ["Geese"]),
        ("A *goose* hisses.", ["A ", "goose", " hisses."]),
        ("It **bites** too.", ["It ", "bites", " too."]),
        ("- one\n  - two", ["one", "two"]),
        ("1. first", ["first"]),
        ("| goose | 17 |", ["goose", "17"]),
        ("| bird | number |\n| --- | --- |\n| goose | 17 |", ["bird", "number", "goose", "17"]),
        ("| --- | --- |\n| goose | 17 |", ["goose", "17"]),
        ("```py\nprint(1)\n```", ["print(1)"]),
        ("> said\n\nThe end.", ["said", "The end."]),
    ],
)
def test_a_passage_is_marked_and_all_around_it_drawn_as_ever(passage: str, marked: list[str]) -> None:
    start = TEXT.index(passage)
    html = drawn(TEXT, start, start + len(passage))
    assert [found.strip() for found in MARK.findall(html)] == [words.strip() for words in marked]
    assert MARK.sub(r"\1", html).replace("\n", "") == str(render_document([TEXT])).replace("\n", "")
    assert html.count('id="passage"') == 1


@given(st.text(alphabet="ab1 .\n#-*|`>_[]()$\\", max_size=80), st.integers(0, 80), st.integers(1, 80))
def test_wherever_a_passage_is_cut_nothing_is_lost(text: str, start: int, length: int) -> None:
    before, passage, after = text[:start], text[start : start + length], text[start + length :]
    html = render_document(with_edges([before], [passage] if passage else [], [after]))
    if html is not None:
        assert START not in html
        assert END not in html
        assert letters(MARK.sub(r"\1", html)) == letters(str(render_document([text])))


def test_a_page_begins_where_its_number_stands_even_within_a_passage() -> None:
    html = render_document(with_edges([1, "# One\n\n"], ["Two.\n\n", 2, "## Three\n\n"], [3, 4, "Five."]))
    assert html is not None
    assert re.findall(r'id="page-(\d)"', html) == ["1", "2", "3", "4"]
    assert MARK.findall(html) == ["Two.", "Three"]


def test_a_link_into_the_site_of_a_document_leads_nowhere_here() -> None:
    html = render_document(["[a](/wiki/Mixer) [b](https://example.org/) [c](x.md) [d](//evil.example/)"])
    assert re.findall(r'href="([^"]*)"', str(html)) == ["https://example.org/"]


def test_a_passage_whose_edge_lies_in_the_target_of_a_link_is_not_drawn() -> None:
    assert render_document(with_edges(["[a](https://exa"], ["mple.org/) goose"], [])) is None


def test_a_document_cannot_mark_anything_itself() -> None:
    assert "<mark" not in str(render_document(with_edges([f"{START}goose{END}"], [], [])))
    assert "<mark" not in str(render_document(["<mark>goose</mark>"]))


def test_a_heading_of_a_document_stands_below_its_name() -> None:
    assert str(render_document(["# One\n\n###### Six"])) == "<h2>One</h2>\n<h6>Six</h6>\n"
