"""What of a web page is read: its content, without menus and without where its links lead."""

from pathlib import Path

import pytest

from rag_assistant.extraction.formats.web_pages import content_of
from tests.extraction.reading import read
from tests.testkit.shared_data import shared

NAMES = ("Afrikaans", "Cymraeg", "Deutsch", "Euskara", "Galego", "Magyar", "Norsk", "Polski", "Suomi")
LANGUAGES = "".join(f'<li><a href="https://{one}.example.org/wiki/Mixer" title="Mixer">{one}</a></li>' for one in NAMES)
WIKI = f"""<!doctype html><html><head><title>Mixer - Wiki</title></head><body>
<a href="#content">Jump to content</a>
<header><a href="/">Wiki</a><form role="search"><input></form></header>
<div class="sidebar"><h3>Navigation</h3><ul><li><a href="/a">Main page</a></li><li><a href="/b">Recent changes</a></li>
<li><a href="/c">Random page</a></li></ul></div>
<main id="content"><header><h1>Mixer</h1><div><label>4 languages</label><ul>{LANGUAGES}</ul></div></header>
<div class="toc"><h2>Contents</h2><ul><li><a href="#use">Use</a></li></ul></div>
<!-- <div> that is closed nowhere -->
<p>A <b>mixer</b> is a <a href="/wiki/Kitchen" title="Kitchen">kitchen</a> machine
<sup><a href="#note-1">&#91;1&#93;</a></sup>
that stirs dough for bread and cakes, at up to twelve speeds. It was patented by Rufus Eastman in 1885.</p>
<h2 id="use">Use<span class="mw-editsection">[<a href="/edit">edit</a>]</span></h2>
<p>These brands are known:</p>
<ul><li><a href="/1">Whirl</a></li><li><a href="/2">Stir</a></li><li><a href="/3">Beat</a></li></ul>
<table><tr><th>Part</th><th>Needs</th></tr><tr><td>Bowl</td><td><ul><li><a href="/x">steel</a></li>
<li><a href="/y">glass</a></li><li><a href="/z">clay</a></li></ul></td></tr></table>
<h2>See also</h2><ul><li><a href="/4">Whisk</a></li><li><a href="/5">Blender</a></li><li><a href="/6">Oven</a></li></ul>
<div><a href="/c1">Machines</a> <a href="/c2">Kitchens</a> <a href="/c3">Inventions</a></div>
<div role="navigation"><p>This is a series about kitchens.</p></div>
</main>
<aside><p>Buy a mixer now.</p></aside><footer><p>Last edited yesterday.</p></footer></body></html>"""


def test_a_wiki_page_is_its_article_without_its_navigation_and_link_targets(tmp_path: Path) -> None:
    assert [block.strip() for block in read(tmp_path, WIKI).text.split("\n\n")] == [
        "# Mixer",
        "A **mixer** is a kitchen machine  that stirs dough for bread and cakes, at up to twelve speeds. "
        "It was patented by Rufus Eastman in 1885.",
        "## Use",
        "These brands are known:",
        "- Whirl\n- Stir\n- Beat",
        "| Part | Needs |\n| --- | --- |\n| Bowl | steel glass clay |",
        "## See also",
        "- Whisk\n- Blender\n- Oven",
    ]


def test_a_page_without_a_main_part_loses_what_names_itself_chrome() -> None:
    page = (
        "<body><header><nav><a href=/>Home</a></nav></header><p>" + "Geese hiss at strangers. " * 9 + "</p>"
        "<div hidden>Not shown</div><article><header>By Ann</header></article><footer>Imprint</footer></body>"
    )
    content = content_of(page)
    assert "By Ann" in content
    assert not any(word in content for word in ("Home", "Not shown", "Imprint"))


@pytest.mark.parametrize(
    "page",
    [
        "<ul><li><a href=/1>" + "</a></li><li><a href=/1>".join("One Two Three Four".split() * 20) + "</a></li></ul>",
        "<nav>" + "<p>All of the text stands in what is called navigation.</p>" * 9 + "</nav><p>Short.</p>",
        "<div class=toc><p>" + "An element that is closed nowhere. " * 20,
        "<main></main><p>" + "The main part is empty, and the text stands beside it. " * 9,
    ],
)
def test_a_page_of_which_little_would_be_left_stays_whole(page: str) -> None:
    assert content_of(page) == page


@pytest.mark.parametrize("piece", ['<a "', "<div>", "<a href=#>", "</div>", "<ul><li><a href='", "<", "<!-- "])
def test_a_page_of_nothing_but_pieces_of_tags_costs_its_length(piece: str) -> None:
    page = piece * 20_000
    assert len(content_of(page)) <= len(page)


@pytest.mark.parametrize(
    ("name", "kept", "left_out"),
    [
        (
            "docling/wiki_duck.html",
            ["Ducks are generally smaller and shorter-necked than swans", "| Kingdom: | Animalia |", "Mighty Ducks"],
            ["Jump to content", "Afrikaans", "Current events", "](", "[1]", "[edit]", "Terms of Use"],
        ),
        (
            "markitdown/test_wikipedia.html",
            ["| Services | Edge Azure Bing", "BASIC interpreters for the Altair 8800", "## External links"],
            ["154 languages", "Random article", "](", "[14]", "Authority control"],
        ),
        (
            "markitdown/test_blog.html",
            ["# Does Model and Inference Parameter Matter", "April 21, 2023", "## For Further Reading"],
            ["Skip to main content", "Copyright", "Discord\n", "]("],
        ),
    ],
)
def test_of_a_real_page_the_text_is_kept_and_the_navigation_is_not(
    tmp_path: Path, name: str, kept: list[str], left_out: list[str]
) -> None:
    text = read(tmp_path, shared(f"documents/{name}").read_bytes()).text
    assert [words for words in kept if words not in text] == []
    assert [words for words in left_out if words in text] == []


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            "<tr><th rowspan=2>region</th><th colspan='2'>2025</th></tr><tr><th>Q1<th>Q2</tr>"
            "<tr><td rowspan=2>Harbour<td>1<td>2<tr><td>3<td>4</tr>",
            "| region | 2025 Q1 | 2025 Q2 |\n| --- | --- | --- |\n| Harbour | 1 | 2 |\n| Harbour | 3 | 4 |",
        ),
        (
            "<tr><td colspan=3>Birds</td></tr>"
            "<tr><td>a</td><td>b</td><td>c</td></tr><tr><td>1</td><td>2</td><td>3</td></tr>",
            "| Birds |  |  |\n| --- | --- | --- |\n| a | b | c |\n| 1 | 2 | 3 |",
        ),
        (
            "<tr><td>a</td><td>b</td></tr><tr><td>1</td><td rowspan=99>all</td></tr><tr><td>2</td></tr>",
            "| a | b |\n| --- | --- |\n| 1 | all |\n| 2 | all |",
        ),
        ("<tr><td>a<td>b</tr><tr><td colspan=x rowspan=-1>1<td>2</tr>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ],
)
def test_a_merged_cell_says_the_same_in_each_row_that_it_covers(tmp_path: Path, rows: str, text: str) -> None:
    page = f"<html><body><p>{'Of geese and ducks. ' * 6}</p><table>{rows}</table></body></html>"
    assert read(tmp_path, page).text.strip().endswith(f"\n\n{text}")


def test_cells_that_say_they_are_huge_make_no_page_huge(tmp_path: Path) -> None:
    row = "<tr>" + "<td rowspan=9999 colspan=9999>goose" * 300 + "</tr>"
    page = f"<html><body><table>{row}{'<tr><td>x</tr>' * 50}</table></body></html>"
    assert len(read(tmp_path, page).text) < 1_000_000
