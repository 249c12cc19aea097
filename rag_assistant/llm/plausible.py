"""What an endpoint says of itself, as far as it can be true: the rest is neither used nor stored."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from rag_assistant.history import estimate_tokens
from rag_assistant.records import MAX_INT32, ModelRequest, pictures_in
from rag_assistant.records.validation import storable

# Nobody counts ten times as many tokens as we do: such a figure is an error.
MAX_TIMES_OUR_ESTIMATE = 8
# A chat template, and what else a server adds to each request.
TEMPLATE_TOKENS = 4_000
# The largest count for a picture is that of OpenAI's small models.
MAX_TOKENS_PER_PICTURE = 60_000
# What current models write at most, with thoughts that nobody is shown.
MAX_HIDDEN_TOKENS = 128_000
MAX_NAME_CHARS = 200


def is_count(value: object, most: int = MAX_INT32) -> TypeGuard[int]:
    """Return whether a value is a whole number of 0 to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def is_name(value: object) -> TypeGuard[str]:
    """Return whether a value is a name that can be stored, such as a model's."""
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS and storable(value) == value


def reported_usage(chunk: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any] | None:
    """Return the counts in a chunk of an answer, wherever its endpoint puts them, ``None`` without any."""
    for where in (chunk, choice, chunk.get("x_groq")):
        if isinstance(where, dict) and isinstance(usage := where.get("usage"), dict):
            return {name: _whole(value) for name, value in usage.items()}
    timings = chunk.get("timings")  # Of llama.cpp; what it had in its cache is counted apart.
    if not isinstance(timings, dict) or not is_count(read := _whole(timings.get("prompt_n"))):
        return None
    cached = timings.get("cache_n")
    return {
        "prompt_tokens": read + (cached if is_count(cached) else 0),
        "completion_tokens": timings.get("predicted_n"),
    }


def _whole(value: Any) -> Any:
    """Return a whole number that came as a float or as text as one, anything else as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 12 else value


def plausible_usage(
    usage: Mapping[str, Any] | None, request: ModelRequest, estimate: int, text: str
) -> dict[str, Any] | None:
    """Return the counts of a reply that can be true of a request and the text received; ``None`` without a report.

    ``estimate`` is our own count of the request.
    """
    if usage is None:
        return None
    pictures = sum(len(pictures_in(message)) for message in request.messages)
    read = MAX_TIMES_OUR_ESTIMATE * estimate + TEMPLATE_TOKENS + MAX_TOKENS_PER_PICTURE * pictures
    written = MAX_TIMES_OUR_ESTIMATE * estimate_tokens(text) + MAX_HIDDEN_TOKENS
    most = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    counts: dict[str, Any] = {name: usage[name] for name in most if is_count(usage.get(name), most[name])}
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and is_count(cached := details.get("cached_tokens"), read):
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts
