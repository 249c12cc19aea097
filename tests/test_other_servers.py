"""What comes from another server is bounded, whoever asks it and whatever it sends: the one table of both."""

import gzip
import json
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rag_assistant.accounts.oidc import OpenIdProvider
from rag_assistant.files.s3 import S3Files
from rag_assistant.llm import client as client_module
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient, collect
from rag_assistant.llm.embeddings import EndpointEmbedder
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import AssistantError, ToolFailed
from rag_assistant.runtime.public_http import PublicHttp
from tests.testkit.lying_endpoint import Shape, lying_endpoint
from tests.testkit.samples import sample
from tests.testkit.site import PUBLIC, Rerouted
from tests.web.conftest import timeouts

# The largest bound of all, that of a model's answer, and what may be under way.
MAX_SENT = 16_000_000 + 10_000_000
MAX_PEAK = 60_000_000
needs_mcp = pytest.mark.skipif(find_spec("mcp") is None, reason="pip install -e '.[mcp]'")
Ask = Callable[[str, Path], object]


def ask_model(url: str, folder: Path) -> object:
    client = ModelClient(lambda: timeouts(connect=2.0, first_token=60.0, token=60.0, answer=120.0))
    client.warm_up()
    return collect(
        client.stream(Endpoint(url, None, "m"), ModelRequest(({"role": "user", "content": "?"},)), ModelCall())
    )


def embed(url: str, folder: Path) -> object:
    embedder = EndpointEmbedder(url, None, "m", 20.0)
    embedder.load()
    return embedder.embed(["geese"])


def list_tools(url: str, folder: Path) -> object:
    from rag_assistant.llm.tool_servers.connection import ToolServer

    server = ToolServer("lying", url)
    try:
        return server.tools()
    finally:
        server.close()


def sign_in(url: str, folder: Path) -> object:
    provider = OpenIdProvider(url, "us", None, ("openid",), "Acme")
    return provider.authorization_url("secret", "http://127.0.0.1/back")


def fetch_page(url: str, folder: Path) -> object:
    http = PublicHttp(lambda host, port: [PUBLIC], lambda: Rerouted(urlsplit(url).port or 0, []), 20.0)
    with http.fetch("http://example.org/", (80,), 10, "text/html") as page:
        return page.content.read()


def read_file(url: str, folder: Path) -> object:
    files = S3Files("s3://documents/x", url.removesuffix("/v1"), "us-east-1", True, folder)
    return files.verified("a" * 32, "0" * 64, 1000).read()


def list_files(url: str, folder: Path) -> object:
    return list(S3Files("s3://documents/x", url.removesuffix("/v1"), "us-east-1", True, folder).stored())


ASKING = [ask_model, embed, pytest.param(list_tools, marks=needs_mcp), sign_in, fetch_page, read_file, list_files]
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
SHAPES = {
    "head": Shape(b"HTTP/1.1 200 OK\r\n", "repeat", b"X-Geese: " + b"a" * 5000 + b"\r\n"),
    "length": Shape(JSON + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "repeat", b" " * 60_000),
    "body": Shape(JSON + b"\r\n", "repeat", b"[" * 60_000),
    "refusal": Shape(b"HTTP/1.1 500 Trouble\r\n\r\n", "repeat", b"<" * 60_000),
    "number": Shape(JSON + b"\r\n", "repeat", b"9" * 60_000),
    "event": Shape(EVENTS + b"data: ", "repeat", b"a" * 60_000),
    "events": Shape(EVENTS, "repeat", b": wait\n\n" * 8000),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(client_module, "RETRY_BACKOFF_SECONDS", ())


@pytest.mark.parametrize("shape", sample(SHAPES.values(), 4), ids=SHAPES)
@pytest.mark.parametrize("ask", ASKING)
def test_what_another_server_sends_without_end_is_given_up(ask: Ask, shape: Shape, tmp_path: Path) -> None:
    if ask is ask_model and shape is SHAPES["events"]:
        pytest.skip("An answer is a stream of events, which ends with its deadline (test_lying_endpoint.py).")
    sent: list[int] = []
    with lying_endpoint(lambda _: shape, sent) as url, pytest.raises(AssistantError):
        ask(url, tmp_path)
    assert sum(sent) < MAX_SENT


@cache
def packed_zeros() -> bytes:
    return gzip.compress(bytes(60_000_000))


@pytest.mark.long
@pytest.mark.parametrize("ask", ASKING)
def test_what_is_packed_does_not_take_the_memory_of_what_it_becomes(ask: Ask, tmp_path: Path) -> None:
    packed = packed_zeros()
    head = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with lying_endpoint(lambda _: Shape(head + packed)) as url, suppress(AssistantError):
        ask(f"{url}/nothing", tmp_path)  # What it needs is loaded.
    with lying_endpoint(lambda _: Shape(head + packed)) as url, pytest.raises(AssistantError):
        tracemalloc.start()
        try:
            ask(url, tmp_path)
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert peak < MAX_PEAK


@needs_mcp
def test_a_refusal_of_a_tool_server_is_cut() -> None:
    from rag_assistant.llm.tool_servers.connection import MAX_RESULT_CHARS, ToolServer

    about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": ""}}

    def answer(request: bytes) -> Shape:
        message = json.loads(request.partition(b"\r\n\r\n")[2] or b"{}")
        refusal = {"error": {"code": -32601, "message": "a" * 1_000_000}}
        body = {"jsonrpc": "2.0", "id": message.get("id")}
        body |= {"result": about} if message.get("method") == "initialize" else refusal
        content = json.dumps(body).encode()
        return Shape(JSON + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(content) + content)

    with lying_endpoint(answer) as url:
        server = ToolServer("lying", url)
        with pytest.raises(ToolFailed, match="The tool server lying refused: a") as refused:
            server.tools()
        server.close()
    assert len(str(refused.value)) < MAX_RESULT_CHARS + 200


@needs_mcp
def test_a_line_that_a_command_writes_without_end_is_given_up() -> None:
    from rag_assistant.llm.tool_servers.connection import ToolServer

    server = ToolServer("lying", [sys.executable, "-c", "while True: print('[' * 60_000, end='')"])
    with pytest.raises(ToolFailed):
        server.tools()
    server.close()
