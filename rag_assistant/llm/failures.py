"""What goes wrong with a model, in words: the SDK's and the network's exceptions become errors of ours."""

from __future__ import annotations

import math
import re
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.refusals import MAY_BE_TOO_LONG, MODEL_MISCARRIED, code_of, context_too_long, reason_in
from rag_assistant.records.errors import (
    QUESTION_KEPT,
    TEXT_SAVED,
    AnswerInterrupted,
    AnswerStopped,
    AnswerTakenOver,
    AnswerTooLong,
    AssistantError,
    ContextTooLong,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelTimedOut,
    ModelUnreachable,
    StorageFailed,
)
from rag_assistant.records.validation import storable

if TYPE_CHECKING:
    import openai

MAX_REASON_CHARS = 300
# A shorter key is a word for a server that has no keys, such as "ollama", and may stand in what it says.
MIN_KEY_CHARS = 8
MAX_RETRY_AFTER_SECONDS = 86_400.0
# And not about a path, such as /models.
ABOUT_A_MODEL = re.compile(r"(?<![/\w])model(?![/\w])", re.IGNORECASE)
CHECK_ADDRESS = "Check openai_base_url; it usually ends in /v1."


class failures_named:
    """Turn what the SDK and the network raise into errors of ours, which say what to do."""

    def __init__(self, endpoint: Endpoint, call: ModelCall, shown: Callable[[], bool] = lambda: False) -> None:
        self._endpoint = endpoint
        self._call = call
        self._shown = shown

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, GeneratorExit):
            return
        named = self._name(error)
        try:
            if named is not error:
                raise named from error
        finally:
            # A frame that knows the error it raised keeps both, and the megabytes that were read, until the next
            # collection of cycles.
            del named, error

    def _name(self, error: BaseException) -> BaseException:
        import httpx2
        import openai

        from rag_assistant.llm.transport import OverlongBody

        if isinstance(error, (StorageFailed, AnswerTakenOver)):  # What became of its text is not the model's fault.
            return error
        shown = self._shown()
        where = "The local model" if self._endpoint.local else f"The model at {self._endpoint.base_url}"
        try:
            self._call.refuse_stopped(TEXT_SAVED if shown else QUESTION_KEPT)
        except (AnswerStopped, AnswerInterrupted) as ended:
            return ended
        if self._call.overdue is not None:
            kept = TEXT_SAVED if shown else QUESTION_KEPT
            return ModelTimedOut(f"{where} took too long: {self._call.overdue}.{kept}")
        if isinstance(error, AssistantError) and not (shown and isinstance(error, (ModelFailed, ContextTooLong))):
            return error
        if isinstance(error, openai.APIStatusError) and not shown:
            return _refusal(where, self._endpoint, error)
        network = (openai.APIConnectionError, httpx2.HTTPError, ConnectionError)
        if shown and isinstance(error, (*network, ModelFailed, ContextTooLong)):
            return AnswerInterrupted(f"{where} dropped the connection in the middle of its answer.{TEXT_SAVED}")
        if isinstance(error, OverlongBody):
            return AnswerTooLong(f"{where} sent {error}; no answer is that long.{QUESTION_KEPT}")
        if isinstance(error, network):
            connected = isinstance(error, (httpx2.ReadError, httpx2.RemoteProtocolError, ConnectionError))
            if connected or isinstance(error.__cause__, (httpx2.ReadError, httpx2.RemoteProtocolError)):
                return ModelFailed(f"{where} closed the connection without an answer.{QUESTION_KEPT}")
            return ModelUnreachable(f"{where} could not be reached{cause_of(error)}.{QUESTION_KEPT}")
        return error


def cause_of(error: BaseException) -> str:
    """Return why a connection was not made, as the rest of a sentence, as far as the chain of exceptions tells."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f": its certificate is not trusted ({seen.verify_message})"
        if isinstance(seen, ssl.SSLError):
            return ": the server doesn't use TLS; try http:// instead of https://"
        if isinstance(seen, socket.gaierror):
            return ": the host name could not be found"
        if isinstance(seen, ConnectionRefusedError):
            return ": nothing is listening there; the server may not be running"
        if isinstance(seen, TimeoutError):
            return ": nothing answered in time; the address may be wrong, or a firewall is in the way"
        if isinstance(seen, OSError) and seen.strerror:
            return f": {seen.strerror.lower()}"
        seen = seen.__cause__ or seen.__context__
    return ""


def _refusal(where: str, endpoint: Endpoint, error: openai.APIStatusError) -> AssistantError:
    status, reason = error.status_code, reason_given(error.body, endpoint.api_key)
    too_long = context_too_long(error.body) if status in MAY_BE_TOO_LONG else None
    if too_long is not None:
        return too_long
    if status == 401 and endpoint.api_key is None:
        return ModelRefused(f"{where} asks for an API key (401). Set openai_api_key.")
    if status == 401:
        return ModelRefused(f"{where} rejected the API key (401). Check openai_api_key.")
    if status == 403:
        return ModelRefused(f"{where} denied access (403): {reason} Check what the API key is allowed to do.")
    if status == 404 and endpoint.model is not None and ABOUT_A_MODEL.search(reason):
        return ModelRefused(
            f'There is no model "{endpoint.model}" at {endpoint.base_url} (404): {reason} Check openai_model.'
        )
    if status == 404:
        return ModelRefused(f"Nothing at {endpoint.base_url} takes questions (404): {reason} {CHECK_ADDRESS}")
    seconds = _seconds(error.response.headers.get("retry-after"))
    if status == 429:
        when = f" Try again in {_in_seconds(seconds)}." if seconds is not None else ""
        return ModelBusy(f"{where} is too busy (429): {reason}{when}", seconds)
    if status >= 500 or code_of(error.body) in MODEL_MISCARRIED:
        return ModelFailed(f"{where} failed ({status}): {reason}", seconds)
    return ModelRefused(f"{where} refused the request ({status}): {reason}")


def reason_given(body: object, api_key: str | None = None) -> str:
    """Return what an endpoint gave as its reason, as one short sentence that can be kept, without the key."""
    text = storable(" ".join(reason_in(body).split()))
    if api_key and len(api_key) >= MIN_KEY_CHARS:
        text = text.replace(api_key, "[the key]")
    text = text[:MAX_REASON_CHARS]
    return text if text.endswith(".") else text + "."


def _in_seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"


def _seconds(header: str | None) -> float | None:
    """Return the seconds that an endpoint asks for, at most a day; ``None`` where it names none."""
    try:
        seconds = float(header or "nan")
    except ValueError:
        return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER_SECONDS) if math.isfinite(seconds) else None
