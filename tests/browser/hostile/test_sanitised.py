"""No text runs a script, becomes an element of the page or calls another host, wherever it is shown."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from rag_assistant.web.markdown import TAGS, render_markdown
from tests.browser.hostile.payloads import PAYLOADS
from tests.browser.hostile.seeding import seed, seed_sources
from tests.browser.hostile.watch import INSPECT, Watch
from tests.server_fork import ServerFork
from tests.server_process import ServerProcess
from tests.stub_model import StubModel

# The pages that show what is kept, and the places whose texts are seen there in full.
VIEWS = {
    "/conversations/1": ["question", "answer", "arguments", "failure", "summary", "title", "name"],
    "/conversations/1?before=2": [],
    "/turns/1": ["question", "answer"],
    "/turns/1/receipt": ["question"],
    "/turns/1/receipt?drawer=1": ["question"],
    "/turns/3/receipt": [],
    "/documents": ["name", "tag", "reason"],
    "/documents?drawer=1": ["name", "tag", "reason"],
    "/documents/DOCUMENT": ["name"],
    "/documents/DOCUMENT?drawer=1": ["name"],
    "/deleted": [],
    "/conversations/deleted": [],
    "/conversations/2": [],
    "/settings": [],
}


@pytest.fixture(scope="module")
def hostile_server(server_fork: ServerFork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    stub = StubModel()
    folder = tmp_path_factory.mktemp("hostile")
    own = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model", "FOLLOW_UPS": "words", "RETRIEVAL": "agent"}
    made = ServerProcess(folder, server_fork.launch, **own)
    made.start("/readyz")
    made.environment["HOSTILE_DOCUMENT"] = str(seed(made, stub))
    yield made
    made.kill()
    stub.close()


@pytest.fixture
def page(watch: Watch) -> Page:
    return watch.context.new_page()


def shown(content: str) -> dict[str, set[int]]:
    """Return of which place which payloads stand on a page."""
    found: dict[str, set[int]] = {}
    for number, place in re.findall(r"end(\d+)([a-z]+)", content):
        found.setdefault(place, set()).add(int(number))
    return found


def test_a_kept_text_is_shown_as_text_in_every_place(
    page: Page, watch: Watch, hostile_server: ServerProcess, own_elements: list[str]
) -> None:
    everything = {payload.number for payload in PAYLOADS}
    wrong: dict[str, list[str]] = {}
    missing = {}
    for path, places in VIEWS.items():
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


def test_a_source_is_shown_as_text(
    page: Page, watch: Watch, hostile_server: ServerProcess, own_elements: list[str]
) -> None:
    seed_sources(hostile_server)
    page.goto(hostile_server.url + "/conversations/1")
    assert page.evaluate(INSPECT, own_elements) == []
    assert shown(page.content())["source"] == {payload.number for payload in PAYLOADS}
    assert watch.trouble == {}


# Lets the page take in answers as its scripts do, one after the other, and looks at each.
TAKE_IN = """
async ([answers, tags]) => {
    const { setHtml } = await import("/static/js/html.js");
    const holder = document.body.appendChild(document.createElement("div"));
    const wrong = new Set();
    for (const answer of answers) {
        setHtml(holder, answer);
        for (const element of holder.querySelectorAll("*")) {
            if (!tags.includes(element.localName)) wrong.add(`<${element.localName}>`);
            for (const name of element.getAttributeNames()) {
                // An address that cannot be read, such as //, leads nowhere: its protocol is ":".
                const harmless = name === "href" && /^(https?|mailto|):$/.test(element.protocol);
                const own = { a: ["rel", "title"], ol: ["start"] }[element.localName] ?? [];
                if (!harmless && !own.includes(name)) wrong.add(element.outerHTML.slice(0, 200));
            }
        }
    }
    holder.remove();
    return [...wrong];
}
"""


def test_an_answer_that_is_cut_anywhere_becomes_harmless_html(page: Page, watch: Watch, server: ServerProcess) -> None:
    drawn = {str(render_markdown(one.text[:end])) for one in PAYLOADS for end in range(1, min(len(one.text), 200) + 1)}
    answers = [answer for answer in sorted(drawn) if "<" in answer.replace("<p>", "").replace("</p>", "")]
    answers += [answer for answer in sorted(drawn) if "&lt;" in answer][::7]
    page.goto(server.url)
    for start in range(0, len(answers), 3_000):
        assert page.evaluate(TAKE_IN, [answers[start : start + 3_000], sorted(TAGS)]) == []
    assert watch.trouble == {}
