"""An endpoint that never ends, or that answers with what is no answer: an error that names it, in little memory."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.llm import client as client_module
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient, collect
from rag_assistant.llm.embeddings import EndpointEmbedder
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.reader import MAX_ANSWER_CHARS, AnswerReader
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import (
    AnswerInterrupted,
    AnswerTooLong,
    EmbedderFailed,
    ModelBusy,
    ModelError,
    ModelFailed,
    ModelTimedOut,
)
from tests.testkit.lying_endpoint import Shape, lying_endpoint
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import timeouts

REQUEST = ModelRequest(({"role": "user", "content": "Why?"},))
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
PACKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
WORDS = json.dumps({"choices": [{"index": 0, "delta": {"content": "geese " * 2000}}]}).encode()
MANY_CALLS = json.dumps(
    {"choices": [{"delta": {"tool_calls": [{"function": {"name": "search_documents", "arguments": "{}"}}] * 3000}}]}
).encode()
LONG_CALL = json.dumps(
    {"choices": [{"delta": {"tool_calls": [{"function": {"name": "x", "arguments": "x" * 300_000}}]}}]}
).encode()


def endless(head: bytes, piece: bytes) -> AbstractContextManager[str]:
    """Serve an answer that begins so and goes on so until the client leaves."""
    return lying_endpoint(lambda _request: Shape(head, "repeat", piece))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelClient]:
    monkeypatch.setattr(client_module, "RETRY_BACKOFF_SECONDS", ())
    made = ModelClient(lambda: timeouts(connect=2.0, first_token=60.0, token=60.0, answer=120.0))
    made.warm_up()
    yield made
    made.close()


def answer(client: ModelClient, url: str) -> str:
    text, _ = collect(client.stream(Endpoint(url, None, "m"), REQUEST, ModelCall()))
    return text


def text_until_interrupted(client: ModelClient, url: str) -> str:
    text = ""
    with pytest.raises(AnswerInterrupted):
        for part in client.stream(Endpoint(url, None, "m"), REQUEST, ModelCall()):
            text += part if isinstance(part, str) else ""
    return text


@pytest.mark.parametrize(
    ("head", "piece", "error"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Geese: " + b"a" * 5000 + b"\r\n", "without an answer"),
        (
            b"HTTP/1.1 101 X\r\nUpgrade: geese\r\nConnection: Upgrade\r\n\r\n",
            b"x",
            "without an answer",
        ),
        (b"HTTP/1.1 500 Trouble\r\n\r\n", b"a" * 60_000, r"failed \(500\)"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b"[" * 60_000, "more than 16,000,000"),
        (STREAM, b"a" * 60_000, "an event of more than"),
        (STREAM, b"data: " + MANY_CALLS + b"\n\n", "more than 100 tools"),
        (STREAM, b"data: " + LONG_CALL + b"\n\n", "more than 200,000 characters"),
        (STREAM, b"data: " + WORDS + b"\n\n", "cut off after 1,000,000 characters"),
        (PACKED, gzip.compress(bytes(60_000_000)), "more than 16,000,000"),
        (PACKED, b"a" * 60_000, "without an answer"),
    ],
    ids=["head", "protocol", "error", "body", "line", "calls", "arguments", "words", "packed", "unpacked"],
)
def test_what_never_ends_is_given_up(client: ModelClient, head: bytes, piece: bytes, error: str) -> None:
    with endless(head, piece) as url:
        tracemalloc.start()
        with pytest.raises(ModelError, match=error):
            answer(client, url)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 60_000_000


def packed(status: bytes, content: object) -> AbstractContextManager[str]:
    """Serve JSON as a proxy does that packs whatever it passes on."""
    body = gzip.compress(json.dumps(content).encode())
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    return lying_endpoint(lambda _request: Shape(head % (status, len(body)) + body))


def test_what_comes_packed_although_nobody_asked_for_it_is_read(client: ModelClient) -> None:
    said = {"choices": [{"message": {"content": "Geese."}, "finish_reason": "stop"}]}
    with packed(b"200 OK", said) as url:
        assert answer(client, url) == "Geese."
    with packed(b"200 OK", {"data": [{"id": "goose-7b"}]}) as url:
        assert client.listed(Endpoint(url, None, None), ModelCall()) == ("goose-7b",)
    with (
        packed(b"503 Trouble", {"error": {"message": "Asleep."}}) as url,
        pytest.raises(ModelFailed, match=r"failed \(503\): Asleep\."),
    ):
        answer(client, url)


def test_the_text_of_a_packed_stream_is_there_as_it_arrives(client: ModelClient) -> None:
    packer = zlib.compressobj(wbits=31)
    word = packer.compress(b"data: " + WORDS + b"\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    with lying_endpoint(lambda _request: Shape(PACKED + word)) as url:
        assert text_until_interrupted(client, url) == "geese " * 2000


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Geese: ", b"a"),
        (b"HTTP/1.1 500 Trouble\r\n\r\n", b"a"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" "),
        (STREAM, b": wait\n\n"),
        (STREAM + b"data: ", b" "),
        (STREAM, b'data: {"choices": [{"delta": {"reasoning_content": "hm"}}]}\n\n'),
        (STREAM, b'data: {"choices": [{"delta": {"content": "geese "}}]}\n\n'),
    ],
    ids=["head", "error", "body", "pings", "line", "thoughts", "words"],
)
def test_a_byte_now_and_then_gives_an_endpoint_no_more_time(head: bytes, piece: bytes) -> None:
    hurried = ModelClient(lambda: timeouts(connect=2.0, first_token=1.0, token=1.0, answer=1.5))
    hurried.warm_up()
    with lying_endpoint(lambda _request: Shape(head, "drip", piece)) as url, pytest.raises(ModelTimedOut):
        answer(hurried, url)


def test_promises_without_end_give_an_endpoint_no_more_time() -> None:
    hurried = ModelClient(lambda: timeouts(connect=1.0, first_token=0.5, token=1.0, answer=1.5))
    hurried.warm_up()
    with endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500) as url, pytest.raises(ModelTimedOut):
        answer(hurried, url)


@pytest.mark.parametrize("status", [200, 500])
def test_an_embedding_that_never_ends_is_given_up(status: int) -> None:
    with endless(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n\r\n" % status, b"[" * 500_000) as url:
        embedder = EndpointEmbedder(url, None, "m", 2.0)
        embedder.load()
        with pytest.raises(EmbedderFailed):
            embedder.embed(["geese"])


def test_an_answer_that_is_cut_off_keeps_its_text(client: ModelClient) -> None:
    with endless(STREAM, b"data: " + WORDS + b"\n\n") as url:
        text = text_until_interrupted(client, url)
    assert MAX_ANSWER_CHARS - 12_000 <= len(text) <= MAX_ANSWER_CHARS


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b"[" * 60_000),
        (STREAM, b"a" * 60_000),
        (STREAM, b"data: " + MANY_CALLS + b"\n\n"),
    ],
    ids=["body", "line", "calls"],
)
def test_what_never_ends_is_not_asked_for_again(head: bytes, piece: bytes) -> None:
    asked = []

    def shape(request: bytes) -> Shape:
        asked.append(request)
        return Shape(head, "repeat", piece)

    patient = ModelClient(lambda: timeouts(connect=2.0, first_token=60.0, token=60.0, answer=120.0))
    patient.warm_up()
    with lying_endpoint(shape) as url, pytest.raises(AnswerTooLong):
        answer(patient, url)
    assert len(asked) == 1


def test_thoughts_that_never_end_are_given_up(client: ModelClient) -> None:
    thoughts = json.dumps({"choices": [{"delta": {"reasoning_content": "geese " * 2000}}]}).encode()
    with (
        endless(STREAM, b"data: " + thoughts + b"\n\n") as url,
        pytest.raises(ModelFailed, match="thought for more than 1,000,000 characters"),
    ):
        answer(client, url)


@pytest.mark.parametrize("seconds", ["1e400", "nan", "-inf", "soon"])
def test_a_time_that_is_none_is_not_told(client: ModelClient, stub: StubModel, seconds: str) -> None:
    stub.default = Reply(status=429, headers={"Retry-After": seconds})
    with pytest.raises(ModelBusy) as refused:
        answer(client, stub.url)
    assert refused.value.retry_after_seconds is None
    assert "Try again in" not in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def shaped(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return objects that have some of these fields, or something else altogether."""
    return st.fixed_dictionaries({}, optional=dict(fields)) | json_values


calls = st.lists(
    shaped(
        index=json_values, id=json_values, function=shaped(name=json_values, arguments=json_values | st.just("{")),
    ),
    max_size=3,
)  # fmt: skip
deltas = shaped(content=json_values, tool_calls=calls | json_values, reasoning=json_values)
choices = st.lists(shaped(delta=deltas, message=deltas, finish_reason=json_values), max_size=2)
chunks = shaped(choices=choices | json_values, usage=json_values, error=json_values)


@given(st.lists(chunks, max_size=4), st.booleans())
def test_whatever_json_comes_is_an_answer_or_an_error_of_the_model(given_chunks: list[object], streams: bool) -> None:
    reader = AnswerReader()
    try:
        for chunk in given_chunks:
            text = reader.text_of(chunk) if streams else reader.whole_answer(json.dumps(chunk))
            assert isinstance(text, str)
    except ModelError as error:
        assert str(error)  # noqa: PT017 - both endings are right
    json.dumps(reader.tool_calls.calls())
    assert reader.finish_reason is None or isinstance(reader.finish_reason, str)


def test_json_without_end_is_no_answer(client: ModelClient) -> None:
    deep = b"data: " + b"[" * 500_000 + b"\n\n"
    with lying_endpoint(lambda _request: Shape(STREAM + deep)) as url, pytest.raises(ModelFailed, match="not JSON"):
        answer(client, url)
