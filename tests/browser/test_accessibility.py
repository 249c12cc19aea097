"""axe finds nothing on any view, light or dark, wide or narrow."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.conftest import MILLISECONDS_TO_WAIT
from tests.browser.views import VIEWS, prepare
from tests.server_process import ServerProcess
from tests.stub_model import StubModel


@pytest.mark.settings(RETRIEVAL="agent", MAX_HISTORY_TURNS="2")
@pytest.mark.parametrize(
    ("scheme", "width", "height"), [("light", 1280, 800), ("dark", 1280, 800), ("light", 390, 844)]
)
def test_axe_finds_nothing_on_any_view(
    chromium: Browser,
    server: ServerProcess,
    stub: StubModel,
    scheme: Literal["light", "dark"],
    width: int,
    height: int,
) -> None:
    context = chromium.new_context(
        base_url=server.url,
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        bypass_csp=True,  # axe is put into the page as a script.
    )
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    page = context.new_page()
    prepare(page, stub, server)
    axe = Axe()
    found = {}
    for name, show in VIEWS.items():
        show(page)
        result = axe.run(page)
        if result.violations_count:
            found[name] = [
                f"{one['id']}: {node['html'][:160]} ({node['failureSummary'][:300]})"
                for one in result.response["violations"]
                for node in one["nodes"]
            ]
    context.close()
    assert "\n".join(f"{name}: {one}" for name, some in found.items() for one in some) == ""
