"""Stream an answer from an OpenAI-compatible endpoint.

The SDK's client lists models and gives the headers; a request goes over the connection below it, and its stream is read
here, line by line, because the SDK's object for each token costs more than all the rest of the server, and its way to
that connection as much as a search (docs/benchmarks.md).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.llm.calibration import MIN_LIMIT_TOKENS
from rag_assistant.llm.calls import ModelCall, Watchdog
from rag_assistant.llm.endpoint import Deadlines, Endpoint
from rag_assistant.llm.failures import failures_named
from rag_assistant.llm.pump import StreamPump, TextSink
from rag_assistant.llm.reader import AnswerReader
from rag_assistant.llm.refusals import refuses_tools
from rag_assistant.llm.sdk import headers_of, load_sdk, sdk_client, status_error
from rag_assistant.records import MAX_INT32, ModelReply, ModelRequest
from rag_assistant.records.errors import (
    AnswerTooLong,
    ContextTooLong,
    ModelBusy,
    ModelError,
    ModelFailed,
    ModelRefused,
    ModelUnreachable,
    ToolsRefused,
)

if TYPE_CHECKING:
    import httpx2
    import openai

    from rag_assistant.llm.transport import Body, SocketTransport

log = logging.getLogger(__name__)

OPENAI_BASE_URL = "https://api.openai.com/v1"
RETRY_BACKOFF_SECONDS = (0.5, 1.5)
MAX_TIMEOUT_SECONDS = 10.0
LIMIT_PROBE_TIMEOUT_SECONDS = 2.0
# Under these names servers tell in their list of models how many tokens one takes (vLLM, OpenRouter, LM Studio, ...).
LIMIT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")


class _Clients(Struct, frozen=True):
    """How an endpoint is reached: with the SDK, and with the connection below it, which takes questions.

    ``head`` is how the request of each question begins.
    """

    sdk: openai.OpenAI
    transport: SocketTransport
    question: httpx2.Request
    head: bytes


class ModelClient:
    """Speaks to endpoints. Its clients are made at the first use: importing the SDK takes half a second."""

    def __init__(self, deadlines: Callable[[], Deadlines]) -> None:
        self._deadlines = deadlines
        self._watchdog = Watchdog()
        self._pump = StreamPump()
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str | None], _Clients] = {}
        self._first_models: dict[str, str] = {}
        self._limits: dict[tuple[str, str | None], int | None] = {}

    def warm_up(self) -> None:
        """Load the SDK, so that the first question does not wait for it."""
        load_sdk()

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            for one in self._clients.values():
                one.transport.close()
            self._clients.clear()

    def stream(
        self,
        endpoint: Endpoint,
        request: ModelRequest,
        call: ModelCall,
        sink: TextSink,
        on_wait: Callable[[str], None] | None = lambda _sentence: None,
    ) -> ModelReply:
        """Give the answer's text to ``sink`` as it comes, and return its tool calls, finish reason and usage.

        Before the first text, a refused connection, a 5xx and a 429 are tried again a few times; ``on_wait`` is told
        why; with ``None`` nothing is. Raises a ModelError (ContextTooLong and ToolsRefused among them), or
        AnswerStopped when ``call`` was stopped, and what ``sink`` raises.
        """
        timeout_seconds = self._deadlines().answer
        if request.timeout_seconds is not None:
            timeout_seconds = min(timeout_seconds, request.timeout_seconds)
        call.begin_request(timeout_seconds)
        attempt = 0
        while True:
            try:
                return self._attempt(endpoint, request, call, sink)
            except (ContextTooLong, AnswerTooLong):
                raise
            except ModelRefused as error:
                self._first_models.pop(endpoint.base_url, None)  # Perhaps it lists another model by now.
                if request.tools and refuses_tools(str(error)):
                    raise ToolsRefused(str(error)) from error
                raise
            except (ModelUnreachable, ModelFailed, ModelBusy) as error:
                pause = _pause_before_retry(error, attempt)
                if sink.text or pause is None or on_wait is None:
                    raise
                log.warning("The model failed and is asked again in %s s: %s", pause, error)
                on_wait(f"{error} Trying again.")
                _sleep(pause, call)
                attempt += 1

    def named(self, endpoint: Endpoint, call: ModelCall) -> Endpoint:
        """Return the endpoint with its model's name and with how many tokens that takes, as far as it tells.

        Where no name is set, the first of its list. Raises a ModelError if a name is needed and no list comes.
        """
        if endpoint.model is None:
            if endpoint.base_url not in self._first_models:
                timeout_seconds = self._deadlines().connect + MAX_TIMEOUT_SECONDS
                listed = self._models(endpoint, call, timeout_seconds)
                if not listed:
                    raise ModelRefused(f"The endpoint {endpoint.base_url} lists no model. Name one in openai_model.")
                self._first_models[endpoint.base_url] = next(iter(listed))
                self._keep_limits(endpoint, listed)
            endpoint = replace(endpoint, model=self._first_models[endpoint.base_url])
        if endpoint.context_tokens is None and not endpoint.base_url.startswith(OPENAI_BASE_URL):
            endpoint = replace(endpoint, context_tokens=self._limit_told(endpoint))
        return endpoint

    def _limit_told(self, endpoint: Endpoint) -> int | None:
        """Return how many tokens the model takes, if the endpoint's list says so; asked once, without much patience."""
        if endpoint.key not in self._limits:
            self._limits[endpoint.key] = None
            try:
                self._keep_limits(endpoint, self._models(endpoint, ModelCall(), LIMIT_PROBE_TIMEOUT_SECONDS))
            except ModelError as error:
                log.info("The endpoint %s does not tell what its models take: %s", endpoint.base_url, error)
        return self._limits[endpoint.key]

    def _keep_limits(self, endpoint: Endpoint, listed: dict[str, int | None]) -> None:
        for name, limit in listed.items():
            self._limits[(endpoint.base_url, name)] = limit

    def listed(self, endpoint: Endpoint, call: ModelCall) -> tuple[str, ...]:
        """Return the names of the endpoint's models, none where it gives no list; only an answer says why.

        Raises ModelUnreachable, ModelTimedOut, ModelBusy.
        """
        try:
            return tuple(self._models(endpoint, call, self._deadlines().connect + MAX_TIMEOUT_SECONDS))
        except (ModelFailed, ModelRefused):
            return ()

    def _models(self, endpoint: Endpoint, call: ModelCall, timeout_seconds: float) -> dict[str, int | None]:
        """Return the names of the endpoint's models, each with how many tokens it takes, where that is told."""
        from rag_assistant.llm.transport import current_call

        current_call.set(call)
        call.wait_for(timeout_seconds, "no list of models arrived")
        with failures_named(endpoint, call), self._watchdog.watching(call):
            answer = self._to(endpoint).sdk.models.with_raw_response.list()
            try:
                listed = json.loads(answer.text)["data"]
                return {str(model["id"]): _limit_in(model) for model in listed}
            except (ValueError, KeyError, TypeError) as error:
                raise ModelFailed(f"The endpoint {endpoint.base_url} gives no list of models.") from error

    def _attempt(self, endpoint: Endpoint, request: ModelRequest, call: ModelCall, sink: TextSink) -> ModelReply:
        deadlines = self._deadlines()
        reader = AnswerReader(endpoint.api_key)

        def take(text: str) -> None:
            if text:
                call.wait_for(deadlines.token, "no more text arrived")
                sink.take(text)

        call.wait_for(deadlines.connect + deadlines.first_token, "no text arrived")
        with (
            failures_named(endpoint, call, lambda: reader.shown),
            self._watchdog.watching(call),
            closing(self._open(endpoint, _request_body(endpoint, request), call)) as body,
        ):
            if body.is_event_stream:
                self._pump.run(body, lambda piece: take(reader.feed(piece)), sink)
                reader.check()
            else:
                self._pump.run(body, reader.feed_whole, sink)
                take(reader.whole_answer())
                sink.settle_patiently()
            if call.ended or not reader.complete:
                raise ConnectionResetError("the stream ended before the answer did")
        calls = reader.tool_calls.calls()
        return ModelReply(reader.finish_reason, reader.usage, calls, thought=reader.thought)

    def _open(self, endpoint: Endpoint, question: bytes, call: ModelCall) -> Body:
        """Send a question, and return what is answered when its headers are there. Raises openai.APIStatusError."""
        to = self._to(endpoint)
        trace = f"traceparent: {call.traceparent}\r\n".encode() if call.traceparent else b""
        request = b"%b%bContent-Length: %d\r\n\r\n%b" % (to.head, trace, len(question), question)
        body = to.transport.send(to.question.url, request, call)
        if 200 <= body.status < 300:
            return body
        with closing(body.as_response(to.question)) as response:
            raise status_error(response)

    def _to(self, endpoint: Endpoint) -> _Clients:
        """Return how an endpoint is reached."""
        import httpx2

        from rag_assistant.llm.transport import SocketTransport, head_of

        key = (endpoint.base_url, endpoint.api_key)
        with self._lock:
            if key not in self._clients:
                transport = SocketTransport(lambda: self._deadlines().connect)
                http = httpx2.Client(transport=transport, timeout=None)
                sdk = sdk_client(endpoint.base_url, endpoint.api_key, http_client=http)
                url = httpx2.URL(f"{endpoint.base_url.rstrip('/')}/chat/completions")
                question = http.build_request("POST", url, headers=headers_of(sdk))
                del question.headers["Content-Length"]
                self._clients[key] = _Clients(sdk, transport, question, head_of(question))
            return self._clients[key]


def _limit_in(model: dict[str, Any]) -> int | None:
    """Return the longest request that an entry of a list of models tells of."""
    meta = model.get("meta")
    for told in (model, meta if isinstance(meta, dict) else {}):
        for name in LIMIT_NAMES:
            limit = told.get(name)
            if isinstance(limit, int) and not isinstance(limit, bool) and MIN_LIMIT_TOKENS <= limit <= MAX_INT32:
                return limit
    return None


def _request_body(endpoint: Endpoint, request: ModelRequest) -> bytes:
    """Return the request as JSON; what is not set is not sent, so that the model's own default holds."""
    body = request.as_body(endpoint.model) | {"stream": True, "stream_options": {"include_usage": True}}
    if "max_tokens" in body and endpoint.base_url.startswith(OPENAI_BASE_URL):
        # OpenAI's newer models refuse the old name; everybody else knows only that.
        body["max_completion_tokens"] = body.pop("max_tokens")
    return json.dumps(body, ensure_ascii=False).encode()


def _pause_before_retry(error: ModelError, attempt: int) -> float | None:
    """Return how long to wait before the next attempt, ``None`` if there is none."""
    if attempt >= len(RETRY_BACKOFF_SECONDS):
        return None
    asked = error.retry_after_seconds
    if asked is not None and asked > MAX_TIMEOUT_SECONDS:
        return None
    return max(RETRY_BACKOFF_SECONDS[attempt], asked or 0.0)


def _sleep(seconds: float, call: ModelCall) -> None:
    """Wait, unless the call is stopped meanwhile. Raises AnswerStopped then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        call.refuse_stopped()
        time.sleep(min(0.1, max(0.0, end - time.monotonic())))
