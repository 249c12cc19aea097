"""Translates exceptions of the SDK and the network into our errors, with messages for people."""

from __future__ import annotations

import math
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.refusals import MAY_BE_TOO_LONG, MODEL_MISCARRIED, code_of, context_too_long, reason_in
from rag_assistant.records import errors
from rag_assistant.records.errors import QUESTION_KEPT, TEXT_SAVED
from rag_assistant.records.validation import storable
from rag_assistant.runtime.bounded_http import INVALID, OverlongBody, deadline

if TYPE_CHECKING:
    import openai

MAX_REASON_CHARS = 300
# A shorter key is a placeholder for a server without keys, such as "ollama", and may occur in its messages.
MIN_KEY_CHARS = 8
MAX_RETRY_AFTER_SECONDS = 86_400.0
# And not about a path, such as /models.
ABOUT_A_MODEL = re.compile(r"(?<![/\w])model(?![/\w])", re.IGNORECASE)
CHECK_ADDRESS = "Check openai_base_url; it usually ends in /v1."


@contextmanager
def failures_named(endpoint: Endpoint, call: ModelCall, shown: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Translate exceptions of the SDK and the network into errors that say what to do."""
    try:
        yield
    except Exception as error:
        named = _named(error, endpoint, call, shown())
        if named is error:
            raise
        raise named from error


@contextmanager
def service_failures(
    kind: Callable[[str], errors.AssistantError], where: str, api_key: str | None, timeout_seconds: float
) -> Iterator[None]:
    """Bound requests outside of questions; failures become errors of one ``kind`` that say ``where`` it was."""
    import openai

    try:
        with deadline(timeout_seconds):
            yield
    except openai.APIStatusError as error:
        raise kind(f"{where} refused the request ({error.status_code}): {reason_given(error.body, api_key)}") from error
    except openai.APITimeoutError as error:
        raise kind(f"{where} did not answer within {timeout_seconds:g} seconds.") from error
    except openai.APIConnectionError as error:
        raise kind(f"{where} could not be reached{cause_of(error)}.") from error
    except (openai.OpenAIError, *INVALID) as error:
        raise kind(f"{where} did not return a valid answer.") from error


def _named(error: Exception, endpoint: Endpoint, call: ModelCall, shown: bool) -> Exception:
    import httpx2
    import openai

    where = "The local model" if endpoint.local else f"The model at {endpoint.base_url}"
    consequence = TEXT_SAVED if shown else QUESTION_KEPT
    try:
        call.refuse_stopped(consequence)
    except (errors.AnswerStopped, errors.AnswerInterrupted) as ended:
        return ended
    if call.overdue is not None:
        return errors.ModelTimedOut(f"{where} took too long: {call.overdue}.{consequence}")
    if isinstance(error, openai.APIStatusError):
        error = _refusal(where, endpoint, error)
    elif isinstance(error, (ValueError, RecursionError)):
        error = errors.ModelFailed("The model sent something that is not JSON.")
    elif isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        error = reported_error(error.body, endpoint.api_key)
    if isinstance(error, errors.AssistantError) and not (
        shown and isinstance(error, (errors.ModelFailed, errors.ContextTooLong))
    ):
        return error
    network = (openai.APIConnectionError, httpx2.HTTPError, ConnectionError)
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, OverlongBody):
        return errors.AnswerTooLong(f"{where} sent {cause}; no answer is that long.{consequence}")
    if shown and isinstance(error, errors.AssistantError):
        return errors.AnswerInterrupted(f"{error}{TEXT_SAVED}")
    if shown and isinstance(error, network):
        return errors.AnswerInterrupted(f"{where} dropped the connection in the middle of its answer.{TEXT_SAVED}")
    if isinstance(cause, (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError, ConnectionError)):
        return errors.ModelFailed(f"{where} closed the connection without an answer.{QUESTION_KEPT}")
    if isinstance(error, network):
        return errors.ModelUnreachable(f"{where} could not be reached{cause_of(error)}.{QUESTION_KEPT}")
    return error


def reported_error(body: object, api_key: str | None) -> errors.AssistantError:
    """Return the error that an endpoint reports within its answer."""
    return context_too_long(body) or errors.ModelFailed(f"The model reported an error: {reason_given(body, api_key)}")


def cause_of(error: BaseException) -> str:
    """Return why a connection failed, as the rest of a sentence, as far as the chain of exceptions tells."""
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


def _refusal(where: str, endpoint: Endpoint, error: openai.APIStatusError) -> errors.AssistantError:
    status, reason = error.status_code, reason_given(error.body, endpoint.api_key)
    too_long = context_too_long(error.body) if status in MAY_BE_TOO_LONG else None
    if too_long is not None:
        return too_long
    if status == 401 and endpoint.api_key is None:
        return errors.ModelRefused(f"{where} asks for an API key (401). Set openai_api_key.")
    if status == 401:
        return errors.ModelRefused(f"{where} rejected the API key (401). Check openai_api_key.")
    if status == 403:
        return errors.ModelRefused(f"{where} denied access (403): {reason} Check what the API key is allowed to do.")
    if status == 404 and endpoint.model is not None and ABOUT_A_MODEL.search(reason):
        return errors.ModelRefused(
            f'There is no model "{endpoint.model}" at {endpoint.base_url} (404): {reason} Check openai_model.'
        )
    if status == 404:
        return errors.ModelRefused(f"There is no chat endpoint at {endpoint.base_url} (404): {reason} {CHECK_ADDRESS}")
    seconds = _seconds(error.response.headers.get("retry-after"))
    if status == 429:
        unit = "second" if seconds == 1 else "seconds"
        when = f" Try again in {seconds:g} {unit}." if seconds is not None else ""
        return errors.ModelBusy(f"{where} is too busy (429): {reason}{when}", retry_after_seconds=seconds)
    if status >= 500 or code_of(error.body) in MODEL_MISCARRIED:
        return errors.ModelFailed(f"{where} failed ({status}): {reason}", retry_after_seconds=seconds)
    return errors.ModelRefused(f"{where} refused the request ({status}): {reason}")


def reason_given(body: object, api_key: str | None = None) -> str:
    """Return an endpoint's reason as one short sentence, without the key."""
    text = storable(" ".join(reason_in(body).split()))
    if api_key and len(api_key) >= MIN_KEY_CHARS:
        text = text.replace(api_key, "[the key]")
    text = text[:MAX_REASON_CHARS]
    return text if text.endswith(".") else text + "."


def _seconds(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header, at most a day; ``None`` if there are none."""
    try:
        seconds = float(header or "nan")
    except ValueError:
        return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER_SECONDS) if math.isfinite(seconds) else None
