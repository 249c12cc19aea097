"""An answer that is being written: drawn by blocks, whatever has been seen stays, and formulas stay readable."""

import html as html_module
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assistant.web.markdown.blocks import Blocks, completed
from rag_assistant.web.markdown.render import render_markdown

TOO_MANY_MARKS = 20_001
TOO_MANY_LINES = 10_001


FLOODS = [mark * TOO_MANY_MARKS for mark in ("[", "*", "_a", "`", "\\(", "![", "|a")]
FLOODS += [line * TOO_MANY_LINES for line in ("x\n", "- x\n", "1. x\n", "- 1. + x\n", "\t- x\n")]


@pytest.mark.parametrize("text", FLOODS, ids=lambda text: repr(text[:6]))
def test_a_flood_of_marks_or_lines_is_shown_as_it_is(text: str) -> None:
    drawn = str(render_markdown(text))
    assert drawn == f"<pre>{html_module.escape(text)}</pre>"
    blocks = Blocks()
    blocks.add(text[:100])
    assert blocks.add(text[100:])[1] == drawn


WHOLE = """# What it says

It is **five**, *not six*, see [1]; ~~old~~ `code with ** marks` and a [link](https://example.org/a_b).

- one **bold item**
- two
  1. inner `x`
  2. second

| Name | Count |
|:-----|------:|
| geese | 17 |
| ducks | **3** |

```python
def geese():  # a comment
    return "`17`"
```

> A quote with *emphasis*
> over two lines.

Costs are $5 and $10; the area is $a_1 * b_1$ or \\(x^2 * y^2\\).

$$
\\sum_{i=1}^{n} a_i * b_i
$$

2024 was a year. An escaped \\* star and 2*3*4, AT&T, a_b_c.

---
Intro:
| a | b |
|---|---|
| 1 | 2 |

1. First
2. Second with `code`

***Both*** and __strong__ and _em_. The end
"""


class Screen:
    """What a page shows that follows the instructions of the stream."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.elements: list[str] = []

    def add(self, text: str) -> str:
        keep, drawn = self.blocks.add(text)
        self.elements = self.elements[:keep] + elements_of(drawn)
        return "".join(self.elements)


def elements_of(html: str) -> list[str]:
    """Return the outermost elements of HTML."""
    found, depth, start = [], 0, 0
    for tag in re.finditer(r"<(/?)([a-z0-9]+)[^>]*>", html):
        if tag.group(2) in ("br", "hr"):
            if not depth:
                found.append(tag.group(0))
            continue
        if not tag.group(1):
            start = tag.start() if depth == 0 else start
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                found.append(html[start : tag.end()])
    return found


def letters(html: str) -> str:
    """Return what a reader sees of HTML, letters and digits alone; the button of a piece of code is not text."""
    html = re.sub(r"<button.*?</button>", "", html)
    return "".join(filter(str.isalnum, html_module.unescape(re.sub(r"<[^>]*>", " ", html))))


@pytest.mark.parametrize("size", [1, 3, 7])
def test_what_has_been_seen_of_an_answer_never_goes_away_and_looks_as_it_does_when_it_is_whole(size: int) -> None:
    screen = Screen()
    seen = ""
    for start in range(0, len(WHOLE), size):
        now = letters(screen.add(WHOLE[start : start + size]))
        assert now.startswith(seen), (WHOLE[max(0, start - 40) : start + size], seen[-40:], now[-40:])
        seen = now
    assert "".join(screen.elements) == "".join(elements_of(render_markdown(WHOLE))), "whole, it looks another way"


@pytest.mark.parametrize("mark", ["- ", "> ", "1. ", "> 1. - "])
@pytest.mark.parametrize("deep", [2, 12, pytest.param(30, marks=pytest.mark.long)])
def test_what_has_been_seen_of_nested_lists_never_goes_away(mark: str, deep: int) -> None:
    screen = Screen()
    seen = ""
    for character in f"Before\n\n{mark * deep}inner 1\n{mark * deep}second\n\nBehind":
        now = letters(screen.add(character))
        assert now.startswith(seen), (seen[-40:], now[-40:])
        seen = now
    assert seen.endswith("Behind")
    assert "second" in seen


def test_a_table_is_a_table_from_its_first_cell_on() -> None:
    screen = Screen()
    table = "| Name | Count |\n|---|---|\n| geese | 17 |\n"
    for end in range(3, len(table)):
        shown = screen.add(table[end] if end > 3 else table[: end + 1])
        assert "<table>" in shown, table[: end + 1]
        assert "---" not in shown


def test_code_is_code_from_its_first_line_on() -> None:
    screen = Screen()
    code = "```python\nprint(1)\n```\n"
    seen = [screen.add(character) for character in code]
    assert all(one == "" or '<div class="code">' in one for one in seen)
    assert seen[-1].count("<span>python</span>") == 1
    assert not any("`" in letters_and_marks for letters_and_marks in seen)


def test_only_the_open_end_is_drawn_again() -> None:
    blocks = Blocks()
    blocks.add("One.\n\nTwo.\n\nThr")
    keep, drawn = blocks.add("ee")
    assert (keep, drawn) == (2, "<p>Three</p>\n")


def test_a_long_answer_is_drawn_in_time_that_grows_with_it_alone() -> None:
    blocks = Blocks()
    longest = 0
    for number in range(400):
        _, drawn = blocks.add(f"Paragraph {number} " + "word " * 40 + "\n\n")
        longest = max(longest, len(drawn))
    assert longest < 1000


@settings(max_examples=2 * int(os.environ.get("EXAMPLES", "30")))
@given(st.lists(st.text(alphabet="ab1 \n*_`~#|->[]()$\\.&;!", max_size=8), max_size=30))
def test_any_answer_can_be_drawn_piece_by_piece(pieces: list[str]) -> None:
    blocks = Blocks()
    for piece in pieces:
        keep, drawn = blocks.add(piece)
        assert keep >= 0
        assert not re.search(r"<(script|img|svg|iframe|style|link|object|form|input)\b", drawn)


@pytest.mark.parametrize(
    "formula",
    [
        r"$a_1 * b_1 * c_1$",
        r"$$\frac{a_b}{c_d} * e * f$$",
        r"\(x_1 * y * z\)",
        r"\[ \sum_{i} a_i \\ b * c * d \]",
        "$$\na_1 * b_1 * c\n\n\\\\ next\n$$",
        "\\[\nx * y * z\n\\]",
    ],
)
def test_formulas_stay_as_they_were_written(formula: str) -> None:
    drawn = str(render_markdown(f"Before\n\n{formula}\n\nbehind *it*"))
    code = re.search(r'<code class="math">(.*?)</code>', drawn, re.DOTALL)
    assert code is not None
    assert html_module.unescape(code.group(1)) == formula
    assert "<em>it</em>" in drawn


def test_money_is_not_a_formula() -> None:
    assert "math" not in render_markdown("It costs $5 and then $10, or US$ 7, or \\$8 and 9\\$.")


def test_the_name_of_a_language_cannot_carry_anything_else() -> None:
    drawn = render_markdown('```a"onclick=alert(1)\nx\n```\n\n```c++\ny\n```')
    assert "onclick" not in drawn
    assert "<span>c++</span>" in drawn


def test_a_list_of_sources_stays_readable() -> None:
    assert "Handbook" in render_markdown("See [1].\n\n[1]: Handbook")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\r", "\r\n"])
def test_what_python_takes_for_the_end_of_a_line_draws_nothing_twice(separator: str) -> None:
    screen = Screen()
    for piece in (f"alpha{separator}one{separator}two\n\n", "bravo\n\n", "charlie\n\n", "delta"):
        shown = screen.add(piece)
    for word in ("alpha", "one", "two", "bravo", "charlie", "delta"):
        assert shown.count(word) == 1


# So long that what grows with its square would not end before the timeout.
LONG = 80_000


@pytest.mark.timeout(60)
@pytest.mark.parametrize("run", [" ", "*", "_", "`", "~", "-", "> ", "`a` ", "* a", "|a", "[", "\\a"])
@pytest.mark.parametrize("end", ["x`", *(pytest.param(end, marks=pytest.mark.long) for end in ("", "x", "x*"))])
def test_a_long_run_of_marks_is_completed_in_time_that_grows_with_it_alone(run: str, end: str) -> None:
    completed(run * (LONG // len(run)) + end)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("opening", ["\\(", "\\( a ", "\\[", "x \\[ a ", "$a ", "$$ a "])
def test_an_answer_full_of_formulas_without_end_is_drawn_in_time_that_grows_with_it_alone(opening: str) -> None:
    render_markdown(opening * (LONG // len(opening)))
