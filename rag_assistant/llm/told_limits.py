"""Context limits as servers report them: in their list of models, or at their own address. Pure."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from rag_assistant.llm.prompt_counts import MIN_LIMIT_TOKENS
from rag_assistant.records import MAX_INT32

NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,10})\s*$", re.MULTILINE)
# Field names in lists of models (vLLM, OpenRouter, Groq, ...).
NAMES = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")


def limit_in_list(model: dict[str, Any]) -> int | None:
    """Return the context limit in an entry of a list of models."""
    meta = model.get("meta")
    values = (part.get(name) for part in (model, meta if isinstance(meta, dict) else {}) for name in NAMES)
    return next(filter(None, map(_limit, values)), None)


def _of_ollama(body: Any, model: str | None) -> int | None:
    """Return the limit of a loaded model from ``/api/ps``."""
    loaded = _entries(body, "models")
    return next((_limit(one.get("context_length")) for one in loaded if _is(one.get("name"), model)), None)


def _set_in_ollama(body: Any, _model: str | None) -> int | None:
    """Return the limit from ``/api/show``, if it is set for the model, which need not be loaded."""
    parameters = body.get("parameters") if isinstance(body, dict) else None
    match = NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return _limit(int(match[1])) if match else None


def _of_llama_cpp(body: Any, _model: str | None) -> int | None:
    """Return the limit of each slot from ``/props``."""
    settings = body.get("default_generation_settings") if isinstance(body, dict) else None
    return _limit(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _of_lm_studio(body: Any, model: str | None) -> int | None:
    """Return the limit of a loaded model from ``/api/v0/models``."""
    listed = _entries(body, "data")
    return next((_limit(one.get("loaded_context_length")) for one in listed if _is(one.get("id"), model)), None)


# Beside ``/v1``: where a server reports it, and how. Ollama needs the model's name there.
OLLAMA_SHOW = "/api/show"
OWN_ADDRESSES: dict[str, Callable[[Any, str | None], int | None]] = {
    "/api/ps": _of_ollama,
    OLLAMA_SHOW: _set_in_ollama,
    "/props": _of_llama_cpp,
    "/api/v0/models": _of_lm_studio,
}


def _entries(body: Any, name: str) -> Iterable[dict[str, Any]]:
    listed = body.get(name) if isinstance(body, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _is(name: object, model: str | None) -> bool:
    return name in (model, f"{model}:latest")  # Ollama allows leaving out that suffix.


def _limit(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not MIN_LIMIT_TOKENS <= value <= MAX_INT32:
        return None
    return value
