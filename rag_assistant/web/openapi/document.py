"""The OpenAPI document: every route of the API, with its bodies, responses and errors."""

import re
from pkgutil import get_data
from typing import Any, cast, get_args, get_type_hints

from flask import Flask
from msgspec import Struct
from msgspec.json import decode as from_json
from msgspec.json import schema_components
from pydantic.json_schema import models_json_schema

from rag_assistant import __version__
from rag_assistant.records import MAX_INT32
from rag_assistant.web.errors import OPENAI, PROBLEM, error_kinds
from rag_assistant.web.request_bodies import NoFields
from rag_assistant.web.routing import ANTHROPIC, Operation, Route, routes_of

Schema = dict[str, Any]

# The routes of the API; all others are pages.
PREFIXES = ("/api/", "/v1/", "/healthz", "/readyz", "/openapi.json")
REF = "#/components/schemas/{model}"
EVENT_STREAM = "text/event-stream"
BINARY: Schema = {"type": "string", "format": "binary"}
SERVER = "Server"
# The tag of each blueprint; a working example of each body, by endpoint; parameters and headers; the schemas of special
# parameters, by endpoint; one of the events of a stream, of which x-events has the data of each.
_DATA = from_json(get_data(str(__package__), "operations.json") or b"")
TAGS: dict[str, str] = _DATA["tags"]
EXAMPLES: dict[str, Schema] = _DATA["examples"]
QUERY: dict[str, Schema] = _DATA["query"]
HEADERS: dict[str, Schema] = _DATA["headers"]
SPECIAL: dict[str, dict[str, Schema]] = _DATA["special"]
EVENT: Schema = _DATA["event"]
# The answers that no type of ours makes, and what they are made of.
ANSWERS: dict[str, Schema] = from_json(get_data(str(__package__), "answers.json") or b"")

ID: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_INT32}
TEXT: Schema = {"type": "string"}
# In a form, tags are one text with commas.
UPLOAD_FIELDS: Schema = {"tags": TEXT, "replaces": ID, "library_id": ID}
PATH_TEXT: dict[str, Schema] = {"name": TEXT, "response_id": TEXT}


def openapi_document(app: Flask) -> Schema:
    """Return the document for the routes of an application, in OpenAPI 3.1."""
    schemas = _schemas(app)
    paths: dict[str, Schema] = {}
    for rule, method in api_routes(app):
        paths.setdefault(path_of(rule), {})[method.lower()] = _described(app, rule, method, rule.operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "RAG assistant", "version": __version__, "description": "See /docs, and docs/api.md."},
        "servers": [{"url": app.config.get("APPLICATION_ROOT", "/").rstrip("/") or "/"}],
        "tags": [{"name": name} for name in dict.fromkeys([*TAGS.values(), SERVER])],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "x-error-types": [{"type": name, "status": code, "meaning": meaning} for code, name, meaning in error_kinds()],
        # With accounts it needs a token, without them nothing.
        "security": [{}, {"token": []}],
    }


def api_routes(app: Flask) -> list[tuple[Route, str]]:
    """Return the routes of the API, each with one of its methods."""
    return [
        (rule, method)
        for rule in routes_of(app)
        if rule.rule.startswith(PREFIXES)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def path_of(rule: Route) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _described(app: Flask, rule: Route, method: str, operation: Operation) -> Schema:
    summary, _, more = (app.view_functions[rule.endpoint].__doc__ or rule.endpoint).strip().partition("\n")
    # A path parameter is an id, unless declared as text.
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": PATH_TEXT.get(name, ID)}
        for name in re.findall(r"<(?:\w+:)?(\w+)>", rule.rule)
    ]
    for name in operation.params:
        special = SPECIAL.get(rule.endpoint, {}).get(name)
        required = {"required": True} if special and special.get("minLength", special.get("const")) else {}
        own = {"schema": special} if special else {}
        parameters.append({"name": name, "in": "query"} | QUERY[name] | own | required)
    parameters += [{"name": name, "in": "header"} | HEADERS[name] for name in operation.headers]
    described: Schema = {
        "operationId": rule.endpoint.replace(".", "_"),
        "summary": summary.rstrip("."),
        "tags": [TAGS.get(rule.endpoint.partition(".")[0], SERVER)],
        "parameters": parameters,
        "responses": _responses(rule, operation),
    }
    if more.strip():
        described["description"] = " ".join(more.split())
    if content := _body(method, operation, EXAMPLES.get(rule.endpoint)):
        described["requestBody"] = {"required": bool(operation.body or operation.file) and not operation.optional}
        described["requestBody"]["content"] = content
    return described


def _body(method: str, operation: Operation, example: Schema | None) -> Schema:
    """Return the schemas of a body, by media type."""
    content: Schema = {}
    if operation.form or operation.file:
        fields = {"file": BINARY} | (UPLOAD_FIELDS if operation.form else {})
        form = {"type": "object", "properties": fields, "required": ["file"], "additionalProperties": False}
        content["multipart/form-data"] = {"schema": form}
    elif operation.body or method == "POST":
        shown = {} if example is None else {"example": example}
        content["application/json"] = {"schema": reference_to(operation.body or NoFields)} | shown
    return content


def _responses(rule: Route, operation: Operation) -> Schema:
    content: Schema = {}
    if isinstance(operation.answer, str) and "/" in operation.answer:
        content[operation.answer] = {"schema": {} if "json" in operation.answer else {"type": "string"}}
        if operation.answer == "text/markdown":
            content["application/json"] = {"schema": {"type": "object"}}
    elif operation.answer is not None:
        content["application/json"] = {"schema": reference_to(operation.answer)}
    if operation.events:
        content[EVENT_STREAM] = {
            "schema": EVENT,
            "x-events": {name: reference_to(kind) for name, kind in operation.events.items()},
        }
    good: Schema = {"description": "The answer."} | ({"content": content} if content else {})
    responses: Schema = {str(operation.status): good}
    if rule.endpoint == "api.turn_stream":
        responses["204"] = {"description": "The stream was read to its end."}
    if rule.endpoint == "health.readyz":
        responses["503"] = good | {"description": "Not everything is ready."}
    shapes = {ANTHROPIC: "AnthropicErrorAnswer", OPENAI: "OpenAIErrorAnswer", "": "ErrorAnswer"}
    error = reference_to(next(shape for start, shape in shapes.items() if rule.rule.startswith(start)))
    content = {"application/json": {"schema": error}, PROBLEM: {"schema": reference_to("Problem")}}
    return responses | {status: {"description": "An error.", "content": content} for status in ("4XX", "5XX")}


def reference_to(kind: type | str) -> Schema:
    """Return the schema that refers to a type, or to one of ``ANSWERS``."""
    return {"$ref": REF.format(model=kind if isinstance(kind, str) else kind.__name__)}


def _schemas(app: Flask) -> Schema:
    """Return the schemas of all bodies and responses, and of their parts."""
    operations = [rule.operation for rule, _ in api_routes(app)]
    bodies = {one.body: None for one in operations if one.body is not None and not one.form} | {NoFields: None}
    answers = [kind for one in operations for kind in (one.answer, *one.events.values()) if isinstance(kind, type)]
    _, definitions = models_json_schema([(body, "validation") for body in bodies], ref_template=REF)
    _, schemas = schema_components(dict.fromkeys(answers), ref_template=REF.replace("{model}", "{name}"))
    structs: set[type[Struct]] = set()
    for answer in answers:
        _add_structs(answer, structs)
    for kind in structs:
        # Where defaults are included like other values, so are fields with one.
        for name, described in schemas[kind.__name__]["properties"].items():
            if "default" in described and not kind.__struct_config__.omit_defaults:
                schemas[kind.__name__].setdefault("required", []).append(name)
            described.pop("default", None)
    described = {**cast("Schema", definitions["$defs"]), **schemas, **ANSWERS}
    return {name: _in_words(schema) for name, schema in described.items()}


def _add_structs(kind: Any, structs: set[type[Struct]]) -> None:
    if isinstance(kind, type) and issubclass(kind, Struct) and kind not in structs:
        structs.add(kind)
        for hint in get_type_hints(kind).values():
            _add_structs(hint, structs)
    for part in get_args(kind):
        _add_structs(part, structs)


def _in_words(schema: Any) -> Any:
    """Return a schema with allowed values as descriptions, and without redundant titles."""
    if isinstance(schema, list):
        return [_in_words(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {
        name: _in_words(value)
        for name, value in schema.items()
        if name != "allowed" and not (name == "title" and isinstance(value, str))
    }
    if isinstance(schema.get("allowed"), str):
        changed["description"] = f"It must be {schema['allowed']}."
    return changed
