"""Two people and an administrator's page, in two windows: signing in, sharing, and being let in no more."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import APIRequestContext, Browser, FilePayload, Page, Playwright, expect

from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.browser.conftest import MILLISECONDS_TO_WAIT
from tests.browser.talk import ask, say
from tests.browser.test_accessibility import EVERYTHING, violations
from tests.testkit.people import ACTOR, PASSWORD, add_person, quick_passwords
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel


def make_accounts(server: ServerProcess, *members: str) -> None:
    """Make the accounts of Ann, who is an administrator, and of others, as the command line does beside the server."""
    services: Services = create_app(server.environment).extensions["assistant"]
    with quick_passwords():
        services.accounts.add("Ann", "admin", ACTOR, PASSWORD)
        for name in members:
            add_person(services, name)
    services.close()
    time.sleep(1.1)


def sign_in(page: Page, name: str) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".sidebar-foot").get_by_text(name, exact=True)).to_be_visible()


def send_sign_in(request: APIRequestContext, server: ServerProcess, name: str) -> None:
    """Send what the form of the sign-in sends."""
    sent = request.post("/login", form={"name": name, "password": PASSWORD}, headers={"Origin": server.url})
    assert sent.ok, sent.text()


def sign_in_without_form(page: Page, server: ServerProcess, name: str) -> None:
    """Sign in as the form does, in half the time."""
    send_sign_in(page.request, server, name)
    page.goto("/")
    expect(page.locator(".sidebar-foot").get_by_text(name, exact=True)).to_be_visible()


@pytest.fixture
def other(chromium: Browser, server: ServerProcess) -> Iterator[Page]:
    """A window of somebody else; axe may be put into it."""
    context = chromium.new_context(base_url=server.url, bypass_csp=True, reduced_motion="reduce")
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    yield context.new_page()
    context.close()


def test_whoever_is_signed_out_elsewhere_in_the_middle_of_an_answer_is_led_to_sign_in(
    page: Page, playwright: Playwright, server: ServerProcess, stub: StubModel
) -> None:
    make_accounts(server)
    sign_in(page, "Ann")
    stub.default = Reply("word " * 600, seconds_between=0.2)  # For longer than the browser is waited for.
    say(page, "Slow?")
    expect(page.locator("#turn-1")).to_contain_text("word word")
    elsewhere = playwright.request.new_context(base_url=server.url)
    send_sign_in(elsewhere, server, "Ann")
    assert elsewhere.post("/account/sessions/end", headers={"Origin": server.url}).ok
    elsewhere.dispose()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.own_window
def test_two_people_share_a_library_and_one_is_let_in_no_more(
    page: Page, other: Page, server: ServerProcess, stub: StubModel
) -> None:
    make_accounts(server)
    sign_in(page, "Ann")
    page.get_by_role("link", name="People").click()
    page.get_by_text("Add a person").click()
    page.get_by_label("Name", exact=True).fill("Ben")
    page.get_by_role("button", name="Create account and link").click()
    link = page.locator(".banner code").inner_text()
    page.locator(".banner").get_by_role("button", name="Copy").click()
    expect(page.locator(".banner").get_by_role("button", name="Copied")).to_be_visible()
    assert violations_of(other, server, "/login") == []
    other.goto(link)
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Set password").click()
    expect(other.locator(".sidebar-foot").get_by_text("Ben", exact=True)).to_be_visible()
    expect(other.get_by_role("link", name="People")).to_have_count(0)

    # Nothing is shared until that is said.
    other.goto("/documents")
    expect(other.locator("tbody tr")).to_have_count(0)
    page.goto("/libraries")
    page.locator(".cards summary").filter(has_text="Share").first.click()
    page.get_by_label("Everyone here").first.select_option("read")
    page.locator(".sharing").first.get_by_role("button", name="Save").click()
    other.goto("/libraries")
    expect(other.get_by_text(re.compile("owned by Ann · you can read"))).to_be_visible()

    for path in ("/account", "/libraries"):
        assert violations_of(other, server, path) == [], path

    # Ben's answer is being written when Ann lets him in no more.
    other.goto("/")
    stub.replies.append(Reply("word " * 600, seconds_between=0.2))  # For longer than the browser is waited for.
    say(other, "Slow?")
    expect(other.locator("#turn-1")).to_contain_text("word word")
    page.goto("/people")
    page.get_by_label("More actions for Ben").click()
    page.get_by_role("button", name="Disable").click()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()


# Each part without a browser: tests/web/accounts, tests/web/pages/test_shared.py, tests/web/api/test_libraries.py.
@pytest.mark.own_window
def test_what_two_people_and_an_administrator_share_ends_when_they_say_so(
    page: Page, other: Page, server: ServerProcess, stub: StubModel
) -> None:
    make_accounts(server, "Ben", "Cat")

    # Ben keeps a document for himself until he shares its library with Cat.
    sign_in(page, "Ben")
    sign_in_without_form(other, server, "Cat")
    file = FilePayload(name="heron.txt", mimeType="text/plain", buffer=b"The heron hisses at dawn.")
    added = page.request.post("/api/documents", multipart={"file": file}, headers={"Origin": server.url})
    assert added.status == 202, added.text()
    page.goto("/documents")
    expect(page.locator("tbody tr").filter(has_text="heron.txt")).to_contain_text("ready")
    stub.default = Reply("Nobody knows.")
    expect(ask(other, "When does the heron hiss?", 1)).not_to_contain_text("heron.txt")
    page.goto("/libraries")
    page.locator(".cards summary").filter(has_text="Share").click()
    page.get_by_label("Share with").fill("Cat")
    page.locator(".sharing").get_by_role("button", name="Save").click()
    expect(page.locator(".cards li").filter(has_text="1 document · shared with Cat")).to_be_visible()
    stub.default = Reply("At dawn [1].")
    expect(ask(other, "When does the heron hiss?", 2)).to_contain_text("heron.txt")

    # A conversation is read by a link, and no more once that is revoked.
    page.goto("/")
    ask(page, "When does the heron hiss?", 1)
    page.locator("#conversation-header").get_by_role("link", name="Share").click()
    page.get_by_label("Share with").fill("Cat")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Cat")).to_have_value("sources")
    other.goto("/")
    other.get_by_role("link", name="Shared with you").click()
    other.get_by_role("link", name="When does the heron hiss?").last.click()
    expect(other.get_by_text("Shared by Ben, read-only.")).to_be_visible()
    page.get_by_label("Cat").select_option("")
    page.get_by_label("Everyone here with a new link").select_option("read")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Cat")).to_have_count(0)
    link = page.locator(".banner code").inner_text()
    other.goto(link)
    expect(other.get_by_text("At dawn")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label(re.compile("Everyone here with link")).select_option(label="no access")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label(re.compile("Everyone here with link"))).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 720})
    missing = other.goto(link)
    assert missing is not None
    assert missing.status == 404
    expect(other.get_by_text("At dawn")).to_have_count(0)

    # A token does what it says, and nothing else.
    page.goto("/account")
    page.get_by_label("Name").fill("reader")
    page.get_by_label("ask", exact=True).uncheck()
    page.get_by_role("button", name="Create token").click()
    bearer = {"Authorization": f"Bearer {page.locator('.banner code').inner_text()}"}
    program = page.context.browser.new_context(base_url=server.url, extra_http_headers=bearer).request  # type: ignore[union-attr]
    assert program.get("/api/conversations").status == 200
    assert program.post("/api/query", data={"question": "Why?"}).status == 403
    assert program.delete(f"/api/documents/{added.json()['document_id']}").status == 403
    assert program.get("/people").status == 403
    program.dispose()

    # Cat's window is written to when she ends its session from another one; the administrator sees none of it all.
    page.goto("/account")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in_without_form(page, server, "Cat")
    other.goto("/")
    stub.replies.append(Reply("word " * 600, seconds_between=0.2))  # For longer than the browser is waited for.
    say(other, "Slow?")
    expect(other.locator("#turn-1")).to_contain_text("word word")
    page.goto("/account")
    page.get_by_role("button", name="End session").click()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in_without_form(page, server, "Ann")
    expect(page.locator(".sidebar").get_by_text("heron")).to_have_count(0)
    page.goto("/documents")
    expect(page.locator("tbody tr").filter(has_text="heron.txt")).to_have_count(0)


def violations_of(page: Page, server: ServerProcess, path: str) -> list[str]:
    page.goto(path)
    return violations(page, {"light": EVERYTHING})
