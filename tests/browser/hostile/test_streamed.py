"""No text runs a script or becomes an element of the page while an answer streams, or where it is sought."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.hostile.payloads import Payload, joined
from tests.browser.hostile.watch import INSPECT, Watch, shown
from tests.browser.talk import say
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

AT_ONCE = 300
# A request whose first line is longer is refused.
MAX_QUERY_CHARS = 3_500
MAX_QUESTION_CHARS = 8_000

# Notes what comes into the page, also for a moment only.
LOOK_ON = """
(own) => {
    window.__seen = [];
    const look = (element) => {
        const handler = element.getAttributeNames().find((name) => /^on|^src(doc|set)?$|^style$/i.test(name));
        if (!own.includes(element.localName) || handler) window.__seen.push(element.outerHTML.slice(0, 200));
    };
    new MutationObserver((changes) => {
        for (const node of changes.flatMap((change) => [...change.addedNodes])) {
            if (node.nodeType === Node.ELEMENT_NODE) [node, ...node.querySelectorAll("*")].forEach(look);
        }
    }).observe(document, { childList: true, subtree: true });
}
"""


@pytest.mark.every_time
def test_a_streamed_answer_never_becomes_more_than_text(
    page: Page, watch: Watch, server: ServerProcess, stub: StubModel, own_elements: list[str], corpus: list[Payload]
) -> None:
    page.goto(server.url)
    page.evaluate(LOOK_ON, own_elements)
    for turn, start in enumerate(range(0, len(corpus), AT_ONCE), 1):
        text = joined(corpus[start : start + AT_ONCE], "streamed")
        stub.default = Reply(text, pieces=re.findall(r"(?s).{1,61}", text))
        # A question with the character 0 is refused, and one that is longer.
        say(page, joined(corpus[start : start + 20], "asked").replace("\0", "")[:MAX_QUESTION_CHARS])
        expect(page.locator(f"#turn-{turn}.completed")).to_be_visible()
    assert page.evaluate("window.__seen") == []
    assert page.evaluate(INSPECT, own_elements) == []
    assert shown(page.content())["streamed"] == {payload.number for payload in corpus}
    assert watch.trouble == {}
    assert watch.reports == []


@pytest.mark.shared
def test_what_is_sought_is_shown_as_text(
    page: Page, watch: Watch, server: ServerProcess, own_elements: list[str], corpus: list[Payload]
) -> None:
    texts = [quote(payload.text.replace("\0", ""), safe="") for payload in corpus]
    while texts:
        query = texts.pop()[:MAX_QUERY_CHARS]
        while texts and len(query) + len(texts[-1]) < MAX_QUERY_CHARS:
            query += "%0A" + texts.pop()
        for path in ("/?q=", "/documents?q=", "/nothing/"):
            page.goto(server.url + path + query, wait_until="domcontentloaded")
            assert page.evaluate(INSPECT, own_elements) == [], path
    assert watch.trouble == {}
    assert watch.reports == []
