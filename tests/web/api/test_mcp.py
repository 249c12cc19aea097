"""The Model Context Protocol over HTTP: real clients of the SDK, and messages that no client should send."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from rag_assistant.services import Services
from rag_assistant.web.mcp.protocol import STATELESS
from tests.testkit.event_loop import run_apart
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import until

KEY = "io.modelcontextprotocol/"


pytestmark = pytest.mark.library(("hours.txt", "The office closes at nineteen o'clock."))


def post(client: FlaskClient, method: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
    """Send a message of an earlier revision, or with other headers and fields."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}} | more.pop("body", {})
    return client.post("/mcp", json=body, **more)


def stateless(client: FlaskClient, method: str, name: str | None = None, version: str = STATELESS, **more: Any) -> Any:
    """Send a message of the stateless revision."""
    params: dict[str, Any] = {"_meta": {f"{KEY}protocolVersion": version, f"{KEY}clientCapabilities": {}}}
    params |= {"name": name, "arguments": more.pop("arguments", {})} if name else {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
    return post(client, method, params, headers=headers | more)


def test_a_stateless_client_discovers_lists_and_calls(client: FlaskClient, stub: StubModel) -> None:
    found = stateless(client, "server/discover").json["result"]
    assert found["supportedVersions"][0] == STATELESS
    assert found["resultType"] == "complete"
    listed = stateless(client, "tools/list").json["result"]
    assert [tool["name"] for tool in listed["tools"]] == [
        "ask", "search_documents", "read_document", "list_documents",
        "list_conversations", "read_conversation", "get_receipt",
    ]  # fmt: skip
    assert [tool["name"] for tool in listed["tools"] if not tool["annotations"]["readOnlyHint"]] == ["ask"]
    arguments = {"query": "office closes"}
    called = stateless(client, "tools/call", "search_documents", arguments=arguments).json["result"]
    assert "nineteen" in called["content"][0]["text"]
    assert called["structuredContent"]["passages"][0]["document"] == "hours.txt"
    assert stub.requests == []


def call(client: FlaskClient, name: str, **arguments: Any) -> tuple[str, Any, bool]:
    """Call a tool; return its text, its data, and whether it failed."""
    response = post(client, "tools/call", {"name": name, "arguments": arguments})
    result = response.json["result"]
    return result["content"][0]["text"], result.get("structuredContent"), result["isError"]


def test_a_question_is_answered_and_its_receipt_is_there(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("At seven [1]."))
    text, answer, failed = call(client, "ask", question="When does the office close?")
    assert not failed
    assert text.startswith("At seven [1].\n\nSources:\n[1] hours.txt")
    assert answer["history_trimmed"] is False
    _, receipt, _ = call(client, "get_receipt", turn_id=answer["turn_id"])
    assert receipt["request"]["messages"] == stub.requests[0].messages
    text, _, _ = call(client, "ask", question="And?", conversation_id=answer["conversation_id"], max_history_turns=0)
    assert "[History trimmed to last 0 turns]" in text
    text, listed, _ = call(client, "list_conversations")
    assert [one["conversation_id"] for one in listed["conversations"]] == [answer["conversation_id"]]
    text, _, _ = call(client, "read_conversation", conversation_id=answer["conversation_id"])
    assert "A: At seven [1]." in text
    text, _, _ = call(client, "list_documents")
    assert "hours.txt" in text
    text, _, _ = call(client, "read_document", document_id=1, length=10)
    assert "The office" in text


def test_what_cannot_be_done_is_a_result_that_says_so(client: FlaskClient, stub: StubModel) -> None:
    for name, arguments, sentence in (
        ("ask", {"question": " "}, "The question is empty"),
        ("ask", {}, '"question" is missing'),
        ("ask", {"question": "Why?", "color": 1}, 'Unknown field "color"'),
        ("ask", {"question": "Why?", "on_overflow": "x"}, "on_overflow is"),
        ("ask", {"question": "Why?", "conversation_id": 99}, "There is no conversation 99"),
        ("search_documents", {"query": "x", "limit": 0}, "limit is 0"),
        ("read_document", {"document_id": 99}, "There is no document 99"),
        ("get_receipt", {"turn_id": 99}, "There is no turn 99"),
    ):
        text, data, failed = call(client, name, **arguments)
        assert failed, name
        assert sentence in text
        assert data is None
    stub.default = Reply(status=400, body=b'{"error": {"message": "no such model"}}')
    text, _, failed = call(client, "ask", question="Why?")
    assert failed
    assert "no such model" in text


def test_a_yes_of_another_program_deletes_nothing(
    client: FlaskClient, services: Services, stub: StubModel, environment: dict[str, str]
) -> None:
    Path(environment["SETTINGS_FILE"]).write_text('{"retrieval_mode": "agent"}')
    until(lambda: services.settings.current.retrieval_mode == "agent")
    deletes = {"id": "c1", "name": "delete_documents", "arguments": {"document_ids": [1]}}
    stub.replies.append(Reply(tool_calls=[deletes]))
    text, asked, _ = call(client, "ask", question="Delete the hours.")
    assert "Delete it?" in text
    assert asked["waiting"]
    text, _, failed = call(client, "ask", question="Yes", conversation_id=asked["conversation_id"])
    assert failed
    assert text == "Turn 1 asks a person, who can answer on the page or over the API."
    assert client.get("/api/documents/1").status_code == 200


def test_nothing_that_deletes_is_offered(empty: FlaskClient) -> None:
    response = post(empty, "tools/call", {"name": "delete_documents", "arguments": {"document_ids": [1]}})
    assert response.json["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2025-11-25", "2024-11-05"])
def test_a_client_of_an_earlier_revision_shakes_hands(empty: FlaskClient, version: str) -> None:
    begun = post(empty, "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x"}})
    assert begun.json["result"]["protocolVersion"] == version
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert empty.post("/mcp", json=note).status_code == 202
    assert post(empty, "ping").json["result"] == {}
    assert post(empty, "tools/list").json["result"].keys() == {"tools"}
    assert post(empty, "initialize", {"protocolVersion": "1999"}).json["result"]["protocolVersion"] == "2025-11-25"


def test_a_message_that_is_none_is_refused(empty: FlaskClient) -> None:
    for body, code in (
        (b"{", -32700), (b"[" * 50_000, -32700), (b"[]", -32600), (b"1", -32600), (b'{"jsonrpc": "2.0"}', -32600),
        (b'{"jsonrpc": "2.0", "id": [], "method": "ping"}', -32600),
    ):  # fmt: skip
        response = empty.post("/mcp", data=body)
        assert (response.status_code, response.json["error"]["code"]) == (400, code), body[:50]
        assert response.json["id"] is None
    unknown = post(empty, "no/such")
    assert (unknown.status_code, unknown.json["error"]["code"]) == (200, -32601)
    assert post(empty, "ping", body={"params": []}).json["error"]["code"] == -32602


def test_a_stateless_request_that_contradicts_itself_is_refused(empty: FlaskClient) -> None:
    refused = stateless(empty, "tools/list", version="2099-01-01")
    assert (refused.status_code, refused.json["error"]["code"]) == (400, -32022)
    assert refused.json["error"]["data"]["supported"][0] == STATELESS
    other = stateless(empty, "tools/list", **{"Mcp-Method": "tools/call"})
    assert (other.status_code, other.json["error"]["code"]) == (400, -32020)
    other = stateless(empty, "tools/call", "ask", **{"Mcp-Name": "get_receipt"})
    assert other.json["error"]["code"] == -32020
    encoded = stateless(empty, "tools/call", "list_documents", **{"Mcp-Name": "=?base64?bGlzdF9kb2N1bWVudHM=?="})
    assert encoded.status_code == 200
    bare = post(empty, "tools/list", headers={"MCP-Protocol-Version": STATELESS})
    assert (bare.status_code, bare.json["error"]["code"]) == (400, -32602)
    unknown = stateless(empty, "initialise")
    assert (unknown.status_code, unknown.json["error"]["code"]) == (404, -32601)


def test_only_post_is_taken(empty: FlaskClient) -> None:
    for method in ("GET", "DELETE"):
        response = empty.open("/mcp", method=method)
        assert (response.status_code, response.json["error"]["type"]) == (405, "MethodNotAllowed")


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
def test_the_client_of_the_sdk_talks_to_us(client: FlaskClient, address: str, stub: StubModel, mode: str) -> None:
    mcp = pytest.importorskip("mcp", reason="pip install -e '.[mcp]'")
    stub.default = Reply("At seven [1].")
    seen: dict[str, Any] = {}

    async def talk() -> None:
        async with mcp.Client(address, mode=mode) as talking:
            seen["tools"] = [tool.name for tool in (await talking.list_tools()).tools]
            seen["answer"] = await talking.call_tool("ask", {"question": "When does the office close?"})
            seen["failed"] = await talking.call_tool("get_receipt", {"turn_id": 99})
            seen["version"] = talking.protocol_version

    run_apart(talk)
    assert seen["version"] == (STATELESS if mode == "auto" else "2025-11-25")
    assert "ask" in seen["tools"]
    assert seen["answer"].structured_content["status"] == "completed"
    assert "[1] hours.txt" in seen["answer"].content[0].text
    assert seen["failed"].is_error


def test_the_schemas_are_json_schemas_of_objects(empty: FlaskClient) -> None:
    for tool in post(empty, "tools/list").json["result"]["tools"]:
        assert tool["inputSchema"]["type"] == "object"
        assert "allowed" not in json.dumps(tool["inputSchema"])
        assert tool["description"].endswith(".")


def test_llms_txt_says_where_programs_can_ask(app: Flask, client: FlaskClient) -> None:
    response = client.get("/llms.txt")
    assert response.content_type == "text/plain; charset=utf-8"
    assert response.text.startswith("# RAG assistant\n\n> ")
    assert "You are talking to an AI assistant" in response.text
    assert "ask, search_documents" in response.text
    links = re.findall(r"\]\(http://localhost(/[^)?]*)", response.text)
    assert len(links) == 9
    rules = {rule.rule for rule in app.url_map.iter_rules()}
    assert set(links) <= rules
