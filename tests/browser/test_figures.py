"""A page with a figure: seen by the model, shown in the receipt, and opened from the note where it was not seen."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.shelf import upload
from tests.testkit.pdfs import chart_pdf
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

TEXT = "The keeper counts the geese at the lighthouse every spring; the counts of five years are shown below."
REFUSAL = b'{"error": {"message": "image input is not supported"}}'


def ask(page: Page) -> None:
    page.get_by_label("Your question").fill("What does the chart of the geese at the lighthouse show?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".turn:last-of-type .answer")).not_to_be_empty()
    page.wait_for_function("() => !document.querySelector('.turn[data-followed]')")


def is_picture(page: Page, image: Locator) -> bool:
    return page.request.get(image.get_attribute("src") or "").body().startswith(b"\x89PNG")


@pytest.mark.settings(MODEL_IMAGES="true")
def test_a_figure_is_seen_and_where_it_was_not_its_page_is_one_click_away(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    upload(server, "geese.pdf", chart_pdf("Boats pass. Gulls steal bread.", TEXT))
    stub.default = Reply("About 4,711 geese in the fifth year [1].")
    page.goto("/")
    ask(page)
    sent = stub.requests[-1].messages[-1]["content"]
    assert [one["type"] for one in sent].count("image_url") == 1
    page.goto("/turns/1/receipt")
    assert is_picture(page, page.locator("main img").first)

    stub.replies.append(Reply(status=400, body=REFUSAL))
    page.goto("/")
    ask(page)
    page.get_by_role("link", name="Page 2 of geese.pdf has a figure that was not read.").click()
    whole = page.locator("img[src*='/pages/2']").first
    expect(whole).to_be_visible()
    assert is_picture(page, whole)
