"""The page as an app: it can be installed, and where the server cannot be reached, a page of ours says so."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess


@pytest.fixture
def own_server(tmp_path: Path, server_fork: ServerFork) -> ServerProcess:
    """A server that a test may end."""
    server = ServerProcess(tmp_path, server_fork.launch)
    server.start()
    return server


@pytest.mark.every_time
def test_a_page_of_ours_is_shown_while_the_server_is_away_and_keeps_nothing_else(
    own_server: ServerProcess, chromium: Browser
) -> None:
    context = chromium.new_context(base_url=own_server.url)
    page = context.new_page()
    page.goto("/")
    page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    kept = page.evaluate(
        "async () => (await (await caches.open('offline')).keys()).map((one) => new URL(one.url).pathname)"
    )
    assert kept == ["/offline"]
    page.reload()
    own_server.kill()
    page.goto("/documents")
    expect(page.get_by_role("heading")).to_have_text("The assistant cannot be reached")
    expect(page.get_by_role("link", name="Try again")).to_have_attribute("href", "/")
    context.close()


@pytest.mark.every_time
@pytest.mark.shared
def test_what_a_browser_asks_for_an_app_is_there(page: Page) -> None:
    page.goto("/")
    found = page.context.new_cdp_session(page).send("Page.getAppManifest")
    assert found["errors"] == []
    assert '"display": "standalone"' in found["data"].replace('":"', '": "')
