"""Tools of other programs in agent mode, from real servers of the SDK."""

import json
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.answering.remote_tools import MAX_ASKED_CHARS
from rag_assistant.records.errors import SettingsError, ToolFailed
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import application, ask, served_before, until

# To load it takes a second, in each of the processes that tests run in.
pytestmark = [
    pytest.mark.skipif(find_spec("mcp") is None, reason="pip install -e '.[mcp]'"),
    pytest.mark.settings(RETRIEVAL_MODE="agent"),
]
PROJECT = Path(__file__).resolve().parents[3]


def command(file: Path) -> list[str]:
    code = f"import runpy, sys; sys.path.insert(0, {str(PROJECT)!r}); runpy.run_module('tests.testkit.tool_server', "
    return [sys.executable, "-c", code + "run_name='__main__', alter_sys=True)", "stdio", str(file)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the application and the tool server keep what they keep."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture
def kept(folder: Path) -> Iterator[Path]:
    """Where the tool server keeps what it is told to keep."""
    yield folder / "kept.txt"
    (folder / "kept.txt").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def model() -> Iterator[StubModel]:
    """The model of the application."""
    made = StubModel()
    yield made
    made.close()


@pytest.fixture
def stub(model: StubModel) -> Iterator[StubModel]:
    yield model
    model.replies.clear()
    model.requests.clear()


@pytest.fixture(scope="module")
def talking(folder: Path, migrated: Path, model: StubModel) -> Iterator[Flask]:
    """An application with the tools of a server, which takes a second to start."""
    servers = {"test": command(folder / "kept.txt")}
    more = {"RETRIEVAL_MODE": "agent", "MCP_SERVERS": json.dumps(servers)}
    with application(folder, served_before(migrated), model, **more) as made:
        yield made


@pytest.fixture
def app(talking: Flask) -> Flask:
    """The application, in which each test has a conversation of its own."""
    services: Services = talking.extensions["assistant"]
    until(lambda: services.remote_tools.has("test__add"))
    return talking


def call(name: str, **arguments: Any) -> Reply:
    return Reply(tool_calls=[{"id": "c1", "name": name, "arguments": arguments}])


def test_a_read_only_tool_is_called_and_shown_like_ours(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([call("test__add", a=2, b=3), Reply("Five.")])
    answer = ask(client, "What is two and three?")
    offered = {tool["function"]["name"]: tool["function"] for tool in stub.requests[0].body["tools"]}
    assert {"search_documents", "test__add", "test__keep"} <= set(offered)
    assert offered["test__add"]["description"] == "Add two numbers. (A tool of test.)"
    assert set(offered["test__add"]["parameters"]["properties"]) == {"a", "b"}
    step = answer["steps"][0]
    assert (step["tool"], step["result"]) == ("test__add", "The sum is 5.")
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert receipt["request"]["messages"][-1]["content"] == "The sum is 5."


def test_a_command_gets_none_of_our_keys(
    environment: dict[str, str], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never")
    program = ["sh", "-c", f"env > {kept}"]
    made = create_app(environment | {"MCP_SERVERS": json.dumps({"noting": program})})
    services: Services = made.extensions["assistant"]
    services.start()
    try:
        until(lambda: "PATH=" in (kept.read_text() if kept.exists() else ""))
    finally:
        services.close()
    assert "never" not in kept.read_text()


def test_what_may_change_something_needs_a_yes(client: FlaskClient, stub: StubModel, kept: Path) -> None:
    stub.replies.append(call("test__keep", text="a `note`"))
    asked = ask(client, "Keep a note.")
    assert asked["waiting"]
    assert asked["answer"] == """Call `keep` of `test` with `{"text": "a 'note'"}`?"""
    assert not kept.exists()
    page = client.get(f"/conversations/{asked['conversation_id']}", headers={"Accept": "text/html"}).text
    assert "Yes, run it" in page
    done = ask(client, "yes", conversation_id=asked["conversation_id"])
    assert done["answer"] == "`test__keep` was called and returned:\n\nKept 8 characters."
    assert kept.read_text() == "a `note`"


@pytest.mark.long
def test_after_a_no_nothing_is_called(client: FlaskClient, stub: StubModel, kept: Path) -> None:
    stub.replies.append(call("test__keep", text="a note"))
    asked = ask(client, "Keep a note.")
    assert ask(client, "no", conversation_id=asked["conversation_id"])["answer"] == "Nothing was done."
    assert not kept.exists()


def test_what_goes_wrong_is_a_result(client: FlaskClient, services: Services, stub: StubModel) -> None:
    stub.replies.extend(
        [
            call("test__fail"),
            call("test__large"),
            call("test__add", a="no number"),
            call("test__keep", text="x" * MAX_ASKED_CHARS),
            call("test__nothing"),
            Reply("That went wrong."),
        ]
    )
    results = [step["result"] for step in ask(client)["steps"]]
    assert results[0].startswith("Error: ")
    assert "The tool's own reason." in results[0]
    assert results[1].endswith("[Cut: these are 8000 of 20000 characters.]")
    assert results[2].startswith("Error: ")
    assert "a person is asked about 2000" in results[3]
    assert 'There is no tool "test__nothing"' in results[4]
    assert "test__add" in results[4]


@pytest.mark.long
def test_a_server_that_dies_or_is_late_is_connected_again(
    client: FlaskClient, services: Services, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.replies.extend([call("test__die"), call("test__add", a=1, b=1), Reply("Two.")])
    results = [step["result"] for step in ask(client)["steps"]]
    assert results == ["Error: The tool server test could not be reached, or broke off.", "The sum is 2."]
    monkeypatch.setattr("rag_assistant.llm.tool_servers.connection.CALL_TIMEOUT_SECONDS", 0.5)
    stub.replies.extend([call("test__slow", seconds=5), Reply("Too late.")])
    results = [step["result"] for step in ask(client)["steps"]]
    assert results == ["Error: The tool server test did not answer within 0.5 seconds."]


@pytest.fixture
def address(kept: Path) -> Iterator[str]:
    import uvicorn

    from tests.testkit.tool_server import tool_server

    app = tool_server(kept).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join()


def test_a_server_over_http_is_listed_and_called(address: str) -> None:
    from rag_assistant.llm.tool_servers.connection import ToolServer

    server = ToolServer("remote", address)
    tools = {tool.name: tool for tool in server.tools()}
    assert (tools["add"].read_only, tools["keep"].read_only) == (True, False)
    assert server.call("add", {"a": 20, "b": 22}) == "The sum is 42."
    with pytest.raises(ToolFailed, match="own reason"):
        server.call("fail", {})
    server.close()


@pytest.mark.long
@pytest.mark.parametrize("is_command", [True, False])
def test_a_result_that_is_too_large_ends_the_connection_alone(
    is_command: bool, kept: Path, request: pytest.FixtureRequest
) -> None:
    from rag_assistant.llm.tool_servers.connection import MAX_MESSAGE_BYTES, ToolServer

    server = ToolServer("large", command(kept) if is_command else request.getfixturevalue("address"))
    with pytest.raises(ToolFailed, match="could not be reached, or broke off"):
        server.call("large", {"characters": MAX_MESSAGE_BYTES})
    assert server.call("add", {"a": 20, "b": 22}) == "The sum is 42."
    server.close()


@pytest.mark.parametrize("where", ["http://127.0.0.1:9/mcp", ["no-such-program"], [sys.executable, "-c", "pass"]])
def test_a_server_that_is_not_there_is_named(where: Any) -> None:
    from rag_assistant.llm.tool_servers.connection import ToolServer

    with pytest.raises(ToolFailed, match=r"The tool server away could not be reached, or broke off\."):
        ToolServer("away", where).tools()


@pytest.mark.long  # The SDK waits ten seconds for the end of the program.
def test_a_program_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_assistant.llm.tool_servers.connection import ToolServer

    monkeypatch.setattr("rag_assistant.llm.tool_servers.connection.CONNECT_TIMEOUT_SECONDS", 0.5)
    silent = ToolServer("silent", [sys.executable, "-c", "import time; time.sleep(100)"])
    with pytest.raises(ToolFailed, match="The tool server silent"):
        silent.tools()


def test_nobody_waits_without_end_for_the_connection_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_assistant.llm.tool_servers.connection import ToolServer

    monkeypatch.setattr("rag_assistant.llm.tool_servers.connection.CONNECT_TIMEOUT_SECONDS", 0.05)
    server = ToolServer("slow", "http://127.0.0.1:9/mcp")
    with server._lock, pytest.raises(ToolFailed, match="The tool server slow did not begin in time"):
        server.tools()


@pytest.mark.parametrize("servers", ['{"a b": "http://x"}', '{"a": "ftp://x"}', '{"a": []}', "[]", '{"a": 1}'])
def test_a_wrong_server_is_refused_with_what_is_allowed(environment: dict[str, str], servers: str) -> None:
    with pytest.raises(SettingsError, match="The environment variable MCP_SERVERS: mcp_servers has a value that is no"):
        create_app(environment | {"MCP_SERVERS": servers})


@pytest.mark.long
def test_without_the_extra_the_start_says_what_to_install(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "rag_assistant.llm.tool_servers.connection", raising=False)
    with pytest.raises(SettingsError, match=r"pip install -e '\.\[mcp\]'"):
        create_app(environment | {"MCP_SERVERS": '{"test": "http://127.0.0.1:9/mcp"}'})
