"""A note is made of a turn, put in other words, and stands in what the model saw."""

from playwright.sync_api import Page, expect

from tests.browser.talk import ask
from tests.testkit.stub_model import StubModel


def test_a_note_of_a_turn_is_edited_and_seen_in_what_the_model_saw(page: Page, stub: StubModel) -> None:
    page.goto("/")
    first = ask(page, "Iris may not eat nuts.", 1)
    first.locator(".more > summary").click()
    first.get_by_role("link", name="Remember this").click()
    text = page.get_by_label("Remember from turn 1")
    expect(text).to_have_value("Iris may not eat nuts.")
    page.get_by_role("button", name="Remember", exact=True).click()
    notes = page.locator(".notes > li")
    notes.locator(".more > summary").click()
    page.get_by_label("New text").fill("Iris may not eat nuts or sesame.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(notes).to_have_count(2)
    expect(notes.nth(1)).to_contain_text("superseded")

    page.goto("/")
    answered = ask(page, "May Iris eat sesame and nuts?", 1)
    assert "Iris may not eat nuts or sesame." in str(stub.requests[-1].messages[-1]["content"])
    expect(answered.get_by_text("1 note used")).to_be_visible()
    answered.get_by_role("link", name="What the model saw").click()
    expect(page.get_by_text("1 note was sent.")).to_be_visible()
