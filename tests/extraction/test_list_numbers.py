"""Lists of OpenDocument and PowerPoint have the numbers that these programs show; DOCX's are in test_word.py."""

from pathlib import Path

import pytest

from tests.extraction.archives import a_pptx, shape
from tests.extraction.features import odt
from tests.extraction.reading import read


def level(deep: int, attributes: str, kind: str = "number") -> str:
    return f'<text:list-level-style-{kind} text:level="{deep}" {attributes}/>'


CLAUSES = level(1, 'style:num-format="1" style:num-suffix="."')
CLAUSES += level(2, 'style:num-format="1" style:num-suffix="." text:display-levels="2"')
CLAUSES += level(3, 'style:num-format="a" style:num-prefix="(" style:num-suffix=")" text:start-value="2"')
ROMAN = level(1, 'style:num-format="I" style:num-suffix=")"') + level(2, 'text:bullet-char="x"', "bullet")
OUTLINE = "".join(
    f'<text:outline-level-style text:level="{n}" style:num-format="{way}" text:display-levels="{n}" {more}/>'
    for n, way, more in ((1, "1", 'style:num-prefix="Article " style:num-suffix=":"'), (2, "1", ""), (3, "", ""))
)
STYLES = (
    "<x xmlns:text='t' xmlns:style='s'>"
    f"<text:list-style style:name='L'>{CLAUSES}</text:list-style>"
    f"<text:list-style style:name='R'>{ROMAN}</text:list-style>"
    f"<text:outline-style>{OUTLINE}</text:outline-style></x>"
)


def items(*texts: str, style: str = "", attributes: str = "") -> str:
    named = f'text:style-name="{style}"' if style else ""
    inside = "".join(
        one if one.startswith("<text:list-") else f"<text:list-item>{one}</text:list-item>" for one in texts
    )
    return f"<text:list {named} {attributes}>{inside}</text:list>"


def p(text: str) -> str:
    return f"<text:p>{text}</text:p>"


def h(deep: int, text: str, attributes: str = "") -> str:
    return f'<text:h text:outline-level="{deep}" {attributes}>{text}</text:h>'


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (items(p("a"), p("b") + p("more") + items(p("c"), p("d") + items(p("e"), p("f"))), p("g"), style="L"),
         "1. a\n2. b\n- more\n  - 2.1. c\n  - 2.2. d\n    - (b) e\n    - (c) f\n3. g"),
        (items(p("a"), p("b"), style="L") + p("between") + items(p("c"), style="L"), "1. a\n2. b\n\nbetween\n\n1. c"),
        (items(p("a"), style="L") + p("-") + items(p("b"), style="L", attributes='text:continue-numbering="true"'),
         "1. a\n\n-\n\n2. b"),
        (items(f'<text:list-item text:start-value="7">{p("a")}</text:list-item>', p("b"), style="L"), "7. a\n8. b"),
        (items(f"<text:list-header>{p('head')}</text:list-header>", p("a") + items(p("b")), style="R"),
         "- head\n- I) a\n  - b"),
        (items(p("a"), style="unknown"), "- a"),
        (h(1, "One") + h(2, "Two") + h(3, "Three") + h(2, "Two more") + h(1, "No", 'text:is-list-header="true"'),
         "# Article 1: One\n\n## 1.1 Two\n\n### Three\n\n## 1.2 Two more\n\n# No"),
    ],
    ids=["nested", "anew", "continued", "from seven", "roman", "unknown", "headings"],
)  # fmt: skip
def test_an_odt_shows_the_numbers_of_its_lists_and_headings(tmp_path: Path, body: str, shown: str) -> None:
    assert read(tmp_path, odt(body, STYLES)).text == shown


def slide_item(text: str, depth: int = 0, kind: str = "", start: int = 1) -> str:
    numbers = f'<a:buAutoNum type="{kind}" startAt="{start}"/>' if kind else ""
    return f'<a:p><a:pPr lvl="{depth}">{numbers}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'


def test_a_slide_shows_the_numbers_of_its_lists(tmp_path: Path) -> None:
    paragraphs = [
        slide_item("a", 0, "arabicPeriod"),
        slide_item("b", 1, "alphaLcParenBoth"),
        slide_item("c", 1, "alphaLcParenBoth"),
        slide_item("d", 0, "arabicPeriod"),
        slide_item("e", 1, "romanUcParenR", 4),
        slide_item("plain"),
        slide_item("f", 0, "arabicPeriod"),
    ]
    body = shape("x", "body").replace("<a:p><a:r><a:t>x</a:t></a:r></a:p>", "".join(paragraphs))
    assert read(tmp_path, a_pptx(body)).text.strip() == (
        "1. a\n   - (a) b\n   - (b) c\n2. d\n   - IV) e\n- plain\n1. f"
    )
