"""Whether the endpoint of the settings answers, and what stands in the way: its models listed, then a tiny answer."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rag_assistant.errors import QUESTION_KEPT, ModelError, NoEndpoint
from rag_assistant.llm.models import LanguageModels
from rag_assistant.records import ModelRequest

MAX_ANSWER_TOKENS = 16
TIMEOUT_SECONDS = 20.0
MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class ConnectionCheck:
    """What came of a check; ``problem`` is a sentence, ``None`` where the model answered after ``seconds``."""

    base_url: str
    model: str | None
    models: tuple[str, ...]
    seconds: float | None
    problem: str | None


def check_connection(models: LanguageModels) -> ConnectionCheck:
    """Ask the endpoint of the settings for its models and for a word. Raises NoEndpoint where none is set."""
    if not models.has_endpoint:
        raise NoEndpoint
    known = models.known_endpoint()
    listed: tuple[str, ...] = ()
    try:
        listed = models.listed()
        call = models.new_call()
        endpoint = models.endpoint(call)
        began = time.monotonic()
        asked = {"role": "user", "content": "Answer with one word: ready"}
        request = ModelRequest((asked,), max_tokens=MAX_ANSWER_TOKENS, timeout_seconds=TIMEOUT_SECONDS)
        for _ in models.stream(endpoint, request, call, lambda _sentence: None):
            pass
        return ConnectionCheck(known.base_url, endpoint.model, listed, time.monotonic() - began, None)
    except ModelError as error:
        problem = str(error).removesuffix(QUESTION_KEPT)
        if listed and known.model is not None and known.model not in listed:
            problem += f' openai_model is "{known.model}"; the endpoint lists {_names(listed)}.'
        return ConnectionCheck(known.base_url, known.model, listed, None, problem)


def _names(listed: tuple[str, ...]) -> str:
    more = len(listed) - MAX_NAMED
    return ", ".join(listed[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
