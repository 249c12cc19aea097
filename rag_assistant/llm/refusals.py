"""Recognise why an endpoint refused a request: its length, with the figures; tools; or something else.

The wordings are in refusals.toml; tests list where they come from.
"""

import re
import tomllib
from collections.abc import Sequence
from pkgutil import get_data

from rag_assistant.llm.prompt_counts import is_count
from rag_assistant.records.errors import ContextTooLong

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
TAKES_NO_TOOLS = re.compile("|".join(_DATA["takes_no_tools"]).replace("TOOLS", _DATA["tools"]), re.IGNORECASE)


def context_too_long(body: object) -> ContextTooLong | None:
    """Return the error for a request refused for its length, ``None`` for any other reason."""
    text = "\n".join(_texts_in(body))
    if not TOO_LONG.search(text) or ABOUT_SOMETHING_ELSE.search(text):
        return None
    fields = _error_in(body)
    limit = _whole(fields.get("n_ctx")) or _number_in(text, LIMIT)
    prompt = _whole(fields.get("n_prompt_tokens")) or _number_in(text, PROMPT)
    takes = f"it accepts {limit} tokens" if limit else "it does not say how many tokens it accepts"
    return ContextTooLong(f"The request is longer than the model accepts; {takes}.", limit, prompt)


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
