"""The official conformance suite of the Model Context Protocol, run against us with npx.

It knows the revisions with a handshake. Most of its scenarios call tools of a server made for it; those that a server
with our features can serve are served by such tools, over the same messages.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from flask import Flask
from werkzeug.serving import make_server

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed"),
    pytest.mark.timeout(600),
]
SUITE = ("-p", "node@22", "-p", "@modelcontextprotocol/conformance@0.1.16")
OF_ANY_SERVER = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RESOURCE = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."}
TEXT = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_embedded_resource": [{"type": "resource", "resource": RESOURCE}],
    "test_multiple_content_types": [TEXT, IMAGE, {"type": "resource", "resource": RESOURCE}],
    "test_error_handling": [{"type": "text", "text": "This tool intentionally returns an error for testing"}],
}
WITH_ITS_TOOLS = (
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
)


class ToolsOfTheSuite:
    """The tools that the suite calls."""

    def __init__(self, _services: object, _abilities: object) -> None:
        """Need nothing of the application."""

    def listed(self) -> list[dict[str, Any]]:
        return [{"name": name, "description": "A test.", "inputSchema": {"type": "object"}} for name in CONTENT]

    def call(self, name: str, _arguments: Any) -> dict[str, Any]:
        return {"content": CONTENT[name], "isError": name == "test_error_handling"}


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()


def passed(address: str, scenario: str) -> tuple[int, str]:
    """Run a scenario; return how many of its checks passed, and what it says."""
    command = ["npx", "--yes", *SUITE, "conformance", "server", "--url", address, "--scenario", scenario]
    ended = subprocess.run(command, capture_output=True, text=True)
    if "npm error" in ended.stderr:
        pytest.skip("the suite cannot be fetched from npm")
    found = re.search(r"Passed: (\d+)/(\d+), 0 failed", ended.stdout)
    assert found, (scenario, ended.stdout[-3000:])
    assert found[1] == found[2]
    return int(found[1]), ended.stdout


def test_what_it_asks_of_any_server_holds(address: str) -> None:
    assert sum(passed(address, scenario)[0] for scenario in OF_ANY_SERVER) == 5


def test_tools_of_each_kind_of_content_are_passed_on(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.web.mcp.tools.AssistantTools", ToolsOfTheSuite)
    assert sum(passed(address, scenario)[0] for scenario in WITH_ITS_TOOLS) == len(WITH_ITS_TOOLS)
