"""What is sent as a file is never shown as a page, and what stands in settings.json is shown as text."""

import json
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.hostile.payloads import Payload
from tests.browser.hostile.watch import INSPECT, Watch
from tests.testkit.server_process import ServerProcess


@pytest.mark.every_time
@pytest.mark.parametrize(
    ("path", "media_type", "attached"),
    [
        ("/api/conversations/1/export", "text/markdown", True),
        ("/api/conversations/1/export?format=json", "application/json", True),
        ("/turns/1/receipt.sh", "text/plain", False),
        ("/api/turns/1/receipt", "application/json", False),
        ("/api/turns/1", "application/json", False),
    ],
)
def test_a_file_with_hostile_texts_is_no_page(
    hostile_server: ServerProcess, path: str, media_type: str, attached: bool
) -> None:
    with urllib.request.urlopen(hostile_server.url + path) as response:
        assert "script" in response.read().decode()
        assert response.headers["Content-Type"].startswith(media_type)
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers.get("Content-Disposition", "").startswith("attachment") == attached


def test_a_broken_settings_file_is_told_of_in_text(
    page: Page, watch: Watch, server: ServerProcess, own_elements: list[str], corpus: list[Payload]
) -> None:
    written = Path(server.environment["SETTINGS_FILE"])
    for payload in corpus[::300]:
        # The number makes each problem another one, so that the banner of this one can be waited for.
        wrong = {"max_history_turns": f"n{payload.number} {payload.text}"}
        written.write_text(json.dumps(wrong))
        for path in ("/", "/settings"):
            expect_words(page, server.url + path, f"n{payload.number}")
            assert page.evaluate(INSPECT, own_elements) == []
    assert watch.trouble == {}
    assert watch.reports == []


def expect_words(page: Page, address: str, words: str) -> None:
    """Open a page, again and again, until it shows some words."""
    page.goto(address)
    for _ in range(200):
        if page.get_by_text(words).count():
            return
        page.reload()
    expect(page.get_by_text(words).first).to_be_attached()
