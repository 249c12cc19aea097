"""Parse and validate request bodies and parameters, with errors that say what is wrong."""

import json
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, TypeVar

from flask import request
from pydantic import BaseModel, ValidationError

from rag_assistant.conversations.pictures import MAX_PICTURES_CHARS
from rag_assistant.records import MAX_INT32, UNSET, Scope, Unset
from rag_assistant.records.errors import InvalidRequest, MalformedBody, UnsupportedContentType
from rag_assistant.records.validation import INVALID_CHARACTER, first_problem, no_constant, spells_number, storable
from rag_assistant.web.request_bodies import ID, NoFields, QueryBody, ScopeBody
from rag_assistant.web.routing import API, Route, whole_services
from rag_assistant.web.security import MAX_BODY_BYTES

Body = TypeVar("Body", bound=BaseModel)
Choice = TypeVar("Choice", bound=str)
MAX_KEY_CHARS = MAX_SEARCH_CHARS = 200
NESTED = "The body is nested too deeply; one object with plain values is enough."


def read_body(model: type[Body]) -> Body:
    """Return the body, JSON or on a page a form. Raises UnsupportedContentType, MalformedBody, InvalidRequest."""
    content = json_object() if request.path.startswith(API) else form_fields(model)
    if model is QueryBody and "question" in content and "query" in content:
        raise InvalidRequest('"question" and "query" mean the same; send one of them.')
    return checked(model, content)


def form_fields(model: type[BaseModel]) -> dict[str, Any]:
    """Return the form's fields as JSON for a body; missing fields are left out. Commas separate the items of a list."""
    names = [name for name in model.model_fields if name in request.form]
    return {name: _as_json(request.form.getlist(name), _kinds(model)[name]) for name in names}


def _as_json(values: list[str], kinds: frozenset[str]) -> Any:
    if "array" in kinds:
        items = [item for value in values for item in value.split(",") if item.strip()]
        given = [int(item) if "ids" in kinds and spells_number(item) else item for item in items]
        return given or ([] if "empty" in kinds else None)
    if "integer" in kinds and len(values) > 1:  # Which one is meant is unknown.
        return [int(value) if spells_number(value) else value for value in values]
    value = values[-1].strip()
    if not value and "text" not in kinds:
        return "default" if "default" in kinds else None
    if "integer" in kinds and (spells_number(value) or value == "all"):
        return None if value == "all" else int(value)
    return {"true": True, "false": False}.get(value, value) if "boolean" in kinds else values[-1]


@cache
def _kinds(model: type[BaseModel]) -> dict[str, frozenset[str]]:
    """Return what JSON each field accepts: also "text" in general, "default", "ids" in a list, and an "empty" one."""
    kinds = {}
    for name, schema in model.model_json_schema(by_alias=False)["properties"].items():
        parts = schema.get("anyOf", [schema])
        named = {part["type"] for part in parts} | {part["const"] for part in parts if "const" in part}
        if any(part["type"] == "string" and not {"enum", "const"} & part.keys() for part in parts):
            named.add("text")
        if any(part.get("items", {}).get("type") == "integer" for part in parts):
            named.add("ids")
        if any(part["type"] == "array" and "minItems" not in part for part in parts):
            named.add("empty")
        kinds[name] = frozenset(named)
    return kinds


def json_object() -> dict[str, Any]:
    """Return the request's body, one JSON object. Raises UnsupportedContentType, MalformedBody, InvalidRequest."""
    if request.mimetype != "application/json":
        raise UnsupportedContentType(f"{content_type_said()}; it must be application/json.")
    data = request.get_data()
    if not data:
        raise MalformedBody("The body is empty; it must be one JSON object.")
    try:
        content = json.loads(data.decode("utf-8"), parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise MalformedBody("The body is not UTF-8 text.") from error
    except RecursionError:
        raise MalformedBody(NESTED) from None
    except ValueError as error:
        reason = f"{error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise MalformedBody(f"The body is not JSON ({reason}).") from error
    if not isinstance(content, dict):
        raise InvalidRequest('The body must be one JSON object, such as {"question": "..."}.')
    return content


def take_pictures() -> None:
    """Raise the body's size limit for the pictures of a question, if the model accepts any."""
    if whole_services().settings.current.model_images:
        request.max_content_length = MAX_BODY_BYTES + MAX_PICTURES_CHARS


def content_type_said() -> str:
    """Return the request's content type, as the beginning of a sentence."""
    return f'The content type is "{request.mimetype}"' if request.mimetype else "No content type was given"


def read_optional_body(model: type[Body]) -> Body:
    """Return the request's body, or the model's defaults without one."""
    return read_body(model) if request.content_length else model()


def checked(model: type[Body], content: dict[str, Any]) -> Body:
    """Return the content as a body. Raises InvalidRequest with the name, the value and what is allowed."""
    try:
        # No database stores NUL or lone surrogates.
        if b"\\u0000" in json.dumps(content, ensure_ascii=False).encode():
            raise InvalidRequest(f"The request {INVALID_CHARACTER}")
        return model.model_validate(content)
    except UnicodeEncodeError:
        raise InvalidRequest(f"The request {INVALID_CHARACTER}") from None
    except RecursionError:
        raise InvalidRequest(NESTED) from None
    except ValidationError as error:
        name, sentence = first_problem(error, model, content)
        raise InvalidRequest(sentence, param=name or None) from None


def refuse_unknown() -> None:
    """Refuse unknown parameters of API routes, and fields of actions without any.

    Ignoring them would look as if they counted. Raises InvalidRequest.
    """
    route = request.url_rule
    if not isinstance(route, Route) or not request.path.startswith(API):
        return
    params = route.operation.params
    for name in request.args:
        if name not in params:
            raise InvalidRequest(
                f"Unknown parameter: {name}. {request.path} takes {', '.join(params) or 'no parameters'}."
            )
    if request.method == "POST" and route.operation.body is None and not route.operation.file:
        read_optional_body(NoFields)


def whole_number(name: str, default: int | None, lowest: int, highest: int) -> int | None:
    """Return a number from the address's parameters. Raises InvalidRequest."""
    text = request.args.get(name)
    if text is None:
        return default
    if not (spells_number(text) and lowest <= int(text) <= highest):
        raise InvalidRequest(f'{name} is "{text}"; it must be a whole number from {lowest} to {highest}.')
    return int(text)


def text_asked(name: str, max_chars: int = MAX_SEARCH_CHARS) -> str:
    """Return a text from the address's parameters, without its outer blanks. Raises InvalidRequest."""
    text = request.args.get(name, "").strip()
    if storable(text) != text:
        raise InvalidRequest(f"{name} {INVALID_CHARACTER}")
    if len(text) > max_chars:
        raise InvalidRequest(f"{name} has {len(text)} characters; it must have at most {max_chars}.")
    return text


def one_of(name: str, value: str, allowed: Collection[Choice]) -> Choice:
    """Return the value of a field or parameter if it is allowed. Raises InvalidRequest."""
    for choice in allowed:
        if choice == value:
            return choice
    raise InvalidRequest(f'{name} is "{value}"; it must be one of {", ".join(filter(None, allowed))}.')


def flag_asked(name: str) -> bool | None:
    """Return a parameter that is 1 or 0, None if it is missing. Raises InvalidRequest."""
    number = whole_number(name, None, 0, 1)
    return None if number is None else number == 1


def scope_asked(documents: str = "document_id") -> Scope:
    """Return the documents that the address names by id and tag, both repeatable, and by after and before."""
    tags = tuple(filter(None, map(str.strip, request.args.getlist("tag"))))
    if any(storable(tag) != tag for tag in tags):
        raise InvalidRequest(f"tag {INVALID_CHARACTER}")
    days = checked(ScopeBody, {name: request.args[name] for name in ("after", "before") if request.args.get(name)})
    ids = ids_of(documents, request.args.getlist(documents))
    return Scope(ids, tags, after=days.after, before=days.before)


def ids_of(name: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Return the unique ids in a field or parameter. Raises InvalidRequest."""
    for text in texts:
        if not (spells_number(text) and 1 <= int(text) <= MAX_INT32):
            raise InvalidRequest(f'{name} is "{text}"; it must be {ID}.')
    return tuple(dict.fromkeys(map(int, texts)))


def history_limit_asked() -> int | Unset | None:
    """Return the window to try from the address: a number, None for "all", or UNSET. Raises InvalidRequest."""
    text = request.args.get("max_history_turns")
    if text is None:
        return UNSET
    if text in ("all", "null"):
        return None
    if not (spells_number(text) and int(text) <= MAX_INT32):
        raise InvalidRequest(f'max_history_turns is "{text}"; it must be a whole number, 0 or more, or all.')
    return int(text)


def page_limit(default: int = 50, highest: int = 200) -> int:
    """Return the requested number of items. Raises InvalidRequest."""
    return whole_number("limit", default, 1, highest) or default


def idempotency_key() -> str | None:
    """Return the request's Idempotency-Key. Raises InvalidRequest if it is empty or too long."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARS:
        raise InvalidRequest(f"The Idempotency-Key has {len(key)} characters; it must have 1 to {MAX_KEY_CHARS}.")
    return key
