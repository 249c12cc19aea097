"""What the Content-Security-Policy stops by itself, where a text has become HTML in spite of everything."""

import re

import pytest
from playwright.sync_api import Page

from rag_assistant.web.markdown.render import render_markdown
from tests.browser.hostile.payloads import EVERY, PAYLOADS, Payload
from tests.browser.hostile.raw_pages import RawPages
from tests.browser.hostile.watch import Watch

# Does what a person might: every handler gets its event, and every link that is no way to another page is followed.
TEMPT = """
async () => {
    const leads = (way) => way !== "" && URL.canParse(way, location) && /^http/.test(new URL(way, location).protocol);
    const places = [...document.querySelectorAll(".answer")];
    for (const frame of document.querySelectorAll("iframe")) {
        try { places.push(frame.contentDocument); } catch { continue; }
    }
    for (const inside of places) {
        for (const element of inside ? inside.querySelectorAll("*") : []) {
            for (const name of element.getAttributeNames()) {
                if (/^on/i.test(name)) element.dispatchEvent(new Event(name.slice(2).toLowerCase()));
            }
            const way = `${element.getAttribute("href") ?? element.getAttribute("xlink:href") ?? ""}`;
            const click = new MouseEvent("click", { bubbles: true, cancelable: true });
            const action = element.getAttribute("action") ?? "";
            // On a page of its own, a way to another page would end what is looked at.
            if (inside.matches?.(".answer") && (leads(way) || leads(action))) continue;
            if (/^[^a-z/#.]*(j|d|v)/i.test(way)) element.dispatchEvent(click);
            if (/script/i.test(action)) try { element.requestSubmit(); } catch {}
        }
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
}
"""


# A text that would take what stands behind it into a script, a style or a comment gets a frame of its own.
GROUPED = """
(texts) => {
    const groups = [];
    let open = [];
    for (const text of texts) {
        const parsed = new DOMParser().parseFromString(`<div>${text}</div><i id="behind"></i>`, "text/html");
        const behind = parsed.getElementById("behind");
        if (behind === null || behind.namespaceURI !== document.documentElement.namespaceURI) groups.push([text]);
        else if (open.push(text) === 20) { groups.push(open); open = []; }
    }
    return [...groups, open].map((group) => group.map((text) => `<div>${text}</div>`).join(""));
}
"""


def show(page: Page, guarded: bool, payloads: list[Payload]) -> None:
    """Show payloads as HTML, and tempt each."""
    pages = RawPages(guarded, page.evaluate(GROUPED, [payload.text for payload in payloads]))
    for number in range(len(pages.batches)):
        page.goto(f"{pages.url}/?{number}", wait_until="load")
        page.evaluate(TEMPT)
    pages.close()


@pytest.mark.every_time
def test_there_are_enough_texts_and_no_two_are_the_same() -> None:
    assert len({payload.text for payload in PAYLOADS}) == len(PAYLOADS) >= 1_000


def test_the_policy_alone_lets_nothing_run_and_calls_nobody(page: Page, watch: Watch, corpus: list[Payload]) -> None:
    show(page, True, [payload for payload in corpus if not payload.only_sanitised])
    assert len(watch.reports) > len(corpus) / 3, "the policy had nothing to stop"
    assert watch.trouble == {}


@pytest.mark.parametrize("every", [EVERY, 5])
def test_without_policy_and_sanitiser_the_same_texts_run_and_call(page: Page, watch: Watch, every: int) -> None:
    show(page, False, PAYLOADS[::every])
    assert len(watch.hits) > 500 / every
    assert watch.visits > 25 / every


@pytest.mark.every_time
def test_what_no_policy_stops_never_becomes_html() -> None:
    texts = [payload.text for payload in PAYLOADS if payload.only_sanitised]
    assert {sign for sign in ("<meta", "<iframe") if any(sign in text for text in texts)} == {"<meta", "<iframe"}
    assert [text for text in texts if re.search(r"<(meta|iframe)", render_markdown(text))] == []
