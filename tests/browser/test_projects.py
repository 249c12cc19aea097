"""Projects in two windows: made, asked in, shared, moved into; and conversations that are selected together."""

from playwright.sync_api import Page, expect

from tests.browser.talk import ask, options
from tests.browser.test_accessibility import EVERYTHING, violations
from tests.browser.test_people import make_accounts, other, sign_in_without_form
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel

__all__ = ["other"]


def test_two_people_work_in_a_shared_project(page: Page, other: Page, server: ServerProcess, stub: StubModel) -> None:
    make_accounts(server, "Ben")
    sign_in_without_form(page, server, "Ann")
    page.get_by_role("link", name="Projects").click()
    page.get_by_text("New project").click()
    page.get_by_label("Name").fill("Harbour")
    page.get_by_role("button", name="Create project").click()
    page.get_by_text("Project settings").click()
    page.get_by_label("Instructions").fill("Speak of boats.")
    page.get_by_label("How many earlier turns").fill("1")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("Share", exact=True).click()
    page.get_by_label("Share with").fill("Ben")
    page.locator(".sharing").get_by_role("button", name="Save").click()
    expect(page.locator(".sharing").get_by_label("Ben")).to_have_value("read")
    assert violations(page, {"light": EVERYTHING}) == []

    sign_in_without_form(other, server, "Ben")
    other.locator("#conversations").get_by_role("link", name="Harbour").click()
    expect(other.get_by_text("This project belongs to Ann.")).to_be_visible()
    other.locator("#main").get_by_role("link", name="New conversation").click()
    expect(other.get_by_text("New conversation in Harbour")).to_be_visible()
    other.go_back()
    other.locator("#main").get_by_label("Your question").fill("What floats?")
    other.locator("#main").get_by_role("button", name="Ask").click()
    other.locator("#turn-1.completed").wait_for()
    assert "Speak of boats." in stub.requests[-1].body["messages"][0]["content"]
    expect(other.locator("#conversation-header").get_by_role("link", name="Harbour")).to_be_visible()
    expect(other.locator(".group", has_text="Harbour").get_by_text("What floats?")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No conversations yet.")).to_be_visible()

    other.goto("/")
    ask(other, "What sinks?", 1)
    options(other).get_by_label("Project").select_option("Harbour")
    options(other).get_by_role("button", name="Move").click()
    expect(other.locator(".group", has_text="Harbour").locator(".conversation")).to_have_count(2)

    other.get_by_role("link", name="Select", exact=True).click()
    main = other.locator("#main")
    for title in ("What floats?", "What sinks?"):
        main.get_by_label(f"Select {title}").check()
    assert violations(other, {"light": EVERYTHING}) == []
    main.get_by_role("button", name="Delete").click()
    expect(main.get_by_text("2 conversations deleted.")).to_be_visible()
    main.get_by_role("button", name="Undo").click()
    expect(main.get_by_label("Select What floats?")).to_be_visible()


def test_files_chosen_on_a_projects_page_are_its_documents(page: Page, server: ServerProcess) -> None:
    first = server.upload("lamp.txt", "The lamp is lit before sunset.")
    server.call("POST", "/api/projects", {"name": "Tower", "document_ids": [first]})
    page.goto("/projects/1")
    file = {"name": "bell.txt", "mimeType": "text/plain", "buffer": b"The keeper rings the bell twice."}
    page.get_by_label("Add documents").set_input_files([file])  # type: ignore[arg-type]
    expect(page.locator(".project-page .plain-list a")).to_have_text(["lamp.txt", "bell.txt"])
    page.get_by_label("Your question").fill("Who rings the bell?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#turn-1")).to_be_visible()
    assert len(server.call("GET", "/api/projects/1")[1]["scope"]["document_ids"]) == 2


def test_an_answer_that_nobody_saw_is_marked_in_the_list_until_it_is_opened(page: Page) -> None:
    page.goto("/")
    response = page.request.post("/ask", form={"question": "Left alone?"}, max_redirects=0)
    assert response.status == 303
    conversation = response.headers["location"].split("#")[0]
    page.request.get(f"/api{conversation}/turns")
    dot = page.locator("#conversations .unread")
    for _ in range(100):
        page.goto("/")
        if dot.count():
            break
    dot.locator("..").click()
    page.wait_for_url(f"**{conversation}")
    expect(dot).to_have_count(0)
