"""No text runs a script, becomes an element of the page or calls another host, wherever it is shown."""

import pytest
from playwright.sync_api import Page

from tests.browser.hostile.payloads import PAYLOADS, Payload
from tests.browser.hostile.watch import INSPECT, Watch, shown
from tests.testkit.server_process import ServerProcess

# The pages that show what is kept, and the places whose texts are seen there in full.
VIEWS = {
    "/conversations/1": ["question", "answer", "arguments", "failure", "summary", "title", "name", "heading", "text"],
    "/turns/1/receipt": ["question"],
    "/documents": ["name", "tag"],
    "/documents?state=failed": ["reason"],
    "/documents/DOCUMENT": ["name", "tag"],
    "/deleted": ["deleted"],
    "/settings": ["value"],
}
# What shows the same once more by the same templates, such as what comes into the drawer.
FURTHER_VIEWS = {
    "/conversations/1?before=2": [],
    "/turns/1": ["question", "answer"],
    "/turns/1/receipt?drawer=1": ["question"],
    "/turns/3/receipt": [],
    "/documents?drawer=1": ["name", "tag"],
    "/documents/DOCUMENT?drawer=1": ["name"],
    "/conversations/deleted": [],
    "/conversations/2": [],
}


@pytest.mark.every_time
def test_a_kept_text_is_shown_as_text_in_every_place(
    page: Page, watch: Watch, hostile_server: ServerProcess, own_elements: list[str], corpus: list[Payload]
) -> None:
    everything = {payload.number for payload in corpus}
    wrong: dict[str, list[str]] = {}
    missing = {}
    views: dict[str, list[str]] = VIEWS | (FURTHER_VIEWS if len(corpus) == len(PAYLOADS) else {})
    for path, places in views.items():
        page.goto(hostile_server.url + path.replace("DOCUMENT", hostile_server.environment["HOSTILE_DOCUMENT"]))
        wrong[path] = page.evaluate(INSPECT, own_elements)
        on_page = shown(page.content())
        for place in places:
            if lost := everything - on_page.get(place, set()):
                missing[path, place] = len(lost)
    assert {path: found for path, found in wrong.items() if found} == {}
    assert watch.trouble == {}
    assert watch.reports == []
    assert missing == {}


def test_what_a_document_says_is_shown_as_text(
    page: Page, watch: Watch, hostile_server: ServerProcess, own_elements: list[str], corpus: list[Payload]
) -> None:
    document = hostile_server.environment["HOSTILE_DOCUMENT"]
    length = len(hostile_server.call("GET", f"/api/documents/{document}/text")[1]["text"])
    found: dict[str, set[int]] = {"heading": set(), "text": set()}
    # A page shows 40,000 characters of a large text; what one cuts in two, the next has whole.
    for at in range(0, length, 30_000):
        page.goto(f"{hostile_server.url}/documents/{document}?at={at}")
        assert page.evaluate(INSPECT, own_elements) == []
        for place, numbers in shown(page.content()).items():
            if place in found:
                found[place] |= numbers
    everything = {payload.number for payload in corpus}
    assert found == {"heading": everything, "text": everything}
    assert watch.trouble == {}
    assert watch.reports == []
