"""What is written as Markdown has the structure that it was given."""

import re

import pytest
from markdown_it import MarkdownIt

from rag_assistant.extraction.formats.markup import item, joined


@pytest.mark.parametrize(
    ("items", "html"),
    [
        (
            [(0, "-"), (1, "-"), (2, "-"), (0, "-")],
            "<ul><li>0<ul><li>1<ul><li>2</li></ul></li></ul></li><li>3</li></ul>",
        ),
        ([(0, "1."), (1, "-"), (1, "-")], "<ol><li>0<ul><li>1</li><li>2</li></ul></li></ol>"),
        ([(0, "10."), (1, "1.")], '<ol start="10"><li>0<ol><li>1</li></ol></li></ol>'),
        ([(0, "-"), (3, "-"), (1, "-")], "<ul><li>0<ul><li>1</li><li>2</li></ul></li></ul>"),
        ([(2, "-"), (2, "-")], "<ul><li>0</li><li>1</li></ul>"),
        ([(1, "-"), (0, "-")], "<ul><li>0</li><li>1</li></ul>"),
    ],
)
def test_an_item_is_part_of_the_one_above_it_that_is_less_deep(items: list[tuple[int, str]], html: str) -> None:
    text = joined([item(depth, str(number), mark) for number, (depth, mark) in enumerate(items)])
    assert re.sub(r"\n|</?p>", "", MarkdownIt().render(text)) == html


def test_a_paragraph_ends_a_list() -> None:
    assert joined([item(0, "a"), item(1, "b"), "text", item(1, "c")]) == "- a\n  - b\n\ntext\n\n- c"


def test_a_list_that_is_one_block_stays_as_it_is() -> None:
    assert joined(["  - a\n    - b", "- c"]) == "  - a\n    - b\n\n- c"
