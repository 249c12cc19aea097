"""Test the configured endpoints step by step, and say in sentences what is wrong."""

import secrets
import time
from collections.abc import Callable, Sequence, Sized
from typing import Literal

from msgspec import Struct

from rag_assistant.llm.calibration import estimated_tokens
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import OPENAI_BASE_URL, collect
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import MAX_INT32, ModelRequest, Reading, errors

MAX_ANSWER_TOKENS = 16
TIMEOUT_SECONDS = 30.0
MAX_NAMED = 5
RERANKED_QUESTION, RERANKED_TEXTS = "Is it ready?", ("It is ready.", "The geese are asleep.")
EMBEDDED = "The embedding model answered with {} dimensions."
# Longer than Ollama's default context.
LONG_PROMPT_LINES, TOKENS_PER_LINE = 320, 16
LINE = "The geese on the shore of the lake are asleep, and nobody wakes them."
CODE_WORD, WANTED = "The code word is {}.", "What is the code word? Answer with that word alone."
CODE_WORDS = ("walnut", "harbour", "lantern", "meadow", "violin")
ARRIVED = "The model repeated a word from the start of a prompt of {n} tokens."
COUNTED = "A prompt of {n} tokens was read, although the model did not repeat a word from its start."
CUT_OFF = "The model server read only {n} of {n1} tokens of a long prompt, without an error. Raise its context size."
NOT_KNOWN = (
    "It is unclear whether a prompt of {n} tokens is read whole: the model did not repeat a word from its start."
)
NOT_AWAITED = "Testing a long prompt took too long."
ASKED = {"role": "user", "content": "Answer with one word: ready"}

StepName = Literal["models", "answer", "context", "embeddings", "reranking"]
Embed = Callable[[str], Sized]
Rerank = Callable[[str, Sequence[str]], Sequence[int]]


class CheckStep(Struct, frozen=True):
    """One tested step; ``message`` is a sentence."""

    name: StepName
    ok: bool
    message: str
    seconds: float


class ConnectionCheck(Struct, frozen=True):
    """The result of a test. ``models`` are those the endpoint lists, empty if it has no list."""

    base_url: str | None
    model: str | None
    models: tuple[str, ...]
    steps: tuple[CheckStep, ...]

    @property
    def ok(self) -> bool:
        """Whether every step succeeded."""
        return all(step.ok for step in self.steps)


def check_connection(models: LanguageModels, embed: Embed | None, rerank: Rerank | None) -> ConnectionCheck:
    """Test the configured endpoint: list its models, and ask for a word.

    ``embed``, if given, is asked for a vector, and ``rerank`` for an order. Raises NoEndpoint if there is nothing to
    test.
    """
    if not models.has_endpoint and embed is None and rerank is None:
        raise errors.NoEndpoint
    others = []
    if embed is not None:
        others.append(_step("embeddings", lambda: EMBEDDED.format(len(embed(ASKED["content"])))))
    if rerank is not None:
        others.append(_step("reranking", lambda: _rerank(rerank)))
    if not models.has_endpoint:
        return ConnectionCheck(None, None, (), tuple(others))
    configured = models.configured_endpoint()
    models.forget(models.known_endpoint())
    listed: list[str] = []

    def list_models() -> str:
        listed.extend(models.listed())
        return _listed(listed, configured.model)

    steps = [_step("models", list_models)]
    if steps[0].ok:
        steps.append(_step("answer", lambda: _answer(models)))
    if steps[-1].ok and len(steps) > 1 and configured.base_url != OPENAI_BASE_URL:
        steps.append(_step("context", lambda: _context(models)))
    if steps[0].ok and not listed:
        del steps[0]  # Not every endpoint has a list; whether that matters, the answer shows.
    model = configured.model or next(iter(listed), None)
    return ConnectionCheck(configured.base_url, model, tuple(listed), (*steps, *others))


def _step(name: StepName, act: Callable[[], str]) -> CheckStep:
    began = time.monotonic()
    try:
        message, ok = act(), True
    except (errors.ModelError, errors.EmbedderFailed, errors.RerankerFailed) as error:
        message, ok = errors.cause_alone(str(error)), False
        if isinstance(error, errors.ModelTimedOut):
            message += " A local model may still be loading; test again in a minute."
    return CheckStep(name, ok, message, round(time.monotonic() - began, 2))


def _listed(listed: Sequence[str], model: str | None) -> str:
    """Return what the list says about the configured model, None if none is configured."""
    if not listed:
        return "The endpoint lists no models."
    count = f"{len(listed)} {'model' if len(listed) == 1 else 'models'}"
    if model is None:
        others = f" Also listed: {_names(listed[1:])}." if listed[1:] else ""
        return f"{count} listed. openai_model is not set, so {listed[0]} is used.{others}"
    if {model, f"{model}:latest"} & set(listed):  # Ollama allows leaving out that suffix.
        return f"{count} listed, including {model}."
    return f"{count} listed, but not {model}: {_names(listed)}."


def _answer(models: LanguageModels) -> str:
    call = ModelCall()
    endpoint = models.endpoint(call)
    request = ModelRequest((ASKED,), max_tokens=MAX_ANSWER_TOKENS, timeout_seconds=TIMEOUT_SECONDS)
    collect(models.stream(endpoint, request, call, may_retry=False, teaches=False))
    return f"{endpoint.model} answered."


def _context(models: LanguageModels) -> str:
    """Return whether a word at the start of a long prompt arrives; the limit is learned again. Raises ModelFailed."""
    call, word = ModelCall(), secrets.choice(CODE_WORDS)
    models.calibration.learn_limit(models.endpoint(call), None)
    endpoint = models.endpoint(call)
    room = (endpoint.context_tokens or MAX_INT32) // TOKENS_PER_LINE * 3 // 4
    lines = [f"{n}. {LINE}" for n in range(min(LONG_PROMPT_LINES, room))]
    text = "\n".join((CODE_WORD.format(word), *lines, WANTED))
    request = ModelRequest(({"role": "user", "content": text},), MAX_ANSWER_TOKENS, timeout_seconds=TIMEOUT_SECONDS)
    try:
        answer, reply = collect(models.stream(endpoint, request, call, may_retry=False))
        if reply.reading is not None and models.calibration.suspects(endpoint, reply.reading):  # A second confirms it.
            answer, reply = collect(models.stream(endpoint, request, call, may_retry=False))
    except errors.ContextTooLong as error:
        models.calibration.learn_refusal(endpoint, estimated_tokens(request), error.limit, error.prompt_tokens)
        return str(error)
    except errors.ModelError as error:
        return NOT_AWAITED if isinstance(error, errors.ModelTimedOut) else errors.cause_alone(str(error))
    reading = reply.reading or Reading(estimated_tokens(request), None)
    sent = f"{reading.read or reading.sent:,}"
    if reading.limit is not None:
        raise errors.ModelFailed(CUT_OFF.format(n=sent, n1=f"{reading.sent:,}"))
    sentence = ARRIVED if word in answer.lower() else COUNTED if reading.read is not None else NOT_KNOWN
    return sentence.format(n=sent)


def _rerank(rerank: Rerank) -> str:
    rerank(RERANKED_QUESTION, RERANKED_TEXTS)
    return "The reranking model answered."


def _names(listed: Sequence[str]) -> str:
    more = len(listed) - MAX_NAMED
    return ", ".join(listed[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
