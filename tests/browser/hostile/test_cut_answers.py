"""An answer that is cut anywhere, as it stands while it streams, becomes harmless HTML in a real browser."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page

from rag_assistant.web.markdown.blocks import Blocks
from rag_assistant.web.markdown.render import SCHEMES, TAGS, render_markdown
from tests.browser.hostile.payloads import PAYLOADS, Payload
from tests.browser.hostile.watch import Watch
from tests.testkit.server_process import ServerProcess

AT_ONCE = 4_000
LONG = 200
ENDS = 100
# Of a sample of the texts, each sixteenth beginning is drawn.
SAMPLED = 16
# Has all that may stand in an answer besides what TAGS allows: the bar of a piece of code, the box of a wide table.
HARMLESS = "```\nx\n```\n\n| a |\n|---|\n| b |\n\n[x](https://example.org) $x$ \n\n$$\nx\n$$\n\n3. x\n"
HARMFUL = ("<img>", "<p onclick=x>", '<a href="javascript:x">x</a>', '<pre tabindex="1">', "<ol start=x>")

# Lets the page take in answers as its scripts do, one after the other, and looks at each.
TAKE_IN = """
async ([answers, tags, schemes, attributes]) => {
    const { modules } = await import(document.querySelector("script[type=module]").src);
    const { setHtml } = modules["lib/html.js"];
    const holder = document.body.appendChild(document.createElement("div"));
    const wrong = new Set();
    for (const answer of answers) {
        setHtml(holder, answer);
        for (const element of holder.querySelectorAll("*")) {
            if (!tags.includes(element.localName)) wrong.add(`<${element.localName}>`);
            for (const { name, value } of element.attributes) {
                // An address that cannot be read, such as //, leads nowhere: its protocol is ":".
                if (name === "href" && [...schemes, ""].includes(element.protocol.slice(0, -1))) continue;
                if (name === "start" && element.localName === "ol" && /^[0-9]+$/.test(value)) continue;
                if (!attributes.includes(`${element.localName} ${name}="${value}"`)) wrong.add(element.outerHTML);
            }
        }
    }
    holder.remove();
    return [...wrong].map((one) => one.slice(0, 300));
}
"""


def attributes_in(html: str) -> set[str]:
    """Return what HTML of ours has for attributes, each with its element and its value."""
    elements = re.findall(r"<([a-z0-9]+)((?: [a-z-]+(?:=\"[^\"]*\")?)*)>", html)
    pairs = {(tag, *one) for tag, inside in elements for one in re.findall(r" ([a-z-]+)(?:=\"([^\"]*)\")?", inside)}
    return {f'{tag} {name}="{value}"' for tag, name, value in pairs if name != "href"}


def cuts(text: str) -> list[int]:
    """Return where a text is cut: at every character; of the few that repeat one tag many times, not in the midst."""
    ends = range(1, len(text) + 1)
    return list(ends) if len(text) <= LONG else [*ends[:ENDS], *ends[-ENDS:]]


def read_whole(one: Payload, every: int) -> Iterator[str]:
    """Yield what beginnings of an answer become where it is drawn as a whole: after a reload, or once stopped.

    Where not ``every`` one is looked at, those of the next answer are others.
    """
    for end in cuts(one.text)[one.number % every :: every]:
        yield str(render_markdown(one.text[:end]))


def streamed(one: Payload, every: int) -> Iterator[str]:
    """Yield what is sent to a page that follows an answer character by character, or ``every`` so many.

    Where several come at once, the next answer is cut elsewhere.
    """
    blocks = Blocks()
    for start, end in pairwise(sorted({0, *cuts(one.text)[one.number % every :: every], len(one.text)})):
        yield blocks.add(one.text[start:end])[1]


@pytest.mark.every_time
@pytest.mark.parametrize("drawn", [streamed, pytest.param(read_whole, marks=pytest.mark.long)])
@pytest.mark.shared
def test_an_answer_that_is_cut_anywhere_becomes_harmless_html(
    watch: Watch, server: ServerProcess, corpus: list[Payload], drawn: Callable[[Payload, int], Iterator[str]]
) -> None:
    page: Page = watch.context.new_page()
    page.goto(server.url)
    every = 1 if len(corpus) == len(PAYLOADS) else SAMPLED
    # Without an element in it, it is text.
    answers = sorted({answer for one in corpus for answer in drawn(one, every) if "<" in answer})
    assert len(answers) * every > 10 * len(corpus)
    ours = str(render_markdown(HARMLESS))
    tags = sorted(TAGS | set(re.findall(r"<([a-z0-9]+)", ours)))
    for start in range(0, len(answers), AT_ONCE):
        batch = answers[start : start + AT_ONCE]
        assert page.evaluate(TAKE_IN, [batch, tags, sorted(SCHEMES), sorted(attributes_in(ours))]) == []
    assert watch.trouble == {}
    for harmful in HARMFUL:
        assert page.evaluate(TAKE_IN, [[harmful], tags, sorted(SCHEMES), []]), f"{harmful} would not be noticed"
