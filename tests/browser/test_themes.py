"""The look: light and dark by the system and by hand, from right to left, with little motion."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rag_assistant.web.assets import SHEETS
from tests.browser.lists import fill
from tests.browser.shelf import upload
from tests.browser.talk import ask_many
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

STATIC = Path(__file__).parents[2] / "static"
LIGHT, DARK = "rgb(251, 250, 247)", "rgb(20, 24, 23)"
RAISED_IN_THE_DARK = "rgb(28, 34, 33)"


@pytest.mark.every_time
@pytest.mark.parametrize(("system", "paper"), [("dark", DARK), pytest.param("light", LIGHT, marks=pytest.mark.long)])
@pytest.mark.shared
def test_every_page_follows_the_system_until_a_theme_is_chosen(page: Page, system: str, paper: str) -> None:
    other, chosen = (DARK, "Dark") if paper == LIGHT else (LIGHT, "Light")
    page.emulate_media(color_scheme=system)  # type: ignore[arg-type]
    page.goto("/")
    expect(page.locator("body")).to_have_css("background-color", paper)
    expect(page.get_by_role("button", name="System", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=chosen, exact=True).click()
    expect(page.locator("body")).to_have_css("background-color", other)
    expect(page.get_by_role("button", name=chosen, exact=True)).to_have_attribute("aria-pressed", "true")
    page.goto("/conversations/7777")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", other)
    page.goto("/documents")
    expect(page.locator("body")).to_have_css("background-color", other)
    page.get_by_role("button", name="System", exact=True).click()
    expect(page.locator("body")).to_have_css("background-color", paper)


def test_a_question_stands_out_from_the_page_in_the_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    ask_many(page, 1)
    expect(page.locator("#turn-1 .question")).to_have_css("background-color", RAISED_IN_THE_DARK)


@pytest.mark.parametrize("width", [390, 1280])
def test_from_right_to_left_everything_stands_on_the_other_side(page: Page, server: ServerProcess, width: int) -> None:
    fill(server, 60)
    page.set_viewport_size({"width": width, "height": 844})
    ask_many(page, 1)
    page.evaluate("document.dir = 'rtl'")
    if width < 960:
        page.get_by_role("button", name="Menu").click()
    sidebar = page.locator("#sidebar")
    box = sidebar.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] == width
    # Empty, a field of its own direction would have its words below its button.
    expect(page.locator("#q")).to_have_css("direction", "rtl")
    page.get_by_role("link", name="Documents", exact=True).first.click()
    drawer = page.locator("#drawer")
    expect(drawer.get_by_role("heading", name="Documents")).to_be_visible()
    place = drawer.bounding_box()
    assert place is not None
    assert place["x"] == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width >= 960:
        edge = page.get_by_role("separator", name="Panel width")
        edge.press("ArrowRight")
        expect(edge).to_have_attribute("aria-valuenow", "512")


@pytest.mark.parametrize("direction", ["rtl", pytest.param("ltr", marks=pytest.mark.long)])
def test_a_settings_value_stands_above_its_origin(page: Page, direction: str) -> None:
    page.goto("/settings?filter=max_history_turns")
    page.evaluate(f"document.dir = '{direction}'")
    outer = page.locator("#setting-max_history_turns").evaluate(
        """(one) => [".value", ".origin"].map((part) => {
            const box = one.querySelector(part).getBoundingClientRect();
            return Math.round(document.dir === "rtl" ? box.left : box.right);
        })"""
    )
    assert outer[0] == outer[1]


def test_what_people_wrote_reads_in_its_own_direction_wherever_it_stands(page: Page, server: ServerProcess) -> None:
    hello = "שלום עולם?"
    fill(server, 2, title=hello)
    server.call("DELETE", "/api/conversations/2")
    document = upload(server, hello, "Seventeen geese.", tags=hello)
    paths = (
        "/?deleted=2", f"/?documents={document}", "/?q=שלום", "/conversations/1", "/deleted",
        "/documents", f"/documents?tag={hello[:-1]}%3F", "/documents?q=אין", f"/documents/{document}",
    )  # fmt: skip
    for path in paths:
        page.goto(path)
        # The composer's label is a sentence of ours; what only a screen reader says has no direction.
        directions = page.locator("body").evaluate(
            """(body) => {
                const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
                const found = [];
                while (walker.nextNode()) {
                    const holder = walker.currentNode.parentElement;
                    const isTheirs = /[א-ת]/.test(walker.currentNode.data);
                    if (!isTheirs || holder.closest(".visually-hidden, .composer")) continue;
                    found.push(getComputedStyle(holder).direction);
                }
                return found;
            }"""
        )
        assert directions, path
        assert set(directions) == {"rtl"}, path


def test_a_question_reads_in_its_own_direction_and_stands_where_questions_stand(page: Page, stub: StubModel) -> None:
    stub.default = Reply("שלום " * 200, seconds_between=0.02)
    page.goto("/")
    box = page.get_by_label("Your question")
    box.fill("מה שלום האווזים?")
    expect(box).to_have_css("direction", "rtl")
    page.keyboard.press("Enter")
    right = "one => Math.round(one.getBoundingClientRect().right)"
    expect(page.locator("#turn-1 .answer")).to_contain_text("שלום שלום")
    expect(page.locator("#turn-1 .answer")).to_have_css("direction", "rtl")
    before = page.locator("#turn-1 .question").evaluate(right)
    assert before == page.locator(".composer .box").evaluate(right)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-1.stopped .asked")).to_be_visible()
    assert page.locator("#turn-1 .question").evaluate(right) == before


@pytest.mark.every_time
@pytest.mark.shared
def test_the_rules_that_go_out_are_those_that_were_written(page: Page) -> None:
    page.goto("/")
    written = "".join((STATIC / f"{name}.css").read_text() for name in SHEETS)
    rules = """async (sheet) => {
        const [written, sent] = [new CSSStyleSheet(), new CSSStyleSheet()];
        written.replaceSync(sheet);
        sent.replaceSync(await (await fetch(document.querySelector("link[rel=stylesheet]").href)).text());
        const read = (one) => [...one.cssRules].map((rule) => rule.cssText.replace(/\\s*([,{}])\\s*/g, "$1"));
        return [read(written), read(sent)];
    }"""
    before, after = page.evaluate(rules, written)
    assert len(before) > 100
    assert after == before


@pytest.mark.every_time
@pytest.mark.shared
def test_whoever_wants_little_motion_gets_none(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((one) => {
            const style = getComputedStyle(one);
            return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
        }).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert moving == []


def test_the_list_of_documents_keeps_its_names_whole_beside_the_conversation(page: Page, server: ServerProcess) -> None:
    upload(server, "The handbook of the lighthouse keeper.txt", "Seventeen geese.")
    page.goto("/")
    page.get_by_role("link", name="Documents", exact=True).first.click()
    drawer = page.locator("#drawer")
    name = drawer.get_by_role("link", name="The handbook of the lighthouse keeper.txt")
    expect(name).to_be_visible()
    lines = name.evaluate("one => one.getClientRects().length")
    assert lines <= 2
    width = drawer.locator(".documents").evaluate("one => one.clientWidth / one.parentElement.clientWidth")
    assert width > 0.95


def test_letters_of_twice_the_size_fit_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/documents", "/settings?filter=history", "/deleted"):
        page.goto(path)
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        beyond = page.locator("main").evaluate("(main) => main.scrollWidth - main.clientWidth")
        assert beyond <= 0, path
    page.get_by_role("button", name="Menu").click()
    last = page.get_by_role("button", name="Keyboard shortcuts").bounding_box()
    sidebar = page.locator("#sidebar").bounding_box()
    assert last is not None
    assert sidebar is not None
    assert last["x"] + last["width"] <= sidebar["width"]
