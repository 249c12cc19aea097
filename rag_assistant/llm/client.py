"""Stream an answer from an OpenAI-compatible endpoint with the SDK; and list its models."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from socket import getaddrinfo
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.llm.calls import ModelCall, Watchdog
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.failures import failures_named, refuses_tools
from rag_assistant.llm.prompt_counts import MIN_LIMIT_TOKENS, is_count, is_name
from rag_assistant.llm.reader import OPENED_IN_PROMPT, AnswerReader, PromptProgress
from rag_assistant.records import ModelReply, ModelRequest, errors
from rag_assistant.runtime.bounded_http import StreamBrokenOff, is_event_stream, sending_for
from rag_assistant.runtime.public_http import is_public

if TYPE_CHECKING:
    import openai

    from rag_assistant.settings.schema import Settings

log = logging.getLogger(__name__)

OPENAI_BASE_URL = "https://api.openai.com/v1"
RETRY_BACKOFF_SECONDS = (0.5, 1.5)
MAX_TIMEOUT_SECONDS = 10.0
LIMIT_PROBE_TIMEOUT_SECONDS = 2.0
NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,10})\s*$", re.MULTILINE)
# How Ollama, llama.cpp and LM Studio list their models.
LLAMA_CPP = "llamacpp"
OWNERS = ("library", LLAMA_CPP, "organization_owner")
# Field names in lists of models (vLLM, OpenRouter, Groq, ...).
LIMIT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")


class Retrying(Struct, frozen=True):
    """An attempt failed before its first text and will be repeated after a pause; ``why`` is a sentence."""

    why: str


# What a request yields: pieces of text, then the reply; before the first text perhaps why it takes long.
Part = str | Retrying | PromptProgress | ModelReply


class ModelClient:
    """Talks to endpoints. SDK clients are created at first use: importing the SDK takes half a second."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._watchdog = Watchdog()
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str | None], openai.OpenAI] = {}
        self._first_models: dict[str, str] = {}
        self._limits: dict[tuple[str, str | None], int | None] = {}
        # By base URL, who owns the listed models: what kind of server it is.
        self._owners: dict[str, list[Any]] = {}
        # Models seen closing a thought they hadn't opened.
        self._thinkers: set[tuple[str, str | None]] = set()

    def warm_up(self) -> None:
        """Load the SDK, so that the first question doesn't wait for it."""
        import rag_assistant.llm.sdk  # noqa: F401

    def close(self) -> None:
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def stream(
        self, endpoint: Endpoint, request: ModelRequest, call: ModelCall, *, may_retry: bool = True
    ) -> Iterator[Part]:
        """Yield an answer's text as it comes, then its reply.

        Before the first text, a refused connection, a 5xx and a 429 are retried a few times. Raises a ModelError (such
        as ContextTooLong or ToolsRefused), or AnswerStopped when ``call`` was stopped.
        """
        timeout_seconds = self._settings().answer_timeout_seconds
        if request.timeout_seconds is not None:
            timeout_seconds = min(timeout_seconds, request.timeout_seconds)
        call.begin_request(timeout_seconds)
        attempt, has_text = 0, False
        while True:
            try:
                for part in self._attempt(endpoint, request, call):
                    has_text = has_text or isinstance(part, str)
                    yield part
                return
            except (errors.ContextTooLong, errors.AnswerTooLong):
                raise
            except errors.ModelRefused as error:
                self._first_models.pop(endpoint.base_url, None)  # Perhaps it lists another model by now.
                if request.tools and refuses_tools(str(error)):
                    raise errors.ToolsRefused(str(error)) from error
                raise
            except (errors.ModelUnreachable, errors.ModelFailed, errors.ModelBusy) as error:
                pause = _pause_before_retry(error, attempt)
                if has_text or pause is None or not may_retry:
                    raise
                log.warning("The model failed (%s); retrying in %s s.", type(error).__name__, pause)
                yield Retrying(f"{error} Trying again.")
                _sleep(pause, call)
                attempt += 1

    def named(self, endpoint: Endpoint, call: ModelCall) -> Endpoint:
        """Return the endpoint with its model's name and context limit, if it reports one.

        Without a configured name, it is the first model in the endpoint's list. Raises a ModelError if a name is needed
        and there is no list.
        """
        if endpoint.model is None:
            if endpoint.base_url not in self._first_models:
                timeout_seconds = self._settings().connect_timeout_seconds + MAX_TIMEOUT_SECONDS
                listed = self._models(endpoint, call, timeout_seconds)
                if not listed:
                    raise errors.ModelRefused(
                        f"The endpoint {endpoint.base_url} lists no model. Name one in openai_model."
                    )
                self._first_models[endpoint.base_url] = listed[0]
            endpoint = replace(endpoint, model=self._first_models[endpoint.base_url])
        if endpoint.context_tokens is None and not endpoint.base_url.startswith(OPENAI_BASE_URL):
            endpoint = replace(endpoint, context_tokens=self._limit_told(endpoint))
        return endpoint

    def _limit_told(self, endpoint: Endpoint) -> int | None:
        """Return the context limit in the endpoint's list, if any; requested once, with a short timeout."""
        if endpoint.key not in self._limits:
            self._limits[endpoint.key] = None
            try:
                self._models(endpoint, ModelCall(), LIMIT_PROBE_TIMEOUT_SECONDS)
            except errors.ModelUnreachable:
                del self._limits[endpoint.key]  # It may be started later.
                return None
            except errors.ModelError as error:
                log.info("The endpoint %s does not report its models' context limits: %s", endpoint.base_url, error)
        return self._limits[endpoint.key]

    def limit_of_loaded(self, endpoint: Endpoint) -> int | None:
        """Return the context limit of the model as loaded, from servers that report it at their own address.

        Some know it only once the model has answered. Only a private address is asked, and what lists its models as
        they do.
        """
        owners = self._owners.get(endpoint.base_url, ())
        if not (any(owner in OWNERS for owner in owners) or _is_private(endpoint.base_url)):
            return None
        from rag_assistant.llm.sdk import timeouts

        call = ModelCall()
        call.wait_for(LIMIT_PROBE_TIMEOUT_SECONDS, "no answer arrived")
        for path, limit_in in OWN_ADDRESSES.items():
            url = endpoint.base_url.removesuffix("/v1") + path
            # The server may be ending, with this client closed: a RuntimeError.
            with suppress(errors.ModelError, ValueError, RuntimeError), self._asking(endpoint, call) as client:
                options: Any = {"timeout": timeouts(LIMIT_PROBE_TIMEOUT_SECONDS)}
                if path == OLLAMA_SHOW:
                    body = client.post(url, cast_to=object, body={"model": endpoint.model}, options=options)
                else:
                    body = client.get(url, cast_to=object, options=options)
                if (limit := limit_in(body, endpoint.model)) is not None:
                    return limit
        return None

    def listed(self, endpoint: Endpoint, call: ModelCall) -> tuple[str, ...]:
        """Return the names of the endpoint's models, if it tells. Raises ModelUnreachable, ModelTimedOut, ModelBusy."""
        try:
            return tuple(self._models(endpoint, call, self._settings().connect_timeout_seconds + MAX_TIMEOUT_SECONDS))
        except (errors.ModelFailed, errors.ModelRefused):
            return ()

    def _models(self, endpoint: Endpoint, call: ModelCall, timeout_seconds: float) -> list[str]:
        """Return the names of the endpoint's models, and remember their context limits."""
        from rag_assistant.llm.sdk import timeouts

        call.wait_for(timeout_seconds, "no list of models arrived")
        with self._asking(endpoint, call) as client:
            answer = client.models.with_raw_response.list(timeout=timeouts(self._settings().connect_timeout_seconds))
            try:
                models = json.loads(answer.text)["data"]
                listed = {name: limit_in_list(model) for model in models if is_name(name := model["id"])}
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise errors.ModelFailed(f"The endpoint {endpoint.base_url} does not list its models.") from error
        self._owners[endpoint.base_url] = [model.get("owned_by") for model in models]
        self._limits |= {(endpoint.base_url, name): limit for name, limit in listed.items()}
        return list(listed)

    def _attempt(
        self, endpoint: Endpoint, request: ModelRequest, call: ModelCall
    ) -> Iterator[str | PromptProgress | ModelReply]:
        from openai import APIConnectionError

        from rag_assistant.llm.sdk import ANSWER, timeouts

        settings = self._settings()
        thinks_at_once = endpoint.key in self._thinkers or bool(OPENED_IN_PROMPT.search(endpoint.model or ""))
        reader = AnswerReader(endpoint.api_key, thinks_at_once=thinks_at_once)
        body = _request_body(endpoint, request)
        if endpoint.local or LLAMA_CPP in self._owners.get(endpoint.base_url, ()):
            body["return_progress"] = True
        call.wait_for(settings.connect_timeout_seconds + settings.first_token_timeout_seconds, "no text arrived")
        options = {"timeout": timeouts(settings.connect_timeout_seconds)}
        # Sent as is: ``chat.completions`` would examine every message.
        how: Any = {"cast_to": object, "stream": True, "stream_cls": ANSWER, "body": body, "options": options}
        with (
            self._asking(endpoint, call, lambda: reader.shown) as client,
            client.post("/chat/completions", **how) as answer,
        ):
            texts: Iterator[str]
            if is_event_stream(answer.response):
                texts = map(reader.text_of, answer)
            else:
                answer.response.read()
                texts = iter([reader.whole_answer(answer.response.text)])
            try:
                progress = reader.progress
                for text in texts:
                    if progress != reader.progress:  # It is alive.
                        progress = reader.progress
                        call.wait_for(settings.first_token_timeout_seconds, "no text arrived")
                        yield progress
                    if text:
                        call.wait_for(None)  # The consumer of the text may take its time.
                        yield text
                        call.wait_for(settings.token_timeout_seconds, "no more text arrived")
            except APIConnectionError as error:
                # Many mark the last token as the last one, and some send nothing more.
                if not isinstance(broken := error.__cause__, StreamBrokenOff):
                    raise
                if broken.body:
                    yield reader.whole_answer(broken.body.decode("utf-8", "replace"))
                elif reader.finish_reason is None:
                    raise
        if rest := reader.rest():
            yield rest
        (self._thinkers.add if reader.thoughts.is_closed_only else self._thinkers.discard)(endpoint.key)
        yield reader.reply()

    @contextmanager
    def _asking(
        self, endpoint: Endpoint, call: ModelCall, shown: Callable[[], bool] = lambda: False
    ) -> Iterator[openai.OpenAI]:
        """Give the client for a request of a call, which is watched; errors are translated."""
        from rag_assistant.llm.sdk import MAX_BODY_BYTES, MAX_STREAM_BYTES, open_client

        key = (endpoint.base_url, endpoint.api_key)
        with failures_named(endpoint, call, shown), self._watchdog.watching(call), sending_for(call):
            with self._lock:
                client = self._clients[key] = self._clients.get(key) or open_client(
                    *key, MAX_BODY_BYTES, MAX_STREAM_BYTES
                )
            yield client


def collect(parts: Iterable[Part]) -> tuple[str, ModelReply]:
    """Return the whole text of an answer, and its reply."""
    texts, reply = [], ModelReply()
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, ModelReply):
            reply = part
    return "".join(texts), reply


def _request_body(endpoint: Endpoint, request: ModelRequest) -> dict[str, Any]:
    """Return the request body; unset fields are left out, so that the model's defaults apply."""
    body = request.as_body(endpoint.model) | {"stream": True, "stream_options": {"include_usage": True}}
    if "max_tokens" in body and endpoint.base_url.startswith(OPENAI_BASE_URL):
        # OpenAI's newer models reject the old name; everybody else knows only that.
        body["max_completion_tokens"] = body.pop("max_tokens")
    return body


def _pause_before_retry(error: errors.ModelError, attempt: int) -> float | None:
    """Return how long to wait before the next attempt, ``None`` if there is none."""
    requested = error.retry_after_seconds or 0.0
    if attempt >= len(RETRY_BACKOFF_SECONDS) or requested > MAX_TIMEOUT_SECONDS:
        return None
    return max(RETRY_BACKOFF_SECONDS[attempt], requested)


def _sleep(seconds: float, call: ModelCall) -> None:
    """Wait, or raise AnswerStopped if the call is stopped meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        call.refuse_stopped()
        time.sleep(min(0.1, max(0.0, end - time.monotonic())))


def _is_private(base_url: str) -> bool:
    """Return whether an endpoint is in a network of our own."""
    try:
        return not all(is_public(str(row[4][0])) for row in getaddrinfo(urlsplit(base_url).hostname, None))
    except (OSError, ValueError):
        return False


def limit_in_list(model: dict[str, Any]) -> int | None:
    """Return the context limit in an entry of a list of models."""
    meta = model.get("meta")
    values = (part.get(name) for part in (model, meta if isinstance(meta, dict) else {}) for name in LIMIT_NAMES)
    return next(filter(None, map(_limit, values)), None)


def _of_loaded(listed: str, name: str, limit: str, body: Any, model: str | None) -> int | None:
    """Return the limit of a loaded model from a list of such models."""
    entries = body.get(listed) if isinstance(body, dict) else None
    for one in entries if isinstance(entries, list) else ():
        # Ollama allows leaving out that suffix.
        if isinstance(one, dict) and one.get(name) in (model, f"{model}:latest"):
            return _limit(one.get(limit))
    return None


def _set_in_ollama(body: Any, _model: str | None) -> int | None:
    """Return the limit from ``/api/show``, if it is set for the model, which need not be loaded."""
    parameters = body.get("parameters") if isinstance(body, dict) else None
    match = NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return _limit(int(match[1])) if match else None


def _of_llama_cpp(body: Any, _model: str | None) -> int | None:
    """Return the limit of each slot from ``/props``."""
    settings = body.get("default_generation_settings") if isinstance(body, dict) else None
    return _limit(settings.get("n_ctx")) if isinstance(settings, dict) else None


# Beside ``/v1``: where a server reports it, and how: Ollama twice (it needs the model's name), llama.cpp, LM Studio.
OLLAMA_SHOW = "/api/show"
OWN_ADDRESSES: dict[str, Callable[[Any, str | None], int | None]] = {
    "/api/ps": partial(_of_loaded, "models", "name", "context_length"),
    OLLAMA_SHOW: _set_in_ollama,
    "/props": _of_llama_cpp,
    "/api/v0/models": partial(_of_loaded, "data", "id", "loaded_context_length"),
}


def _limit(value: object) -> int | None:
    return value if is_count(value) and value >= MIN_LIMIT_TOKENS else None
