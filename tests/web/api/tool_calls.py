"""Calls of tools for the stub model to make, and what it was told of them."""

from typing import Any

from tests.testkit.stub_model import Reply, StubModel


def call(name: str, call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def search(query: str, call_id: str = "c1") -> Reply:
    return Reply(tool_calls=[call("search_documents", call_id, query=query)])


def results(stub: StubModel, request: int = -1) -> list[str]:
    return [message["content"] for message in stub.requests[request].messages if message["role"] == "tool"]
