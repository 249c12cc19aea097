"""The date of a document as a person uses it: two versions, the current one first, and a date that is corrected."""

import re

from playwright.sync_api import Page, expect

from tests.browser.shelf import upload
from tests.browser.talk import ask
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

POLICY = "# Refunds\n\n{}\n\nCustomers may return goods within {} days of delivery if the box has not been opened.\n"


def test_what_is_current_comes_first_until_somebody_corrects_its_date(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    upload(server, "refunds-old.md", POLICY.format("Valid from 4 January 2023", 30))
    upload(server, "refunds-new.md", POLICY.format("Valid from 1 June 2024", 60))
    question = "Within how many days may customers currently return goods?"
    stub.replies.append(Reply("Within 60 days [1]."))
    page.goto(server.url)
    turn = ask(page, question, 1)
    expect(turn.locator(".sources .cited")).to_have_text("1 refunds-new.md, 1 Jun 2024")
    expect(turn.locator(".disagreement")).to_have_text(
        re.compile(
            r"^Your documents disagree: 60 days \[1\], 30 days \[2\] \(“Customers may return goods .*”\)\. "
            r"When this was answered, the newest of these dated up to \d+ \w+ 20\d\d said 60 days\.$"
        )
    )
    expect(turn.get_by_text("30 days")).to_have_count(1)

    page.goto(f"{server.url}/documents?sort=-date")
    rows = page.locator("table.library tbody tr")
    expect(rows.locator(".date")).to_have_text(["1 Jun 2024", "4 Jan 2023"])
    row = rows.filter(has_text="refunds-old.md")
    row.locator("summary").click()
    expect(row.get_by_text("From its text", exact=True)).to_be_visible()
    row.get_by_label("Date of the document").fill("2025-02")
    row.get_by_role("button", name="Save").click()
    expect(rows.locator(".date")).to_have_text(["Feb 2025", "1 Jun 2024"])

    stub.replies.append(Reply("Within 30 days [1]."))
    page.goto(server.url)
    turn = ask(page, question, 1)
    expect(turn.locator(".sources .cited")).to_have_text("1 refunds-old.md, Feb 2025")

    page.goto(f"{server.url}/documents?sort=-date")
    row.locator("summary").click()
    expect(row.get_by_text("Set by hand.")).to_be_visible()
    row.get_by_label("Date of the document").fill("")
    row.get_by_role("button", name="Save").click()
    expect(rows.locator(".date")).to_have_text(["1 Jun 2024", "4 Jan 2023"])
