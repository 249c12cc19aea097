"""Model Context Protocol messages (JSON-RPC), answered one by one without state. Pure.

Revision 2026-07-28 is stateless: each request has its version in ``params._meta``, and over HTTP in headers, too.
Clients of earlier revisions begin with ``initialize``; their requests are then answered in the same way.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from rag_assistant import __version__

STATELESS = "2026-07-28"
WITH_HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NAME = "rag-assistant"
KEY = "io.modelcontextprotocol/"
SERVER = {"name": NAME, "title": "RAG assistant", "version": __version__}
INSTRUCTIONS = (
    "Answers from the user's own documents. Ask a question with ask; or search_documents, then read_document for more "
    "around a passage. An answer says what of its conversation the model saw; get_receipt says all of it."
)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
HTTP_STATUS = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 500}
# How long a list may be cached.
FRESH: dict[str, Any] = {"ttlMs": 3_600_000, "cacheScope": "public"}


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ToolServer(Protocol):
    """Offers tools."""

    def listed(self) -> list[dict[str, Any]]:
        """Return the tools as MCP describes them."""

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Return the result of a call; errors in it are results, too. Raises RpcError for an unknown tool."""


class Reply(Struct, frozen=True):
    """A response: ``message`` is ``None`` if none is expected; ``status`` is that of HTTP."""

    message: dict[str, Any] | None
    status: int = 200


def reply_to(text: str | bytes, tools: ToolServer, headers: Mapping[str, str] | None = None) -> Reply:
    """Return the reply to one message. ``headers`` are those of HTTP, in lower case, if any."""
    request_id: Any = None
    stateless = False
    try:
        message = _message_in(text)
        request_id = message.get("id")
        if "id" not in message:
            return Reply(None, 202)
        # Of the stateless revision, or of an unknown one.
        version = (headers or {}).get("mcp-protocol-version")
        is_new = f"{KEY}protocolVersion" in _meta_of(message) or version not in (None, *WITH_HANDSHAKE)
        stateless = is_new and message["method"] != "initialize"
        if stateless:
            _check_envelope(message, headers)
        result = _result_of(message, tools, stateless)
    except RpcError as error:
        details = {"code": error.code, "message": str(error)} | ({"data": error.data} if error.data is not None else {})
        # Clients of earlier revisions read the body of a 200 only.
        status = HTTP_STATUS.get(error.code, 400) if stateless or request_id is None else 200
        return Reply({"jsonrpc": "2.0", "id": request_id, "error": details}, status)
    return Reply({"jsonrpc": "2.0", "id": request_id, "result": result})


def _message_in(text: str | bytes) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "The message is not JSON.") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise RpcError(INVALID_REQUEST, "The message must be one request or notification of JSON-RPC 2.0.")
    if "id" in message and not isinstance(message["id"], str | int):
        raise RpcError(INVALID_REQUEST, "The id of a request must be a string or a whole number.")
    return message


def _params_of(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object.")
    return params


def _meta_of(message: dict[str, Any]) -> dict[str, Any]:
    meta = _params_of(message).get("_meta", {})
    return meta if isinstance(meta, dict) else {}


def _check_envelope(message: dict[str, Any], headers: Mapping[str, str] | None) -> None:
    """Refuse a request without its required metadata, or whose headers and body disagree."""
    meta = _meta_of(message)
    for key in ("protocolVersion", "clientCapabilities"):
        if KEY + key not in meta:
            raise RpcError(INVALID_PARAMS, f'params._meta has no "{KEY}{key}".')
    version = meta[f"{KEY}protocolVersion"]
    if headers is not None:
        named = _params_of(message).get("name") if message["method"] == "tools/call" else None
        expected = {"mcp-protocol-version": version, "mcp-method": message["method"], "mcp-name": named}
        for name, value in expected.items():
            if value is not None and _decoded(headers.get(name)) != value:
                raise RpcError(HEADER_MISMATCH, f"The header {name} does not say what the body says.")
    if version != STATELESS:
        supported = {"supported": [STATELESS, *WITH_HANDSHAKE], "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"This server does not speak revision {version}.", supported)


def _decoded(header: str | None) -> str | None:
    """Return a header's text; if it isn't plain ASCII, it is sent as base64."""
    if header is None or not (header.startswith("=?base64?") and header.endswith("?=")):
        return header
    try:
        return base64.b64decode(header[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _result_of(message: dict[str, Any], tools: ToolServer, stateless: bool) -> dict[str, Any]:
    method, params = message["method"], _params_of(message)
    about = {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
    if method == "tools/call":
        result = tools.call(str(params.get("name")), params.get("arguments"))
    elif method == "tools/list":
        result = {"tools": tools.listed()} | (FRESH if stateless else {})
    elif stateless and method == "server/discover":
        result = about | {"supportedVersions": [STATELESS, *WITH_HANDSHAKE]} | FRESH
    elif not stateless and method == "initialize":
        requested = params.get("protocolVersion")
        version = requested if requested in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
        result = about | {"protocolVersion": version, "serverInfo": SERVER}
    elif not stateless and method == "ping":
        result = {}
    else:
        raise RpcError(METHOD_NOT_FOUND, f"There is no method {method}.")
    return result | {"resultType": "complete", "_meta": {f"{KEY}serverInfo": SERVER}} if stateless else result
