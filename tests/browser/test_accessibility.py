"""axe finds nothing on any view, light or dark, wide or narrow."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from testkit.server_process import ServerProcess
from testkit.stub_model import StubModel
from tests.browser.conftest import MILLISECONDS_TO_WAIT
from tests.browser.views import SETTINGS, VIEWS, prepare

# What passes needs no report.
EVERYTHING = {"resultTypes": ["violations"]}
# The theme changes colours and nothing else.
COLOURS = EVERYTHING | {"runOnly": ["color-contrast", "link-in-text-block"]}


def violations(page: Page) -> list[str]:
    """Return what axe finds in the light, and what of the colours it finds in the dark."""
    axe, found = Axe(), []
    for scheme, rules in (("light", EVERYTHING), ("dark", COLOURS)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        result = axe.run(page, options=rules)
        found += [
            f"{scheme}, {one['id']}: {node['html'][:160]} ({node['failureSummary'][:300]})"
            for one in result.response["violations"]
            for node in one["nodes"]
        ]
    return found


@pytest.mark.settings(**SETTINGS)
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_axe_finds_nothing_on_any_view(
    chromium: Browser, server: ServerProcess, stub: StubModel, width: int, height: int
) -> None:
    prepare(stub, server)
    context = chromium.new_context(
        base_url=server.url,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        bypass_csp=True,  # axe is put into the page as a script.
    )
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    page = context.new_page()
    found = []
    for name, show in VIEWS.items():
        show(page, server)
        found += [f"{name}: {one}" for one in violations(page)]
    context.close()
    assert "\n".join(found) == ""
