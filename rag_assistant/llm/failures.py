"""What goes wrong with a model, in words: the SDK's and the network's exceptions become errors of ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_assistant.errors import (
    AnswerInterrupted,
    AnswerStopped,
    AssistantError,
    ContextTooLong,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelTimedOut,
    ModelUnreachable,
)
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.endpoint import Endpoint

if TYPE_CHECKING:
    import openai

LONGEST_REASON_SHOWN = 300
# What the model wrote was no call that the endpoint could pass on (Groq): the next attempt may be one.
MODEL_MISCARRIED = frozenset({"tool_use_failed"})

TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (?:window|length|size)[^.]{0,40}exceed"
    r"|exceed[^.]{0,60}context|prompt is too long|too large for model with|input is too long|reduce the length of the"
    r"|(?:prompt|input)[^.]{0,40}longer than the (?:model'?s )?(?:maximum|context)",
    re.IGNORECASE,
)
NOT_TAKEN = (
    r"(?:not (?:\w+ )?support|unsupported|not (?:enabled|available|allowed|permitted)|requires"
    r"|un(?:known|recogni[sz]ed|expected)|extra)"
)
TOOLS = r"(?:\btools?\b|tool[_ -]?(?:use|call(?:s|ing)?|choice)|function[_ -]?call(?:s|ing)?)"
TAKES_NO_TOOLS = re.compile(
    rf"{TOOLS}[^.]{{0,60}}{NOT_TAKEN}|{NOT_TAKEN}[^.]{{0,60}}{TOOLS}|no endpoints found that support tool",
    re.IGNORECASE,
)
NUMBER = r"(\d{1,3}(?:,\d{3})+|\d+)"
LIMIT = (
    re.compile(rf"maximum context length (?:is|of) {NUMBER}", re.IGNORECASE),
    re.compile(rf"context (?:window|length|size)[^0-9.\n]{{0,40}}{NUMBER}", re.IGNORECASE),
    re.compile(rf"{NUMBER} maximum", re.IGNORECASE),
    re.compile(rf"(?:limit|maximum)[^0-9.\n]{{0,40}}{NUMBER}", re.IGNORECASE),
)
PROMPT = (
    re.compile(rf"(?:resulted in|requested|contains|prompt is too long:|request \() ?{NUMBER}", re.IGNORECASE),
    re.compile(rf"{NUMBER} (?:input |prompt )?tokens", re.IGNORECASE),
)


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
        if named is not error:
            raise named from error

    def _name(self, error: BaseException) -> BaseException:
        import httpx2
        import openai

        shown = self._shown()
        where = "The built-in model" if self._endpoint.built_in else f"The model at {self._endpoint.base_url}"
        if self._call.stopped:
            return AnswerStopped("The answer was stopped.")
        if self._call.overdue is not None:
            kept = "What it wrote so far is kept." if shown else "Your question was kept; try again."
            return ModelTimedOut(f"{where} was silent for too long: {self._call.overdue} did not come. {kept}")
        if isinstance(error, AssistantError) and not (shown and isinstance(error, ModelFailed)):
            return error
        if isinstance(error, openai.APIStatusError) and not shown:
            return _refusal(where, self._endpoint.api_key, error)
        network = (openai.APIConnectionError, httpx2.HTTPError, ConnectionError)
        if shown and isinstance(error, (*network, ModelFailed)):
            return AnswerInterrupted(f"{where} broke off in the middle of its answer. What it wrote so far is kept.")
        if isinstance(error, network):
            connected = isinstance(error, (httpx2.ReadError, httpx2.RemoteProtocolError, ConnectionError))
            if connected or isinstance(error.__cause__, (httpx2.ReadError, httpx2.RemoteProtocolError)):
                return ModelFailed(
                    f"{where} closed the connection without an answer. Your question was kept; try again."
                )
            return ModelUnreachable(f"{where} could not be reached. Your question was kept; try again.")
        return error


def _refusal(where: str, api_key: str | None, error: openai.APIStatusError) -> AssistantError:
    status, reason = error.status_code, reason_given(error.body, api_key)
    too_long = context_too_long(error.body)
    if too_long is not None:
        return too_long
    if status == 401:
        return ModelRefused(f"{where} refused the key (401). Set the right one in OPENAI_API_KEY.")
    if status == 429:
        seconds = _seconds(error.response.headers.get("retry-after"))
        patience = f" It asks for {seconds:g} seconds of patience." if seconds is not None else ""
        return ModelBusy(f"{where} is too busy (429): {reason}{patience}", seconds)
    if status >= 500 or code_of(error.body) in MODEL_MISCARRIED:
        return ModelFailed(f"{where} failed ({status}): {reason}")
    return ModelRefused(f"{where} refused the request ({status}): {reason}")


def context_too_long(body: object) -> ContextTooLong | None:
    """Return the error of an endpoint that refuses a request for its length, ``None`` for any other reason.

    The wordings are those of OpenAI, vLLM, llama.cpp, Anthropic, Mistral and their like.
    """
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    told = "\n".join(str(value) for value in (*fields.values(), reason_given(body)) if isinstance(value, str))
    if not TOO_LONG.search(told):
        return None
    limit = fields.get("n_ctx") or _number_in(told, LIMIT)
    prompt = fields.get("n_prompt_tokens") or _number_in(told, PROMPT)
    limit = limit if isinstance(limit, int) and limit > 0 else None
    takes = f" it takes {limit} tokens" if limit else " it does not say how many tokens it takes"
    return ContextTooLong(
        f"The request is longer than the model takes;{takes}.", limit, prompt if isinstance(prompt, int) else None
    )


def code_of(body: object) -> str | None:
    """Return the code of an endpoint's error."""
    error = body.get("error", body) if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


def refuses_tools(reason: str) -> bool:
    """Tell whether an endpoint refused a request because it takes no tools, and not because of one call."""
    return TAKES_NO_TOOLS.search(reason) is not None


def _number_in(text: str, patterns: tuple[re.Pattern[str], ...]) -> int | None:
    found = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return int(found.group(1).replace(",", "")) if found else None


def reason_given(body: object, api_key: str | None = None) -> str:
    """Return what an endpoint gave as its reason, as one short sentence that can be kept, without the key."""
    found: object = body
    for name in ("error", "message"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    if isinstance(found, dict):
        found = found.get("detail") or "no reason was given"
    text = kept(" ".join(str(found or "no reason was given").split()))
    if api_key:
        text = text.replace(api_key, "[the key]")
    text = text[:LONGEST_REASON_SHOWN]
    return text if text.endswith(".") else text + "."


def kept(text: str) -> str:
    """Return text as it can be kept and shown: half a pair of characters is replaced, the character 0 goes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None
