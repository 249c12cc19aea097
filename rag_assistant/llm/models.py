"""The model that answers now: the configured endpoint, or the local model, or else quotes."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from copy import copy
from typing import Any

from msgspec.structs import replace

from rag_assistant.history import estimate_tokens
from rag_assistant.llm.calibration import Calibration, ExtraRequests, ToolHabits, estimated_tokens
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import LIMIT_PROBE_TIMEOUT_SECONDS, OPENAI_BASE_URL, ModelClient, Part, Retrying, collect
from rag_assistant.llm.endpoint import QUOTES_ENDPOINT, Endpoint
from rag_assistant.llm.local_model import LocalModel
from rag_assistant.llm.prompt_counts import plausible_usage
from rag_assistant.records import ModelReply, ModelRequest, Reading
from rag_assistant.records.errors import ModelError, ModelTimedOut, ModelUnreachable, ToolsRefused, cause_alone
from rag_assistant.runtime.telemetry.steps import step
from rag_assistant.settings.schema import Settings

log = logging.getLogger(__name__)

OPENAI_DEFAULT_MODEL = "gpt-4o-mini"
IN_QUEUE = "The local model answers one question at a time. Before yours: {n}."
# Called with the model's name and the tokens of a request: sent, cached of those, and written.
CountTokens = Callable[[str, int, int, int], None]
RESTARTING = "The local model ended and is being started again."


class LanguageModels:
    """Chooses the endpoint for each question, so that changed settings apply from the next one on."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        refuse_beyond_limits: Callable[[], None],
        count_tokens: CountTokens,
        local: LocalModel | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self._settings = settings
        self.refuse_beyond_limits = refuse_beyond_limits
        self._count_tokens = count_tokens
        self._local = local
        self.client = ModelClient(settings)
        self.calibration = calibration or Calibration()
        # By base URL and configured model: the result of the last list request.
        self._last: dict[tuple[str, str | None], Endpoint] = {}
        self._states: dict[str, str] = {}
        self._asked_limits: dict[tuple[str, str | None], threading.Thread | None] = {}
        self.tool_habits = ToolHabits()
        self.extra_requests = ExtraRequests()
        # Which models refused pictures, with the settings at the time, and which a JSON schema for their answer.
        self.blind: dict[tuple[str, str | None], Settings] = {}
        self.schemaless: set[tuple[str, str | None]] = set()

    def for_person(self, refuse_beyond_limits: Callable[[], None], count_tokens: CountTokens) -> LanguageModels:
        """Return the same models for a person, whose tokens are counted and limited."""
        models = copy(self)
        models.refuse_beyond_limits, models._count_tokens = refuse_beyond_limits, count_tokens
        return models

    def trying(self, settings: Settings) -> LanguageModels:
        """Return the same models with settings that aren't in force."""
        models = copy(self)
        models._settings = lambda: settings
        return models

    @property
    def connected(self) -> bool:
        """Whether a model is configured: an endpoint, a key or a file. Otherwise answers are quotes."""
        return self.has_endpoint or self._local is not None

    @property
    def has_endpoint(self) -> bool:
        """Whether an endpoint is configured: its address or a key is set."""
        settings = self._settings()
        return settings.openai_base_url is not None or settings.openai_api_key is not None

    def start(self) -> None:
        """Load the local model in the background, if it is the one that answers."""
        if self._local is not None and not self.has_endpoint:
            self._local.process.start()

    def close(self) -> None:
        """Stop the local model's process, and close the connections to endpoints."""
        for asking in filter(None, list(self._asked_limits.values())):
            asking.join(LIMIT_PROBE_TIMEOUT_SECONDS)
        self.client.close()
        if self._local is not None:
            self._local.process.close()

    def endpoint(self, call: ModelCall) -> Endpoint:
        """Return the endpoint with its model's name; waits for the local one. Raises a ModelError."""
        if not self.connected:
            return QUOTES_ENDPOINT
        if self._local is not None and not self.has_endpoint:
            endpoint = self._started(self._local, call)
            return replace(endpoint, takes_tools=self.tool_habits.takes_tools(endpoint))
        endpoint = self.client.named(self.configured_endpoint(), call)
        endpoint = replace(endpoint, takes_tools=self.tool_habits.takes_tools(endpoint))
        self._last[self.configured_endpoint().key] = endpoint
        return self.calibration.limited(endpoint)

    def _started(self, local: LocalModel, call: ModelCall) -> Endpoint:
        """Wait for the local model. Raises ModelUnreachable, AnswerStopped."""
        try:
            return local.endpoint(lambda: call.ended)
        except ModelUnreachable:
            call.refuse_stopped()
            raise

    def summary_endpoint(self, endpoint: Endpoint, call: ModelCall) -> Endpoint:
        """Return the endpoint with the model that writes summaries. Raises a ModelError."""
        model = self._settings().summary_model
        if model is None or not self.has_endpoint:
            return endpoint
        return self.calibration.limited(self.client.named(replace(self.configured_endpoint(), model=model), call))

    def configured_endpoint(self) -> Endpoint:
        """Return the endpoint as configured."""
        settings = self._settings()
        base_url = settings.openai_base_url or OPENAI_BASE_URL
        model = settings.openai_model or (OPENAI_DEFAULT_MODEL if base_url == OPENAI_BASE_URL else None)
        return Endpoint(base_url.rstrip("/"), settings.openai_api_key, model, settings.model_context_tokens)

    def listed(self) -> tuple[str, ...]:
        """Return the names of the endpoint's models, none if it lists none. Raises a ModelError."""
        endpoint = self.configured_endpoint()
        with self._noting_failures(endpoint):
            listed = self.client.listed(endpoint, ModelCall())
            self._states[endpoint.base_url] = "ready"
            return listed

    def ask_state(self) -> str:
        """Return the model's state after requesting the endpoint's list of models, which costs nothing."""
        if self.has_endpoint:
            with contextlib.suppress(ModelError):
                self.listed()
        return self.state

    def stream(
        self,
        endpoint: Endpoint,
        request: ModelRequest,
        call: ModelCall,
        *,
        may_retry: bool = True,
        teaches: bool = True,
    ) -> Generator[Part]:
        """Yield the parts of an answer; see ModelClient.stream. Refusals are remembered.

        A request beside an answer ``teaches`` nothing about the endpoint's limit. The local model answers one request
        at a time; time in its queue doesn't count, and if it ends before the first text, its restart is waited for.
        """
        if endpoint.quotes:
            raise ModelUnreachable("No model is connected.")
        if self._local is None or not endpoint.local:
            yield from self._stream(endpoint, request, call, may_retry, teaches)
            return
        with self._local.place(call) as places:
            yield from (Retrying(IN_QUEUE.format(n=before)) for before in places)
            has_text = False
            try:
                for part in self._stream(endpoint, request, call, may_retry, teaches):
                    has_text = has_text or isinstance(part, str)
                    yield part
            except ModelUnreachable:
                if has_text:
                    raise
                yield Retrying(RESTARTING)
                yield from self._stream(self._started(self._local, call), request, call, may_retry, teaches)

    def _stream(
        self, endpoint: Endpoint, request: ModelRequest, call: ModelCall, may_retry: bool, teaches: bool
    ) -> Generator[Part]:
        with step("model"), self._noting_failures(endpoint):
            texts: list[str] = []
            reply: ModelReply | None = None
            try:
                for part in self.client.stream(endpoint, request, call, may_retry=may_retry):
                    if isinstance(part, str):
                        texts.append(part)
                    elif isinstance(part, ModelReply):
                        usage = plausible_usage(part.usage, request, estimated_tokens(request), "".join(texts))
                        part = replace(part, usage=usage)
                        reply = part = replace(part, reading=self._read(endpoint, request, part, teaches))
                        call.replies.append(reply)
                    yield part
            finally:
                if reply is not None or texts:
                    self._note_answer(endpoint, request, "".join(texts), reply.usage if reply else None)

    def ask_aside(self, endpoint: Endpoint, request: ModelRequest, call: ModelCall) -> dict[str, Any]:
        """Send a request whose answer is not shown, and return the receipt's record: ``request`` and ``answer``.

        The answer is empty if the model failed, or if the endpoint truncated the request. Raises AnswerStopped.
        """
        answer = ""
        try:
            text, reply = collect(self.stream(endpoint, request, call, teaches=False))
            answer = text if reply.reading is None or reply.reading.limit is None else ""
        except ModelError as error:
            log.warning("A request before an answer failed: %s", cause_alone(str(error)))
        finally:
            call.restart_deadline()
        return {"request": request.as_body(endpoint.model), "answer": answer}

    def _read(self, endpoint: Endpoint, request: ModelRequest, reply: ModelReply, teaches: bool) -> Reading | None:
        """Return how much of a request was read; at first and after a low count, the server is asked for its limit."""
        reading = self.calibration.read(endpoint, request, reply, teaches=teaches)
        is_low = reading is not None and (reading.limit is not None or self.calibration.suspects(endpoint, reading))
        if endpoint.local or (endpoint.key in self._asked_limits and not is_low):
            return reading
        self._asked_limits[endpoint.key] = None
        if reading is None or not is_low:
            asking = threading.Thread(target=self._learn_limit, args=(endpoint,), name="model limit", daemon=True)
            self._asked_limits[endpoint.key] = asking
            asking.start()
            return reading
        limit = self._learn_limit(endpoint)
        return reading if limit is None else replace(reading, limit=limit if limit < reading.sent else None)

    def _learn_limit(self, endpoint: Endpoint) -> int | None:
        if (limit := self.client.limit_of_loaded(endpoint)) is not None:
            self.calibration.learn_limit(endpoint, limit)
        return limit

    def _note_answer(self, endpoint: Endpoint, request: ModelRequest, text: str, usage: dict[str, Any] | None) -> None:
        """Record a successful answer, and count its tokens; estimated if nobody reports them."""
        self._states[endpoint.base_url] = "ready"
        counts = usage or {}
        sent, written = (counts.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        if not sent + written:
            estimates = estimated_tokens(request), estimate_tokens(text)
            sent, written = (round(estimate * self.calibration.ratio(endpoint)) for estimate in estimates)
        self._count_tokens(endpoint.model or "", sent, counts.get("cached_tokens", 0), written)

    @contextlib.contextmanager
    def _noting_failures(self, endpoint: Endpoint) -> Iterator[None]:
        """Remember what an endpoint refuses, and that it is unreachable."""
        try:
            yield
        except ToolsRefused:
            self.tool_habits.learn_refusal(endpoint)
            raise
        except (ModelUnreachable, ModelTimedOut) as error:
            self._states[endpoint.base_url] = "unreachable"
            if isinstance(error, ModelUnreachable):  # It may be started again, with another limit.
                self.forget(endpoint)
                self._asked_limits.pop(endpoint.key, None)
            raise

    def forget(self, endpoint: Endpoint) -> None:
        """Forget what was learned of an endpoint's limit, and what it refuses."""
        for learned in (self.calibration, self.extra_requests, self.tool_habits):
            learned.forget(endpoint)
        self.blind.pop(endpoint.key, None)
        self.schemaless.discard(endpoint.key)

    @property
    def state(self) -> str:
        """The model's state without asking it: of an endpoint, the outcome of the last request; ``off`` without any."""
        if not self.connected:
            return "off"
        if self._local is not None and not self.has_endpoint:
            return self._local.process.state
        return self._states.get(self.known_endpoint().base_url, "not_checked")

    def listed_endpoint(self) -> Endpoint:
        """Return the endpoint with the limit in its list, which is requested if nothing is known yet."""
        if self.has_endpoint and self.configured_endpoint().key not in self._last:
            with contextlib.suppress(ModelError):
                self.endpoint(ModelCall())
        return self.known_endpoint()

    def known_endpoint(self) -> Endpoint:
        """Return the endpoint as far as it is known without requests or waiting."""
        if not self.connected:
            return QUOTES_ENDPOINT
        if self._local is not None and not self.has_endpoint:
            return self._local.expected_endpoint()
        configured = self.configured_endpoint()
        if (last := self._last.get(configured.key)) is not None:
            return self.calibration.limited(last)
        return replace(configured, api_key=None)
