"""Requests that name something in an address or a body: a conversation, a turn, a document, a tag, a library."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.testkit.routes import CHAT, MODEL


@dataclass(frozen=True)
class Named:
    """A request that names something in its address or its body: ``made`` makes it from the ids."""

    what: str
    made: Callable[[FlaskClient, dict[str, Any]], TestResponse]


def _selected(do: str) -> Callable[[FlaskClient, dict[str, Any]], TestResponse]:
    return lambda client, ids: client.post(
        "/documents/selected", data={"do": do, "document_ids": ids["document_id"], "tags": "seized"}
    )


def _file() -> tuple[io.BytesIO, str]:
    return io.BytesIO(b"Newer."), "newer.txt"


def _tool(name: str, **arguments: str) -> Named:
    """Return the call of a tool over the Model Context Protocol; each argument is the id of that name."""

    def call(client: FlaskClient, ids: dict[str, Any]) -> TestResponse:
        sent = {argument: ids[name] for argument, name in arguments.items()} | SAID.get(name, {})
        sent |= {argument: [sent[argument]] for argument in ("document_ids", "tags") if argument in sent}
        called = {"name": name, "arguments": sent}
        return client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called})

    return Named(f"tool {name} {' '.join(arguments)}", call)


SAID: dict[str, dict[str, Any]] = {"ask": {"question": "Why?"}}
NAMED = [
    Named("note turn_id", lambda client, ids: client.post(
        "/api/notes", json={"text": "Seized.", "turn_id": ids["turn_id"]})),
    Named("note project_id", lambda client, ids: client.post(
        "/api/notes", json={"text": "Seized.", "project_id": ids["project_id"]})),
    Named("note page turn", lambda client, ids: client.get(f"/notes?turn={ids['turn_id']}")),
    Named("query conversation_id", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "conversation_id": ids["conversation_id"]})),
    Named("stream conversation_id", lambda client, ids: client.post(
        "/api/query/stream", json={"question": "Why?", "conversation_id": ids["conversation_id"]})),
    Named("query document_ids", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "document_ids": [ids["document_id"]]})),
    Named("query tags", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "tags": [ids["tag"]]})),
    Named("query project_id", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "project_id": ids["project_id"]})),
    Named("new conversation in a project", lambda client, ids: client.post(
        "/api/conversations", json={"project_id": ids["project_id"]})),
    Named("own conversation into a project", lambda client, ids: client.patch(
        f"/api/conversations/{ids['own']}", json={"project_id": ids["project_id"]})),
    Named("conversations of a project", lambda client, ids: client.get(
        f"/api/conversations?project_id={ids['project_id']}")),
    Named("new conversation's page in a project", lambda client, ids: client.get(f"/?project={ids['project_id']}")),
    Named("form project_id", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "project_id": ids["project_id"]})),
    Named("form own conversation into a project", lambda client, ids: client.post(
        f"/conversations/{ids['own']}/change", data={"project_id": ids["project_id"]})),
    Named("select to delete", lambda client, ids: client.post(
        "/conversations/selected", data={"do": "delete", "conversation_ids": ids["conversation_id"]})),
    Named("select to restore", lambda client, ids: client.post(
        "/conversations/selected", data={"do": "restore", "conversation_ids": ids["deleted"]})),
    Named("select to move", lambda client, ids: client.post(
        "/conversations/selected", data={"do": "move", "conversation_ids": ids["conversation_id"]})),
    Named("select own to move there", lambda client, ids: client.post(
        "/conversations/selected",
        data={"do": "move", "conversation_ids": ids["own"], "project_id": ids["project_id"]})),
    Named("a project as a model", lambda client, ids: client.post(
        "/v1/chat/completions", json=CHAT | {"model": f"rag-assistant/{ids['tag']}"})),
    Named("documents of a new project", lambda client, ids: client.post(
        "/api/projects", json={"name": "Mine", "document_ids": [ids["document_id"]]})),
    Named("tags of a new project", lambda client, ids: client.post(
        "/api/projects", json={"name": "Mine", "tags": [ids["tag"]]})),
    Named("query edits_turn", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "edits_turn": ids["first_turn"]})),
    Named("query edits_turn in own conversation", lambda client, ids: client.post(
        "/api/query", json={"question": "Why?", "edits_turn": ids["first_turn"], "conversation_id": ids["own"]})),
    Named("query confirms_turn", lambda client, ids: client.post(
        "/api/query", json={"question": "yes", "confirms_turn": ids["turn_id"], "conversation_id": ids["own"]})),
    Named("form conversation_id", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "conversation_id": ids["conversation_id"]})),
    Named("form document_ids", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "document_ids": ids["document_id"]})),
    Named("form command", lambda client, ids: client.post(
        "/ask", data={"question": "/history", "conversation_id": ids["conversation_id"]})),
    Named("form edits_turn", lambda client, ids: client.post(
        "/ask", data={"question": "Why?", "edits_turn": ids["first_turn"]})),
    Named("scope of own conversation", lambda client, ids: client.patch(
        f"/api/conversations/{ids['own']}", json={"document_ids": [ids["document_id"]]})),
    Named("tags of own conversation", lambda client, ids: client.patch(
        f"/api/conversations/{ids['own']}", json={"tags": [ids["tag"]]})),
    Named("search document_id", lambda client, ids: client.get(f"/api/search?q=hiss&document_id={ids['document_id']}")),
    Named("search conversation_id", lambda client, ids: client.get(
        f"/api/search?q=and+it&conversation_id={ids['conversation_id']}")),
    Named("search tag", lambda client, ids: client.get(f"/api/search?q=hiss&tag={ids['tag']}")),
    Named("documents tag", lambda client, ids: client.get(f"/api/documents?tag={ids['tag']}")),
    Named("page documents", lambda client, ids: client.get(f"/?documents={ids['document_id']}")),
    Named("page tag", lambda client, ids: client.get(f"/documents?tag={ids['tag']}")),
    Named("page deleted", lambda client, ids: client.get(f"/?deleted={ids['deleted']}")),
    Named("list open", lambda client, ids: client.get(f"/conversations?part=1&open={ids['conversation_id']}")),
    Named("settings conversation", lambda client, ids: client.get(f"/settings?conversation={ids['conversation_id']}")),
    Named("upload replaces", lambda client, ids: client.post(
        "/api/documents", data={"file": _file(), "replaces": ids["document_id"]})),
    Named("form upload replaces", lambda client, ids: client.post(
        "/documents", data={"file": _file(), "replaces": ids["document_id"]})),
    Named("upload into a library", lambda client, ids: client.post(
        "/api/documents", data={"file": _file(), "library_id": ids["library_id"]})),
    Named("form upload into a library", lambda client, ids: client.post(
        "/documents", data={"file": _file(), "library_id": ids["library_id"]})),
    Named("move into a library", lambda client, ids: client.patch(
        f"/api/documents/{ids['own_document']}", json={"library_id": ids["library_id"]})),
    Named("form move into a library", lambda client, ids: client.post(
        f"/documents/{ids['own_document']}/change", data={"name": "geese.txt", "library_id": ids["library_id"]})),
    Named("chat conversation id", lambda client, ids: client.post(
        "/v1/chat/completions", json=CHAT, headers={"X-Conversation-Id": str(ids["conversation_id"])})),
    Named("chat metadata", lambda client, ids: client.post(
        "/v1/chat/completions", json=CHAT | {"metadata": {"conversation_id": str(ids["conversation_id"])}})),
    Named("response conversation id", lambda client, ids: client.post(
        "/v1/responses", json={"model": MODEL, "input": "Why?"},
        headers={"X-Conversation-Id": str(ids["conversation_id"])})),
    Named("response behind another", lambda client, ids: client.post(
        "/v1/responses", json={"model": MODEL, "input": "Why?", "previous_response_id": f"resp_{ids['turn_id']}"})),
    Named("compact another's response", lambda client, ids: client.post(
        "/v1/responses/compact", json={"model": MODEL, "previous_response_id": f"resp_{ids['turn_id']}"})),
    _tool("ask", conversation_id="conversation_id"),
    _tool("ask", document_ids="document_id"),
    _tool("ask", tags="tag"),
    _tool("read_conversation", conversation_id="conversation_id"),
    _tool("get_receipt", turn_id="turn_id"),
    _tool("read_document", document_id="document_id"),
    Named("stream taken up", lambda client, ids: client.get(
        f"/api/turns/{ids['turn_id']}/stream", headers={"Last-Event-ID": "3"})),
    Named("response stream taken up", lambda client, ids: client.get(
        f"/v1/responses/resp_{ids['turn_id']}?stream=true&starting_after=1")),
    Named("is there anything new", lambda client, ids: client.head(f"/api/conversations/{ids['conversation_id']}")),
    Named("is the file as before", lambda client, ids: client.get(
        f"/api/documents/{ids['document_id']}/file", headers={"If-None-Match": "*", "Range": "bytes=0-1"})),
    Named("selected ask", _selected("ask")),
    Named("selected delete", _selected("delete")),
    Named("selected tag", _selected("tag")),
]  # fmt: skip
