"""axe finds nothing on any view, light or dark, wide or narrow."""

from collections.abc import Iterator, Mapping

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import MILLISECONDS_TO_WAIT
from tests.browser.talk import ask_many
from tests.browser.views import SETTINGS, VIEWS, prepare
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import StubModel

# What passes needs no report. Targets of 24 px and more (WCAG 2.2, 2.5.8) axe looks for on request only.
EVERYTHING = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
# The theme changes colours and nothing else.
COLOURS = {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]}


Look = Mapping[str, Mapping[str, object]]
BOTH: Look = {"light": EVERYTHING, "dark": COLOURS}
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 390, "height": 844}


def violations(page: Page, looks: Look) -> list[str]:
    """Return what axe finds by the rules of each colour scheme."""
    axe, found = Axe(), []
    for scheme, rules in looks.items():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        result = axe.run(page, options=rules)
        found += [
            f"{scheme}, {one['id']}: {node['html'][:160]} ({node['failureSummary'][:300]})"
            for one in result.response["violations"]
            for node in one["nodes"]
            # What lies half below the composer is scrolled out from there.
            if "partially obscured" not in node["failureSummary"]
        ]
    return found


@pytest.fixture
def page(chromium: Browser, server: ServerProcess) -> Iterator[Page]:
    # axe is put into the page as a script.
    context = chromium.new_context(base_url=server.url, reduced_motion="reduce", bypass_csp=True)
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    yield context.new_page()
    context.close()


@pytest.mark.every_time
@pytest.mark.shared
def test_axe_finds_nothing_on_a_conversation(page: Page) -> None:
    ask_many(page, 1)
    expect(page.locator("html.scripted")).to_be_attached()
    assert violations(page, {"light": EVERYTHING}) == []


@pytest.mark.timeout(600)
@pytest.mark.settings(**SETTINGS)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_axe_finds_nothing_on_any_view_in_any_look(
    page: Page, server: ServerProcess, stub: StubModel, size: ViewportSize
) -> None:
    prepare(stub, server)
    page.set_viewport_size(size)
    found = []
    for name, show in VIEWS.items():
        show(page, server)
        found += [f"{name}: {one}" for one in violations(page, BOTH)]
    assert "\n".join(found) == ""
