"""Validation errors in one sentence (name, value, what is allowed), and what is made of texts and numbers.

Shared by settings.json, requests and the command line, so that all report errors alike.
"""

import json
import re
import unicodedata
from difflib import get_close_matches
from typing import Any

from pydantic import AliasChoices, BaseModel, ValidationError

MAX_SHOWN_VALUE_CHARS = 60
MAX_DIGITS = 15
# Letters and a sign that are drawn as nothing.
SHAPELESS = "\u115f\u1160\u2800\u3164\uffa0"
INVALID_CHARACTER = "contains an invalid character: an unpaired surrogate or NUL."


def first_problem(
    error: ValidationError, model: type[BaseModel], content: Any, called: str = "field"
) -> tuple[str, str]:
    """Return the name of the first invalid field and a sentence about it.

    ``content`` is what was checked; ``called`` is what its fields are called.
    """
    # Unknown names first, since a misspelt key explains a missing one.
    details = error.errors(include_url=False, include_context=False)
    detail = next((one for one in details if one["type"] == "extra_forbidden"), details[0])
    name = str(detail["loc"][0]) if detail["loc"] else ""
    if len(detail["loc"]) > 1 and detail["type"] in ("extra_forbidden", "missing"):
        inner = f'"{detail["loc"][-1]}" is {"not known" if detail["type"] == "extra_forbidden" else "missing"} in it'
        return name, f"{name} is not right: {inner}; it must be {allowed_for(model, name)}."
    fields = {(field.alias or key): field for key, field in model.model_fields.items()}
    if detail["type"] == "extra_forbidden":
        close = get_close_matches(name, fields, n=1)
        all_of_them = f"Allowed {called}s: {', '.join(sorted(fields))}." if fields else f"No {called}s are allowed."
        hint = f'Did you mean "{close[0]}"?' if close else all_of_them
        return name, f'Unknown {called} "{name}". {hint}'
    allowed = allowed_for(model, name)
    if detail["type"] == "missing":
        return name, f'"{name}" is missing; it must be {allowed}.'
    element = _path(detail["loc"], content)
    subject = f"it must be {allowed}" if element == name else f"{name} must be {allowed}"
    return name, f"{element} is {shown(detail['input'])}; {subject}."


def _path(loc: tuple[int | str, ...], content: Any) -> str:
    """Return the path of an error, such as ``messages[0].content``.

    pydantic's path also names the member of a union, which is no step in the content.
    """
    path = ""
    for step in loc:
        if isinstance(content, list) and isinstance(step, int):
            path, content = f"{path}[{step}]", content[step]
        elif isinstance(content, dict) and step in content:
            path, content = f"{path}.{step}" if path else str(step), content[step]
    return path


def allowed_for(model: type[BaseModel], name: str) -> str:
    """Return in words what a field accepts, from its ``allowed`` extra."""
    for key, field in model.model_fields.items():
        aliases = field.validation_alias
        if name in (key, field.alias, *(aliases.choices if isinstance(aliases, AliasChoices) else ())):
            extra = field.json_schema_extra
            return str(extra["allowed"]) if isinstance(extra, dict) and "allowed" in extra else "of another type"
    return "of another type"


def shown(value: Any) -> str:
    """Return a value as JSON, shortened, for a message."""
    try:
        text = storable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        text = storable(repr(value))
    return text if len(text) <= MAX_SHOWN_VALUE_CHARS else text[: MAX_SHOWN_VALUE_CHARS - 3] + "..."


def storable(text: str) -> str:
    """Return text that every database can store: lone surrogates are replaced, NUL is removed."""
    if text.isascii() and "\0" not in text:
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.encode("utf-8", "replace").decode().replace("\0", "")


def storable_value(value: Any) -> Any:
    """Return a JSON value in which every database can store every text."""
    if isinstance(value, dict):
        return {storable(name): storable_value(one) for name, one in value.items()}
    if isinstance(value, list):
        return [storable_value(one) for one in value]
    return storable(value) if isinstance(value, str) else value


def visible(text: str) -> str:
    """Return a text. Raises ValueError if nothing of it can be seen: blanks, marks, and signs without a shape."""
    if all(one in SHAPELESS or unicodedata.category(one)[0] not in "LNPS" for one in text):
        raise ValueError(f"{shown(text)} shows nothing")
    return text


def spells_number(text: str) -> bool:
    """Return whether a text is a whole number of 0 or more, and short enough to be parsed as one."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def no_constant(name: str) -> Any:
    """Refuse what Python reads as JSON and nobody else does, such as NaN. Raises ValueError."""
    raise ValueError(f"{name} is not a number in JSON")


def without_between(text: str, opens: re.Pattern[str], closes: re.Pattern[str]) -> str:
    """Return a text without what is between two patterns, in linear time.

    One pattern for both would scan the rest of a text again for each unterminated beginning.
    """
    parts, position = [], 0
    while (opened := opens.search(text, position)) and (closed := closes.search(text, opened.end())):
        parts.append(text[position : opened.start()])
        position = closed.end()
    return "".join([*parts, text[position:]])
