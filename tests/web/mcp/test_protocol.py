"""Messages of the Model Context Protocol, whatever a client sends."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.web.mcp.protocol import KEY, STATELESS, Reply, reply_to

METHODS = ("initialize", "ping", "server/discover", "tools/list", "tools/call", "notifications/cancelled", "no/such")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
META = st.fixed_dictionaries({}, optional={f"{KEY}protocolVersion": st.just(STATELESS) | VALUES, f"{KEY}x": VALUES})
PARAMS = st.fixed_dictionaries(
    {}, optional={"_meta": META | VALUES, "name": VALUES, "arguments": VALUES, "protocolVersion": VALUES}
)
HEADERS = st.none() | st.dictionaries(
    st.sampled_from(("mcp-protocol-version", "mcp-method", "mcp-name")),
    st.sampled_from((STATELESS, "2025-11-25", "tools/call", "=?base64?é?=", "")),
)


class NoTools:
    """Takes every call."""

    def listed(self) -> list[dict[str, Any]]:
        return []

    def call(self, _name: str, _arguments: Any) -> dict[str, Any]:
        return {"content": []}


@given(st.sampled_from(METHODS), PARAMS | VALUES, VALUES, HEADERS)
def test_whatever_is_sent_gets_a_reply(method: str, params: Any, request_id: Any, headers: dict[str, str]) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    reply = reply_to(json.dumps(message), NoTools(), headers)
    assert reply.message is not None
    assert ("result" in reply.message) != ("error" in reply.message)
    assert reply.message["jsonrpc"] == "2.0"
    json.dumps(reply.message)


def test_a_notification_gets_none() -> None:
    assert reply_to('{"jsonrpc": "2.0", "method": "notifications/x"}', NoTools()) == Reply(None, 202)
