"""The button that signs in with a provider, in a browser: the provider is another site, as it is for everybody."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

from playwright.sync_api import Browser, Page, expect

from rag_assistant.web import create_app
from tests.browser.conftest import MILLISECONDS_TO_WAIT
from tests.testkit.oidc_stub import CLIENT_ID, CLIENT_SECRET, StubProvider
from tests.testkit.people import ACTOR, PASSWORD
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess


@pytest.fixture
def provider() -> Iterator[StubProvider]:
    made = StubProvider()
    made.issuer = made.issuer.replace("127.0.0.1", "localhost")
    yield made
    made.close()


@pytest.fixture
def visitor(chromium: Browser, provider: StubProvider, tmp_path: Path, server_fork: ServerFork) -> Iterator[Page]:
    """A window at a server that knows the provider, where Ann has an account."""
    server = ServerProcess(
        tmp_path, server_fork.launch, OIDC_ISSUER=provider.issuer, OIDC_CLIENT_ID=CLIENT_ID,
        OIDC_CLIENT_SECRET=CLIENT_SECRET, OIDC_LABEL="Stub", OIDC_CREATE_ACCOUNTS="true",
        OIDC_ALLOWED_DOMAINS='["example.org"]',
    )  # fmt: skip
    services = create_app(server.environment).extensions["assistant"]
    services.prepare()
    services.accounts.add("Ann", "admin", ACTOR, PASSWORD)
    services.close()
    server.start("/readyz")
    context = chromium.new_context(base_url=server.url, reduced_motion="reduce")
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    yield context.new_page()
    context.close()
    server.kill()


def test_somebody_signs_in_links_and_signs_out_by_buttons(visitor: Page, provider: StubProvider) -> None:
    zoe = {"sub": "248", "preferred_username": "zoe", "email": "zoe@example.org"}
    button = visitor.get_by_role("link", name="Sign in with Stub")
    provider.user = zoe | {"email_verified": False}
    visitor.goto("/documents")
    button.click()
    expect(visitor.get_by_role("alert")).to_be_visible()
    expect(visitor.get_by_role("heading", name="Sign in")).to_be_visible()

    # The second time it vouches for the address, and she is where she wanted to be.
    provider.user = zoe | {"email_verified": True}
    visitor.goto("/documents")
    button.click()
    foot = visitor.locator(".sidebar-foot")
    expect(foot.get_by_text("zoe", exact=True)).to_be_visible()
    expect(visitor).to_have_url("/documents")
    names = {one.get("name") for one in visitor.context.cookies()} - {"zone"}  # Set a moment after the page is there.
    assert names == {"session"}, "the attempt is forgotten"

    visitor.goto("/account")
    expect(visitor.get_by_text("zoe@example.org")).to_be_visible()
    visitor.get_by_role("button", name="Sign out").click()
    out = visitor.get_by_role("link", name="Sign out of Stub, too")
    assert str(out.get_attribute("href")).startswith(f"{provider.issuer}/logout?")

    # Ann has a password, and links what Zoe does not use any more: another account there.
    provider.user = {"sub": "7", "email": "ann@example.org", "email_verified": True}
    visitor.goto("/account")
    visitor.get_by_label("Name").fill("Ann")
    visitor.get_by_label("Password").fill(PASSWORD)
    visitor.get_by_role("button", name="Sign in").click()
    visitor.get_by_role("button", name="Link an account at Stub").click()
    visitor.get_by_role("link", name="Continue to Stub").click()
    expect(visitor.get_by_text("ann@example.org")).to_be_visible()
    visitor.get_by_role("button", name="Sign out").click()
    visitor.goto("/")
    button.click()
    expect(foot.get_by_text("Ann", exact=True)).to_be_visible()
