"""A table over chosen documents: written, filled, looked through, asked again, and followed to a source."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, Seen, StubModel


@pytest.mark.every_time
def test_a_table_is_made_filled_and_followed_to_its_sources(page: Page, server: ServerProcess, stub: StubModel) -> None:
    for name, rent in (("north", "1,250"), ("south", "900")):
        server.upload(f"{name}.txt", f"The garden is nice.\n\nThe rent is EUR {rent} a month.\n\nSigned by Anna Berg.")
    server.wait_for_documents()

    def reply(seen: Seen) -> Reply:
        text = str(seen.messages[-1]["content"])
        rent = "EUR 1,250 [1]" if "1,250" in text else "EUR 700 [1]"
        return Reply(rent if "What is the rent" in text else "not found", seconds_before=0.3)

    stub.next_reply = reply  # type: ignore[method-assign, assignment]
    page.goto("/documents")
    for name in ("north.txt", "south.txt"):
        page.get_by_role("row", name=name).get_by_role("checkbox").check()
    page.get_by_role("button", name="Table over these").click()
    expect(page.get_by_text("About 2 documents:")).to_be_in_viewport()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_label("Name", exact=True).fill("Leases")
    page.get_by_label("Question of column 1").fill("What is the rent?")
    page.get_by_label("Heading of column 1").fill("Rent")
    page.get_by_label("Type of column 1").select_option("number")
    page.get_by_label("Question of column 2").fill("Are pets allowed?")
    page.get_by_label("Type of column 2").select_option("yes_no")
    page.get_by_role("button", name="Create table").click()
    expect(page.get_by_text("0 of 4 cells answered.")).to_contain_text("4 requests to the model are left")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("4 of 4 cells answered.")).to_be_visible()
    north = page.get_by_role("row", name="north.txt")
    south = page.get_by_role("row", name="south.txt")
    expect(north).to_contain_text("EUR 1,250")
    expect(north).to_contain_text("not found")
    south.locator("summary").first.click()
    expect(south).to_contain_text("This was not confirmed automatically: check it.")
    page.get_by_label("Rows with").select_option("doubtful")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".grid tbody tr")).to_have_count(1)

    stub.next_reply = lambda _: Reply("EUR 900 [1]")  # type: ignore[method-assign, assignment]
    south.locator("summary").first.click()
    south.get_by_role("button", name="Ask again").click()
    expect(page.get_by_text("No row has this.")).to_be_visible()  # It is no longer doubtful.
    page.get_by_label("Rows with").select_option("")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(south).to_contain_text("EUR 900")
    page.get_by_role("link", name="Rent").click()
    expect(page.locator(".grid tbody th").first).to_have_text("south.txt")
    south.locator("summary").first.click()
    south.get_by_role("link", name="Open the source").click()
    expect(page.locator("mark").first).to_contain_text("The rent is EUR 900 a month.")
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert "EUR 1,250" in Path(download.value.path()).read_text(encoding="utf-8-sig")
