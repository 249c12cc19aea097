"""The client against a server on loopback: what it sends, what it takes, and every way in which a model fails."""

import errno
import json
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from rag_assistant.llm import client as client_module
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import ModelClient, Part, Retrying, collect
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.failures import reason_given
from rag_assistant.llm.reader import AnswerReader, PromptProgress
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import (
    AnswerInterrupted,
    AnswerStopped,
    ModelBusy,
    ModelError,
    ModelFailed,
    ModelRefused,
    ModelTimedOut,
    ModelUnreachable,
)
from tests.testkit.samples import sample
from tests.testkit.shared_data import shared_jsonl
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import timeouts, until

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
REQUEST = ModelRequest(tuple(QUESTION))
KEY = "sk-canary-123"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelClient]:
    monkeypatch.setattr(client_module, "RETRY_BACKOFF_SECONDS", (0.01, 0.01))
    made = ModelClient(lambda: timeouts(connect=1.0, first_token=0.5, token=0.5, answer=5.0))
    made.warm_up()  # Or the first test would wait for the SDK to be loaded within its deadline.
    yield made
    made.close()


def endpoint(stub: StubModel) -> Endpoint:
    return Endpoint(stub.url, KEY, "some-model")


def answer(client: ModelClient, stub: StubModel, call: ModelCall | None = None) -> str:
    text, _ = collect(client.stream(endpoint(stub), REQUEST, call or ModelCall()))
    return text


def text_before_error(parts: Iterator[Part]) -> tuple[str, ModelError]:
    """Return the text that came, and the error that ended it."""
    text = ""
    with pytest.raises(ModelError) as error:
        for part in parts:
            text += part if isinstance(part, str) else ""
    return text, error.value


def test_an_answer_streams_and_ends_with_its_figures(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply("It is so.", usage={"prompt_tokens": 7, "completion_tokens": 3}))
    request = replace(REQUEST, max_tokens=50, temperature=0.0)
    text, reply = collect(client.stream(endpoint(stub), request, ModelCall()))
    assert text == "It is so."
    assert reply.finish_reason == "stop"
    assert reply.usage == {"prompt_tokens": 7, "completion_tokens": 3}
    (sent,) = stub.requests
    assert sent.messages == QUESTION
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert {name: sent.body[name] for name in ("model", "stream", "max_tokens", "temperature")} == {
        "model": "some-model",
        "stream": True,
        "max_tokens": 50,
        "temperature": 0.0,
    }


def test_characters_cut_anywhere_arrive_whole(client: ModelClient, stub: StubModel) -> None:
    text = "Grüße 世界 👋🏽 שלום"
    stub.replies.append(Reply(text, bytes_at_once=1))
    assert answer(client, stub) == text


def test_without_a_name_the_endpoints_first_model_answers(client: ModelClient, stub: StubModel) -> None:
    assert client.named(Endpoint(stub.url, None, None), ModelCall()).model == "stub-model"
    assert client.named(Endpoint(stub.url, None, "mine"), ModelCall()).model == "mine"


def test_an_endpoint_that_is_down_cannot_be_asked_for_its_models(client: ModelClient, stub: StubModel) -> None:
    stub.close()
    with pytest.raises(ModelUnreachable, match="could not be reached"):
        client.named(Endpoint(stub.url, None, None), ModelCall())


def test_an_endpoint_that_was_down_is_asked_for_its_limit_once_it_is_there(
    client: ModelClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = StubModel()
    stub.models = [{"id": "mine", "max_model_len": 4096}]
    endpoint = Endpoint(stub.url, None, "mine")
    with monkeypatch.context() as down:
        down.setattr(client, "_models", Mock(side_effect=ModelUnreachable("down")))
        assert client.named(endpoint, ModelCall()).context_tokens is None
    assert client.named(endpoint, ModelCall()).context_tokens == 4096
    stub.close()


def test_an_endpoint_that_does_not_stream_is_understood(client: ModelClient, stub: StubModel) -> None:
    body = b'{"choices": [{"message": {"role": "assistant", "content": "Whole."}, "finish_reason": "stop"}]}'
    stub.replies.append(Reply(body=body))
    assert answer(client, stub) == "Whole."


def test_an_endpoint_that_is_down_is_named(client: ModelClient, stub: StubModel) -> None:
    stub.close()
    with pytest.raises(
        ModelUnreachable,
        match=r"http://127.0.0.1:\d+/v1 could not be reached: nothing is listening there.* Your question was saved",
    ):
        answer(client, stub)


@pytest.mark.parametrize(
    ("status", "kind", "words", "calls"),
    [
        (401, ModelRefused, "rejected the API key .401.*openai_api_key", 1),
        (403, ModelRefused, "denied access .403.*scripted.*what the API key is allowed to do", 1),
        (404, ModelRefused, "chat endpoint at .*404.*scripted.*openai_base_url; it usually ends in /v1", 1),
        (400, ModelRefused, "refused the request .400", 1),
        (429, ModelBusy, "too busy .429", 3),
        (500, ModelFailed, "failed .500.*scripted", 3),
        (503, ModelFailed, "failed .503", 3),
    ],
)
def test_a_refusal_says_what_was_wrong(  # type: ignore[no-untyped-def]
    client: ModelClient, stub: StubModel, status, kind, words, calls
) -> None:
    stub.default = Reply(status=status, body=b'{"error": {"message": "scripted ' + KEY.encode() + b'"}}')
    with pytest.raises(kind, match=words) as refused:
        answer(client, stub)
    assert len(stub.requests) == calls
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("model", "reason", "checks"),
    [
        ("some-model", "no such model", "openai_model"),
        ("some-model", "There is nothing at /models.", "openai_base_url"),
        (None, "no such model", "openai_base_url"),
    ],
)
def test_a_path_that_is_not_there_is_no_model_that_is_not_there(
    client: ModelClient, stub: StubModel, model: str | None, reason: str, checks: str
) -> None:
    stub.default = Reply(status=404, body=json.dumps({"error": {"message": reason}}).encode())
    with pytest.raises(ModelRefused, match=rf"\(404\): {reason}\.? Check {checks}[.;]"):
        collect(client.stream(Endpoint(stub.url, KEY, model), REQUEST, ModelCall()))


@pytest.mark.parametrize(
    ("key", "said", "shown"),
    [
        ("sk-12345678", "sk-12345678 is no key", "[the key] is no key."),
        ("ollama", 'model "qwen3:8b" not found, try "ollama pull"', 'model "qwen3:8b" not found, try "ollama pull".'),
    ],
)
def test_a_key_is_not_repeated_and_a_word_in_its_place_hides_nothing(key: str, said: str, shown: str) -> None:
    assert reason_given({"message": said}, key) == shown


def test_without_a_key_the_endpoint_asks_for_one(client: ModelClient, stub: StubModel) -> None:
    stub.default = Reply(status=401)
    with pytest.raises(ModelRefused, match=r"asks for an API key \(401\)\. Set openai_api_key\."):
        collect(client.stream(Endpoint(stub.url, None, "some-model"), REQUEST, ModelCall()))


def test_a_model_that_is_not_there_is_named(client: ModelClient, stub: StubModel) -> None:
    stub.default = Reply(status=404, body=b'{"error": {"message": "model not found, try pulling it first"}}')
    with pytest.raises(
        ModelRefused, match=r'There is no model "some-model" at http\S+ \(404\): model not found.* Check openai_model\.'
    ):
        answer(client, stub)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (200, "The endpoint returned a web page instead of an answer"),
        (400, "it answered with a web page, Sent to HTTPS port"),
    ],
)
def test_a_web_page_is_called_one(client: ModelClient, stub: StubModel, status: int, words: str) -> None:
    body = b"\n<!doctype html><html><title> Sent to HTTPS port </title><h1>Hello</h1>"
    stub.default = Reply(status=status, body=body, headers={"Content-Type": "text/html"})
    with pytest.raises((ModelRefused, ModelFailed), match=words) as refused:
        answer(client, stub)
    assert "<" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError("timed out"), "nothing answered in time"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no route to host"),
        (ssl.SSLCertVerificationError(1, "bad"), "its certificate is not trusted"),
    ],
)
def test_why_there_is_no_connection_is_said(
    client: ModelClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch, error: OSError, words: str
) -> None:
    if isinstance(error, ssl.SSLCertVerificationError):
        error.verify_message = "self-signed certificate"

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(ModelUnreachable, match=f"could not be reached: {words}"):
        answer(client, stub)


def test_what_fails_once_is_tried_again_before_the_first_text(client: ModelClient, stub: StubModel) -> None:
    stub.replies += [Reply(status=500), Reply(status=429, headers={"Retry-After": "0"})]
    parts = list(client.stream(endpoint(stub), REQUEST, ModelCall()))
    assert collect(parts)[0] == "An answer."
    waits = [part.why for part in parts if isinstance(part, Retrying)]
    assert len(waits) == 2
    assert "failed (500)" in waits[0]


@pytest.mark.long
def test_what_llama_cpp_has_read_of_a_request_is_told_and_keeps_it_waited_for(stub: StubModel) -> None:
    stub.models[0]["owned_by"] = "llamacpp"
    told = [{"total": 900, "cache": 0, "processed": read} for read in (0, 256, 512, 900)]
    stub.default = Reply(progress=told, pieces=["An answer."], seconds_between=0.5)
    with closing(ModelClient(lambda: timeouts(connect=0.1, first_token=1.4, token=60, answer=60))) as client:
        parts = list(client.stream(client.named(Endpoint(stub.url, None, None), ModelCall()), REQUEST, ModelCall()))
    assert parts[:-1] == [*(PromptProgress(read, 900) for read in (0, 256, 512, 900)), "An answer."]
    assert stub.requests[0].body["return_progress"] is True


@pytest.mark.long
def test_only_what_has_been_read_since_keeps_a_request_waited_for(stub: StubModel) -> None:
    stub.default = Reply(progress=[{"total": 900, "processed": 256}] * 9, seconds_between=0.5)
    with closing(ModelClient(lambda: timeouts(connect=0.1, first_token=0.9, token=60, answer=60))) as client:
        parts = client.stream(endpoint(stub), REQUEST, ModelCall(), may_retry=False)
        assert next(parts) == PromptProgress(256, 900)
        with pytest.raises(ModelTimedOut, match="no text arrived"):
            next(parts)


@pytest.mark.parametrize(
    "told",
    [
        *(None, [], "256", {}, {"total": 9}, {"total": 9, "processed": 10}, {"total": 9, "processed": -2}),
        *({"total": "9", "processed": 1}, {"total": 9, "processed": True}, {"total": 9.5, "processed": 1.5}),
    ],
)
def test_what_cannot_be_how_much_was_read_is_ignored(client: ModelClient, stub: StubModel, told: Any) -> None:
    stub.default = Reply(progress=[told])
    assert answer(client, stub) == "An answer."
    assert "return_progress" not in stub.requests[0].body  # Who is not known to take it isn't sent it.


def test_a_long_retry_after_is_told_instead_of_waited_for(client: ModelClient, stub: StubModel) -> None:
    stub.default = Reply(status=429, headers={"Retry-After": "120"})
    with pytest.raises(ModelBusy, match="Try again in 120 seconds") as refused:
        answer(client, stub)
    assert refused.value.retry_after_seconds == 120
    assert len(stub.requests) == 1


@pytest.mark.parametrize("reply", sample([Reply(hang_before_headers=True), Reply(hang_at=0)]))
def test_a_hang_before_the_first_text_ends_at_its_deadline(client: ModelClient, stub: StubModel, reply: Reply) -> None:
    stub.replies.append(reply)
    with pytest.raises(ModelTimedOut, match="no text arrived"):
        answer(client, stub)
    assert len(stub.requests) == 1


def test_a_hang_in_the_middle_keeps_what_came(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply("one two three", hang_at=2))
    text, error = text_before_error(client.stream(endpoint(stub), REQUEST, ModelCall()))
    assert isinstance(error, ModelTimedOut)
    assert "no more text arrived" in str(error)
    assert text == "one two"


def test_a_stream_that_breaks_in_the_middle_is_interrupted_and_not_repeated(
    client: ModelClient, stub: StubModel
) -> None:
    stub.replies.append(Reply("one two three", break_at=2))
    with pytest.raises(AnswerInterrupted, match="dropped the connection"):
        answer(client, stub)
    assert len(stub.requests) == 1


def test_a_stream_that_breaks_before_the_first_text_is_repeated(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply("one two three", break_at=0))
    assert answer(client, stub) == "An answer."
    assert len(stub.requests) == 2


@pytest.mark.parametrize(
    "body", [b'data: {"error": {"message": "overloaded"}}\n\n', b"data: nonsense\n\n", b"data: 7\n\n", b""]
)
def test_a_stream_that_is_no_answer_fails(client: ModelClient, stub: StubModel, body: bytes) -> None:
    stub.default = Reply(body=body, headers={"Content-Type": "text/event-stream"})
    with pytest.raises(ModelFailed):
        answer(client, stub)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(hang_before_headers=True),
        Reply(hang_at=0),
        Reply("one two three", hang_at=2),
        Reply("word " * 1000, seconds_between=0.02),
    ],
)
def test_stop_closes_the_upstream_long_before_its_deadline(stub: StubModel, reply: Reply) -> None:
    client = ModelClient(lambda: timeouts(connect=1.0, first_token=30.0, token=30.0, answer=60.0))
    stub.replies.append(reply)
    call, ended = ModelCall(), []

    def ask() -> None:
        try:
            answer(client, stub, call)
        except AnswerStopped as stopped:
            ended.append(stopped)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: stub.requests)
    time.sleep(0.3)
    call.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert len(ended) == 1
    until(lambda: stub.requests[0].left_after is not None)


def test_a_call_that_was_stopped_before_it_connected_ends_at_once(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply(hang_before_headers=True))
    call = ModelCall()
    call.stop()
    with pytest.raises(AnswerStopped):
        answer(client, stub, call)


def test_an_answer_that_nobody_takes_any_more_closes_the_upstream(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply("word " * 1000, seconds_between=0.01))
    parts = client.stream(endpoint(stub), REQUEST, ModelCall())
    assert isinstance(next(parts), str)
    parts.close()  # type: ignore[attr-defined] # it is a generator
    until(lambda: stub.requests[0].left_after is not None)


def test_whoever_takes_the_text_may_take_longer_than_a_model_may(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply("one two three"))
    text = ""
    for part in client.stream(endpoint(stub), REQUEST, ModelCall()):
        text += part if isinstance(part, str) else ""
        time.sleep(0.8 if text == "one" else 0)
    assert text == "one two three"


def test_every_recorded_exchange_is_an_answer_or_a_named_error(client: ModelClient, stub: StubModel) -> None:
    replayed, answered, refusals = 0, 0, list[str]()
    for exchange in shared_jsonl("llm_wire/interactions.jsonl"):
        if not exchange["uri"].endswith("/chat/completions"):
            continue
        kind = "text/event-stream" if exchange["sse"] else "application/json"
        body = exchange["response_body"].encode()
        stub.default = Reply(status=exchange["status"], body=body, headers={"Content-Type": kind})
        try:
            text = answer(client, stub)
        except ModelError as error:
            refusals.append(str(error))
        else:
            answered += 1
            if not exchange["sse"]:
                content = json.loads(body)["choices"][0]["message"].get("content") or ""
                assert text == re.sub(r"\A<think>.*?</think>\s*", "", content, flags=re.S)
        replayed += 1
    assert replayed > 150
    assert answered > 100
    assert all(sentence.endswith(".") for sentence in refusals)


SSE = {"Content-Type": "text/event-stream"}


def test_a_last_event_without_its_blank_line_counts(client: ModelClient, stub: StubModel) -> None:
    events = 'data: {"choices": [{"delta": {"content": "Five"}}]}\n\n'
    last = 'data: {"choices": [{"delta": {"content": " geese."}, "finish_reason": "STOP"}]}'
    for end in ("", "\n", "\n\ndata: [DONE]"):
        stub.replies.append(Reply(body=f"{events}{last}{end}".encode(), headers=SSE))
        text, ended = collect(client.stream(endpoint(stub), REQUEST, ModelCall()))
        assert (text, ended.finish_reason) == ("Five geese.", "stop")


def test_json_that_is_announced_as_events_is_read(client: ModelClient, stub: StubModel) -> None:
    stub.replies.append(Reply(body=b'\n{"choices": [{"message": {"content": "Five."}}]}', headers=SSE))
    assert answer(client, stub) == "Five."
    stub.default = Reply(body=b'{"error": {"message": "context of slot 0 exceeded"}}', headers=SSE)
    with pytest.raises(ModelFailed, match="context of slot 0 exceeded"):
        answer(client, stub)


def test_half_a_pair_of_characters_does_not_break_an_answer(client: ModelClient, stub: StubModel) -> None:
    reply = b'data: {"choices": [{"index": 0, "delta": {"content": "a\\ud83d b"}}]}\n\ndata: [DONE]\n\n'
    stub.replies.append(Reply(body=reply, headers={"Content-Type": "text/event-stream"}))
    assert answer(client, stub) == "a\ufffd b"


def test_a_pair_of_characters_cut_in_two_chunks_becomes_whole(client: ModelClient, stub: StubModel) -> None:
    halves = "".join(
        f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{half}"}}}}]}}\n\n'
        for half in ("a\\ud83d", "\\ude00 b")
    )
    reply = f"{halves}data: [DONE]\n\n".encode()
    stub.replies.append(Reply(body=reply, headers={"Content-Type": "text/event-stream"}))
    assert answer(client, stub) == "a\U0001f600 b"


@pytest.mark.parametrize(
    "event",
    ['data: {"error": {"message": "upstream overloaded"}}', 'event: error\ndata: {"message": "upstream overloaded"}'],
)
@pytest.mark.parametrize(("begun", "kind"), [("", ModelFailed), ("Nine", AnswerInterrupted)])
def test_the_reason_of_an_error_inside_a_stream_is_told(
    client: ModelClient, stub: StubModel, event: str, begun: str, kind: type[ModelError]
) -> None:
    reply = f'data: {{"choices": [{{"delta": {{"content": "{begun}"}}}}]}}\n\n{event}\n\n'.encode()
    stub.replies += [Reply(body=reply, headers={"Content-Type": "text/event-stream"})] * 3
    with pytest.raises(kind, match="reported an error: upstream overloaded"):
        answer(client, stub)


def test_a_refusal_is_the_answer_and_is_known_as_one(client: ModelClient, stub: StubModel) -> None:
    reply = b'data: {"choices": [{"delta": {"refusal": "I can\'t help with that."}, "finish_reason": "stop"}]}\n\n'
    stub.replies.append(Reply(body=reply + b"data: [DONE]\n\n", headers={"Content-Type": "text/event-stream"}))
    text, ended = collect(client.stream(endpoint(stub), REQUEST, ModelCall()))
    assert (text, ended.finish_reason) == ("I can't help with that.", "refusal")


def test_content_in_parts_and_usage_that_is_none_are_understood() -> None:
    reader = AnswerReader()
    content = [{"type": "text", "text": "Five"}, {"type": "x"}]
    text = reader.text_of({"choices": [{"index": 0, "delta": {"content": content}}], "usage": "a lot"})
    assert (text, reader.usage) == ("Five", None)


@pytest.fixture
def certified(stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubModel:
    """The stub behind TLS, with a certificate that we trust."""
    pem = str(tmp_path / "own.pem")
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=stub"
    alternative = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *request.split(), *alternative, "-keyout", pem, "-out", pem], check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    stub.speak_tls(context)
    monkeypatch.setenv("SSL_CERT_FILE", pem)
    return stub


@pytest.mark.parametrize(
    "reply", [Reply("one two three", seconds_between=0.02), Reply(pieces=["word " * 8000] * 5)], ids=["slow", "long"]
)
def test_an_answer_comes_whole_over_tls_and_the_next_one_opens_no_connection(
    client: ModelClient, certified: StubModel, reply: Reply
) -> None:
    certified.replies.extend([reply, reply])
    assert {answer(client, certified) for _ in range(2)} == {"".join(reply.parts())}
    assert len({request.port for request in certified.requests}) == 1


def test_a_hang_over_tls_ends_at_its_deadline(client: ModelClient, certified: StubModel) -> None:
    certified.replies.append(Reply("one two three", hang_at=2))
    with pytest.raises(ModelTimedOut, match="no more text arrived"):
        answer(client, certified)
