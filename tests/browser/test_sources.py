"""What an answer rests on: numbers and chips that open the passage, its page as a picture, and what was not used."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.holding import Held
from tests.browser.shelf import FACT, upload
from tests.browser.talk import ask
from tests.testkit.pdfs import new_pdf
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

QUESTION = "How many geese does the lighthouse keeper feed?"
PRICES = "# Prices in Europe\n\nA berth costs forty crowns.\n"


def a_pdf() -> bytes:
    pdf = new_pdf()
    pdf.set_font("helvetica", size=12)
    for text in ("Boats pass. " * 100, f"Gulls steal bread.\n\n{FACT}"):
        pdf.add_page()
        pdf.multi_cell(0, text=text)
    return bytes(pdf.output())


@pytest.mark.every_time
def test_a_number_opens_its_passage_and_arrow_keys_lead_to_the_next(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("Forty [1].")
    upload(server, "prices.md", PRICES)
    page.goto("/")
    turn = ask(page, "How many crowns does a berth in Europe cost, and what does the window do?", 1)
    turn.locator(".answer a").click()
    drawer = page.get_by_role("complementary", name="Details")
    expect(drawer.locator("mark")).to_have_text(["Prices in Europe", "A berth costs forty crowns."])
    expect(drawer.locator("mark#passage")).to_be_in_viewport()
    expect(drawer.locator(".position")).to_have_text(re.compile(r"^Passage 1 of \d · Prices in Europe$"))
    expect(drawer.locator(".source-nav b")).to_have_text("Source 1")
    for size in ((390, 844), (1280, 720)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        following, close = (drawer.locator(part).bounding_box() for part in (".source-nav [rel=next]", ".close"))
        assert following["x"] + following["width"] <= close["x"]  # type: ignore[index]
    page.keyboard.press("ArrowRight")
    expect(drawer.locator(".source-nav b")).to_have_text("Source 2")
    page.keyboard.press("ArrowLeft")
    expect(drawer.locator(".source-nav b")).to_have_text("Source 1")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_pointing_at_a_number_shows_what_it_stands_for(page: Page, server: ServerProcess, stub: StubModel) -> None:
    stub.default = Reply("Forty [1].")
    upload(server, "prices.md", PRICES)
    page.goto("/")
    number = ask(page, "How many crowns does a berth cost?", 1).locator(".answer a")
    number.hover()
    preview = page.get_by_role("tooltip")
    expect(preview).to_contain_text("prices.md")
    expect(preview).to_contain_text("Prices in Europe")
    expect(preview).to_contain_text("A berth costs forty crowns.")
    page.mouse.move(5, 5)
    expect(preview).to_have_count(0)
    number.focus()
    expect(preview).to_be_visible()
    expect(number).to_have_attribute("aria-describedby", "preview")
    page.keyboard.press("Escape")
    expect(preview).to_have_count(0)


def test_the_picture_of_a_page_is_enlarged(page: Page, server: ServerProcess) -> None:
    document = upload(server, "geese.pdf", a_pdf())
    page.goto(f"/documents/{document}?page=2")
    figure = page.locator("main figure.drawn")
    picture = figure.get_by_role("img", name="Page 2 of geese.pdf")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") == 1200
    width = picture.bounding_box()["width"]  # type: ignore[index]
    figure.get_by_role("button", name="Larger").click()
    expect(figure.get_by_role("button", name="Smaller")).to_have_attribute("aria-pressed", "true")
    assert picture.bounding_box()["width"] > 1.2 * width  # type: ignore[index]


# That the picture is of the right part: tests/web/pages/test_document_pictures.py.
def test_a_pdf_shows_the_picture_of_its_page_which_can_be_turned_and_enlarged(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("Seventeen [1].")
    upload(server, "geese.pdf", a_pdf())
    page.goto("/")
    turn = ask(page, QUESTION, 1)
    chip = turn.locator(".cited .chip")
    expect(chip).to_have_text(re.compile(r"^1 geese\.pdf, \d+ \w+ 20\d\d, page 2$"))
    chip.click()
    figure = page.locator("#drawer figure.drawn")
    expect(figure.get_by_role("img", name="Part of page 2 of geese.pdf, passage highlighted")).to_be_visible()
    page.get_by_role("link", name="Whole page").click()
    picture = figure.get_by_role("img", name="Page 2 of geese.pdf, passage highlighted", exact=True)
    expect(picture).to_be_visible()
    expect(page.locator("#drawer")).to_contain_text("Page 2 of 2")
    width = picture.bounding_box()["width"]  # type: ignore[index]
    figure.get_by_role("button", name="Larger").click()
    expect(figure.get_by_role("button", name="Smaller")).to_have_attribute("aria-pressed", "true")
    assert picture.bounding_box()["width"] > 1.8 * width  # type: ignore[index]
    page.get_by_role("link", name="Previous page").click()
    expect(page.locator("#drawer").get_by_role("img", name="Page 1 of geese.pdf", exact=True)).to_be_visible()
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("#drawer").get_by_role("img", name="Page 2 of geese.pdf")).to_be_visible()
    page.get_by_text("Extracted text").click()
    assert page.locator("#drawer mark").evaluate("mark => mark.textContent").strip().endswith(FACT)


def test_it_is_said_that_a_page_is_drawn_and_why_it_cannot_be(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("Seventeen [1].")
    upload(server, "geese.pdf", a_pdf())
    page.goto("/")
    turn = ask(page, QUESTION, 1)
    refusal = '{"error": {"type": "PageNotDrawn", "message": "Page 2 is damaged and cannot be rendered."}}'
    pictures = "**/pages/*.png*"
    page.route(pictures, lambda route: route.fulfill(status=422, content_type="application/json", body=refusal))
    picture = Held(page, pictures)
    turn.locator(".cited .chip").click()
    expect(page.locator("#drawer figure.waiting")).to_contain_text("Loading page 2")
    picture.route.abort()
    expect(page.locator("#drawer figure.broken").get_by_role("alert")).to_have_text(
        "Page 2 is damaged and cannot be rendered."
    )
    expect(page.locator("#drawer mark")).to_be_visible()


def test_what_was_found_and_not_used_is_said_without_contradiction(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("I do not know.")
    upload(server, "geese.txt", FACT)
    page.goto("/")
    turn = ask(page, QUESTION, 1)
    expect(turn.locator(".support")).to_have_text("No sources cited. Passages provided:")
    expect(turn.locator(".chip").first).to_contain_text("geese.txt")
    stub.default = Reply("Seventeen [1].")
    second = ask(page, "How many geese does the keeper feed, and how many turns does the model see?", 2)
    expect(second.locator(".support")).to_have_count(0)
    expect(second.locator(".cited .chip")).to_have_count(1)
    expect(second.locator(".sources summary")).to_have_text(re.compile(r"^\d+ more passages? \(not cited\)$"))


@pytest.mark.parametrize("size", [(390, 844), pytest.param((1280, 800), marks=pytest.mark.long)])
def test_chips_with_long_names_stay_inside_the_page(
    page: Page, server: ServerProcess, stub: StubModel, size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    stub.default = Reply("Seventeen [1].")
    upload(server, f"{'geese' * 40}.txt", FACT)
    page.goto("/")
    turn = ask(page, QUESTION, 1)
    expect(turn.locator(".cited .chip")).to_be_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert turn.evaluate("turn => turn.scrollWidth <= turn.clientWidth")


def test_the_tint_of_a_passage_begins_where_its_heading_does(page: Page, server: ServerProcess) -> None:
    document = upload(server, "prices.md", PRICES)
    page.goto(f"/documents/{document}?start=0&end={len(PRICES)}")
    edges = [page.locator(f"main .document {part}").first.bounding_box() for part in ("h1", "mark")]
    assert len({box["x"] for box in edges if box}) == 1


def test_documents_that_disagree_are_told_with_a_link_to_each(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("30 days or 60 days [1][2].")
    for year, days in ((2023, 30), (2024, 60)):
        upload(
            server, f"returns-{year}.md", f"# Returns\n\nCustomers may return lighthouse lamps within {days} days.\n"
        )
    page.goto("/")
    turn = ask(page, "How many days do customers have to return lighthouse lamps?", 1)
    line = turn.locator(".disagreement")
    told = r"^Your documents disagree: (30|60) days \[1\], (30|60) days \[2\] \(“Customers may return .*”\)\."
    expect(line).to_contain_text(re.compile(told))
    first = re.search(r"\d+ days", line.inner_text())
    line.get_by_role("link", name="[1]").click()
    drawer = page.get_by_role("complementary", name="Details")
    expect(drawer.locator("mark").last).to_contain_text(first[0] if first else "?")
    receipt = turn.locator("a[href$='/receipt']").first.get_attribute("href")
    page.goto(receipt or "/")
    expect(page.locator(".search-facts")).to_contain_text("Disagreement")
