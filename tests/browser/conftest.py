"""A real Chromium on a real server with a scripted model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Playwright, Request, sync_playwright

from tests.server_process import ServerProcess
from tests.stub_model import StubModel

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "settings(**environment): what the server of a test is told by its environment")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    if not CHROMIUM.exists():
        pytest.skip("no Chromium: apt-get install chromium")
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def chromium_without_scripts(playwright: Playwright) -> Iterator[Browser]:
    """A browser whose parser knows that there are no scripts, so that it reads what is meant for this case."""
    browser = playwright.chromium.launch(
        executable_path=CHROMIUM, args=[*FLAGS, "--blink-settings=scriptEnabled=false"]
    )
    yield browser
    browser.close()


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path, stub: StubModel) -> Iterator[ServerProcess]:
    """A server; the marker ``settings`` gives it further variables of the environment."""
    marker = request.node.get_closest_marker("settings")
    more = marker.kwargs if marker else {}
    made = ServerProcess(tmp_path, OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model", FOLLOW_UPS="words", **more)
    made.start("/readyz")
    yield made
    made.kill()


@pytest.fixture
def context(chromium: Browser, server: ServerProcess) -> Iterator[BrowserContext]:
    """A fresh browser that notes every request to another place and every script that runs where it must not."""
    made = chromium.new_context(base_url=server.url)
    made.set_default_timeout(10_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, server: ServerProcess) -> Iterator[Page]:
    opened = context.new_page()
    trouble: list[str] = []

    def note_request(sent: Request) -> None:
        if not sent.url.startswith(server.url):
            trouble.append(f"request: {sent.url}")

    def note_dialog(dialog: Dialog) -> None:
        trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    opened.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    opened.on("dialog", note_dialog)
    opened.on("request", note_request)
    yield opened
    assert trouble == []
