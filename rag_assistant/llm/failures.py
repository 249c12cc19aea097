"""Translates exceptions of the SDK and the network into our errors, with messages for people.

The wordings by which an endpoint's reason is recognised are in refusals.toml; tests list where they come from.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pkgutil import get_data
from typing import TYPE_CHECKING

from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.endpoint import Endpoint
from rag_assistant.llm.prompt_counts import is_count
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
# The status codes for requests that are too long; others are about keys, rates and addresses.
MAY_BE_TOO_LONG = frozenset({400, 413, 422, 500})
# The model wrote an invalid tool call (Groq): the next attempt may be valid.
MODEL_MISCARRIED = frozenset({"tool_use_failed"})

_DATA = tomllib.loads((get_data(str(__package__), "refusals.toml") or b"").decode())
TOO_LONG = re.compile("|".join(_DATA["too_long"]), re.IGNORECASE)
ABOUT_SOMETHING_ELSE = re.compile("|".join(_DATA["about_something_else"]), re.IGNORECASE)
# From its first digit, so that a long one is looked at once; longer ones count no tokens.
NUMBER = r"(?<![\d,])(\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(?!\d|,\d)"
LIMIT, PROMPT = (
    tuple(re.compile(one.replace("N", NUMBER), re.IGNORECASE) for one in _DATA[name]) for name in ("limit", "prompt")
)
TITLE = re.compile(r"<title[^<>]*>([^<]+)</title>", re.IGNORECASE)
# Or not as many as were sent.
TAKES_NO_PICTURES = re.compile("|".join(_DATA["takes_no_pictures"]), re.IGNORECASE)
TAKES_NO_TOOLS = re.compile("|".join(_DATA["takes_no_tools"]).replace("TOOLS", _DATA["tools"]), re.IGNORECASE)


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


def context_too_long(body: object) -> errors.ContextTooLong | None:
    """Return the error for a request refused for its length, ``None`` for any other reason."""
    text = "\n".join(_texts_in(body))
    if not TOO_LONG.search(text) or ABOUT_SOMETHING_ELSE.search(text):
        return None
    fields = _error_in(body)
    limit = _whole(fields.get("n_ctx")) or _number_in(text, LIMIT)
    prompt = _whole(fields.get("n_prompt_tokens")) or _number_in(text, PROMPT)
    takes = f"it accepts {limit} tokens" if limit else "it does not say how many tokens it accepts"
    return errors.ContextTooLong(f"The request is longer than the model accepts; {takes}.", limit, prompt)


def refuses_tools(reason: str) -> bool:
    """Return whether an endpoint refused a request because it supports no tools, and not because of one call."""
    return TAKES_NO_TOOLS.search(reason) is not None


def is_web_page(body: str) -> bool:
    """Return whether a body is HTML, so that it isn't from a model."""
    return body.lstrip("\ufeff \t\r\n").startswith("<")


def code_of(body: object) -> str | None:
    """Return an endpoint's error code."""
    code = _error_in(body).get("code")
    return code if isinstance(code, str) else None


def reason_in(body: object) -> str:
    """Return the sentence in an endpoint's error, wherever it is; for a web page its title."""
    if isinstance(body, str) and is_web_page(body):
        title = TITLE.search(body)
        return f"it answered with a web page{f', {title[1].strip()}' if title else ''}"
    value: object = body
    for name in ("error", "message"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    if isinstance(value, dict):
        value = value.get("detail")
    return str(value or "no reason was given")


def _error_in(body: object) -> dict[str, object]:
    first = body[0] if isinstance(body, list) and body else body
    error = first.get("error", first) if isinstance(first, dict) else None
    return error if isinstance(error, dict) else {}


def _texts_in(body: object) -> list[str]:
    """Return every text in an error; gateways embed the one they received in their own."""
    waiting, texts = [body], []
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            waiting += reversed(value.values() if isinstance(value, dict) else value)
    return texts


def _number_in(text: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    first_match = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return int(first_match.group(1).replace(",", "")) if first_match else None


def _whole(value: object) -> int | None:
    return value if is_count(value) and value else None
