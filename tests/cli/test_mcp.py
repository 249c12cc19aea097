"""The Model Context Protocol over standard input and output."""

import json
import os
import sys
from typing import Any

import pytest

from tests.cli.shell import Shell, queue
from tests.testkit.event_loop import run_apart
from tests.testkit.stub_model import Reply, StubModel


def test_each_line_is_answered_with_a_line(shell: Shell, stub: StubModel) -> None:
    stub.default = Reply("Because.")
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": {"question": "Why?"}}},
    ]
    typed = "\n".join(["", *(json.dumps({"jsonrpc": "2.0"} | message) for message in messages), "{", ""])
    ended = shell("mcp", typed=typed)
    assert ended.exit_code == 0
    replies = {reply["id"]: reply for reply in map(json.loads, ended.stdout.splitlines())}
    assert set(replies) == {1, 2, None}
    assert replies[2]["result"]["content"][0]["text"] == "Because."
    assert replies[None]["error"]["code"] == -32700


def test_a_call_waits_until_what_is_queued_is_read(shell: Shell) -> None:
    queue(shell, "The goose hisses.", "geese.txt")
    arguments = {"name": "search_documents", "arguments": {"query": "goose"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
    ended = shell("mcp", typed=json.dumps(call) + "\n")
    assert "The goose hisses." in json.loads(ended.stdout)["result"]["content"][0]["text"]
    assert "Reading 1 document first." in ended.stderr


@pytest.mark.long  # Over HTTP the client of the SDK talks to us every time (web/api/test_mcp.py).
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_of_the_sdk_starts_us(
    shell: Shell, stub: StubModel, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mcp = pytest.importorskip("mcp", reason="pip install -e '.[mcp]'")
    # A client that gave up waiting for our start would speak the older version.
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 60.0)
    stub.default = Reply("Because.")
    seen: dict[str, Any] = {}
    command = ["-m", "rag_assistant", "mcp"]
    started = mcp.StdioServerParameters(command=sys.executable, args=command, env={**os.environ, **shell.environment})

    async def talk() -> None:
        async with mcp.Client(mcp.stdio_client(started, sys.__stderr__), mode=mode) as talking:
            seen["tools"] = [tool.name for tool in (await talking.list_tools()).tools]
            seen["answer"] = await talking.call_tool("ask", {"question": "Why?"})
            seen["version"] = talking.protocol_version

    run_apart(talk)
    assert "ask" in seen["tools"]
    assert seen["answer"].content[0].text == "Because."
    assert seen["version"] == ("2026-07-28" if mode == "auto" else "2025-11-25")
