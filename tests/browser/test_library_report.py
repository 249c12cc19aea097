"""The report on a library: a copy is found, compared, deleted, and what rested on it is named."""

from playwright.sync_api import Page, expect

from tests.browser.shelf import upload
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

TEXT = " ".join(
    f"In year {n} the keeper of lighthouse {n * 7} counted {n * 13} geese beside the harbour." for n in range(40)
)


def test_a_copy_is_found_and_deleted_and_an_answer_that_cited_it_is_named(
    page: Page, server: ServerProcess, stub: StubModel
) -> None:
    upload(server, "geese.txt", TEXT)
    upload(server, "geese-copy.md", f"# Geese\n\n{TEXT}")
    upload(server, "boats.txt", "Boats pass.")
    stub.default = Reply("It counted 13 geese [1].")
    page.goto("/")
    page.get_by_label("Your question").fill("How many geese did the keeper of lighthouse 7 count in year 1?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".turn .answer")).not_to_be_empty()
    page.wait_for_function("() => !document.querySelector('.turn[data-followed]')")
    sources = server.call("GET", "/api/turns/1")[1]["sources"]
    cited = next(one["document"] for one in sources if one["cited"])
    page.goto("/documents")
    page.get_by_role("link", name="Library report").click()
    copies = page.get_by_role("region", name="The same text twice")
    changed = page.get_by_role("region", name="Answers whose sources have changed")
    expect(copies.get_by_role("listitem")).to_contain_text("geese-copy.md")
    expect(changed).to_have_count(0)
    left = [
        page.get_by_text(text).first.evaluate(
            "line => line.getBoundingClientRect().left + parseFloat(getComputedStyle(line).paddingLeft)"
        )
        for text in ("Documents with fewer than", "Only letters and digits")
    ]
    assert left[0] == left[1], "each line is in the column"
    copies.get_by_role("button", name=f"Delete: {cited}").click()
    expect(changed.get_by_role("listitem")).to_contain_text("How many geese did the keeper of lighthouse 7 count")
    expect(copies).to_have_count(0)
    changed.get_by_role("link", name="Ask").click()
    expect(page.get_by_role("textbox").filter(has_text="lighthouse 7").first).to_be_visible()
