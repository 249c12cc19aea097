import pytest
from tests.browser.test_accessibility import *  # noqa
from tests.browser.views import VIEWS as ALL
@pytest.mark.settings(**SETTINGS)
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_three(page, server, size):
    page.set_viewport_size(size)
    found = []
    for name in ("description of the API", "documentation", "a page of the documentation", "documents", "conversation"):
        ALL[name](page, server)
        found += [f"{name}: {one}" for one in violations(page, BOTH)]
    assert "\n".join(found) == ""
