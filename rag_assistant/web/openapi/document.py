"""The OpenAPI document: every route of the API, its bodies as they are checked, its answers, its errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast, get_args, get_type_hints

from flask import Flask
from msgspec import Struct
from msgspec.json import schema_components
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from rag_assistant import __version__
from rag_assistant.web.errors import PROBLEM, error_kinds
from rag_assistant.web.openapi.parameters import header_parameter, path_parameter, query_parameter
from rag_assistant.web.request_bodies import NoFields
from rag_assistant.web.routing import PUBLIC, UNDESCRIBED, Operation, Route, routes_of
from rag_assistant.web.schemas import ErrorAnswer, OpenAIErrorAnswer, Problem
from rag_assistant.web.v1.errors import openai_status

Schema = dict[str, Any]

# Which routes are the API; all others are pages.
PREFIXES = ("/api/", "/v1/", "/healthz", "/readyz", "/openapi.json")
OPENAI = "/v1/"
REF = "#/components/schemas/{model}"
EVENT_STREAM = "text/event-stream"
# One of the events; x-events has the data of each.
EVENT: Schema = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
TAGS = {
    "api": "Questions and turns",
    "ratings_api": "Questions and turns",
    "conversations_api": "Conversations",
    "documents_api": "Documents",
    "libraries_api": "Documents",
    "sharing_api": "Conversations",
    "archive_api": "Conversations",
    "account_api": "Account",
    "openai": "OpenAI's protocol",
}
SERVER = "Server"


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
        # Where there are accounts, it takes a token; where there are none, nothing.
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
    """Return a rule as OpenAPI writes its path."""
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _described(app: Flask, rule: Route, method: str, operation: Operation) -> Schema:
    view = app.view_functions[rule.endpoint]
    summary, _, more = (view.__doc__ or rule.endpoint).strip().partition("\n")
    parameters = [path_parameter(name) for name in re.findall(r"<(?:\w+:)?(\w+)>", rule.rule)]
    parameters += [query_parameter(name, operation.own.get(name)) for name in operation.params]
    parameters += [header_parameter(name) for name in operation.headers]
    described: Schema = {
        "operationId": re.sub(r"\W+", "_", f"{rule.endpoint}_{rule.rule.rpartition('/')[2]}")
        if rule.rule.endswith("/doing")
        else rule.endpoint.replace(".", "_"),
        "summary": summary.rstrip("."),
        "tags": [TAGS.get(rule.endpoint.partition(".")[0], SERVER)],
        "parameters": parameters,
        "responses": _responses(rule, method, operation, bool(parameters)),
    }
    if more.strip():
        described["description"] = " ".join(more.split())
    if operation.body is not None:
        described["requestBody"] = _body(operation, operation.body)
    elif operation.file:
        described["requestBody"] = _file(operation)
    elif method == "POST":
        described["requestBody"] = {"content": {"application/json": {"schema": _ref(NoFields)}}}
    return described


def _body(operation: Operation, body: type[BaseModel]) -> Schema:
    if operation.form:
        # In a form, tags are one text with commas, and the file stands beside them.
        fields: Schema = {"file": {"type": "string", "format": "binary"}, "tags": {"type": "string"}}
        number = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
        fields |= {"replaces": number, "library_id": number}
        form = {"type": "object", "properties": fields, "required": ["file"], "additionalProperties": False}
        return {"required": True, "content": {"multipart/form-data": {"schema": form}}}
    content: Schema = {"schema": _ref(body)}
    if operation.example is not None:
        content["example"] = dict(operation.example)
    return {"required": not operation.optional, "content": {"application/json": content}}


def _file(operation: Operation) -> Schema:
    binary: Schema = {"type": "string", "format": "binary"}
    form = {"type": "object", "properties": {"file": binary}, "required": ["file"], "additionalProperties": False}
    either = {"anyOf": [{"type": "object"}, {"type": "array", "items": {}}]}
    content: Schema = {"application/json": {"schema": either, "example": dict(operation.example or {})}}
    return {"required": True, "content": content | {"multipart/form-data": {"schema": form}}}


def _responses(rule: Route, method: str, operation: Operation, takes: bool) -> Schema:
    content: Schema = {}
    if isinstance(operation.answer, str):
        content[operation.answer] = {"schema": {} if "json" in operation.answer else {"type": "string"}}
        if rule.rule.endswith("/export"):
            content["application/json"] = {"schema": {"type": "object"}}
    elif operation.answer is not None:
        content["application/json"] = {"schema": _ref(operation.answer)}
    if operation.events:
        content[EVENT_STREAM] = {
            "schema": EVENT,
            "x-events": {name: _ref(kind) for name, kind in operation.events.items()},
        }
    good: Schema = {"description": "The answer."} | ({"content": content} if content else {})
    responses: Schema = {str(operation.status): good}
    if rule.endpoint == "api.turn_stream":
        responses["204"] = {"description": "The stream was read to its end."}
    if rule.endpoint == "readyz":
        responses["503"] = good | {"description": "Not everything is ready."}
    for status in sorted(_error_statuses(rule, method, operation, takes)):
        responses.setdefault(str(status), _error(status, openai=rule.rule.startswith(OPENAI)))
    return responses


def _error_statuses(rule: Route, method: str, operation: Operation, takes: bool) -> set[int]:
    """Return the statuses under which a route may fail, from what it takes and does."""
    statuses = {400, 500, 507}
    if rule.policy != PUBLIC:
        statuses |= {401, 403}
    if "<" in rule.rule:
        statuses |= {404, 405, 409, 410}
    if takes or rule.rule.startswith(("/api/", OPENAI)):
        statuses |= {404, 422}  # An unknown parameter, a document that is not there.
    if not operation.takes_nothing or method == "POST":
        statuses |= {409, 413, 415, 422}
    if method in UNSAFE:
        statuses |= {403, 409}
    if operation.asks or operation.events or rule.endpoint == "openai.embeddings":
        statuses |= {502, 503, 504}
    return {openai_status(status, "") for status in statuses} | {409} if rule.rule.startswith(OPENAI) else statuses


def _error(status: int, *, openai: bool) -> Schema:
    kinds = ", ".join(name for own, name, _ in error_kinds() if own == status)
    shape = _ref(OpenAIErrorAnswer) if openai else {"$ref": REF.format(model="ErrorAnswer")}
    return {
        "description": f"One of: {kinds}." if kinds else "The server refuses, or had an error.",
        "content": {"application/json": {"schema": shape}, PROBLEM: {"schema": _ref(Problem)}},
    }


def _ref(kind: type) -> Schema:
    return {"$ref": REF.format(model=kind.__name__)}


def _schemas(app: Flask) -> Schema:
    """Return the schemas of all bodies and answers, and of what they consist of."""
    operations = [rule.operation for rule, _ in api_routes(app)]
    bodies = {one.body: None for one in operations if one.body is not None and not one.form} | {NoFields: None}
    answers: list[type] = [ErrorAnswer, OpenAIErrorAnswer, Problem]
    for operation in operations:
        answers += [operation.answer] if isinstance(operation.answer, type) else []
        answers += operation.events.values()
    inputs: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (body.__name__, "validation", TypeAdapter(body)) for body in bodies
    ]
    _, definitions = TypeAdapter.json_schemas(inputs, ref_template=REF)
    _, schemas = schema_components(dict.fromkeys(answers), ref_template=REF.replace("{model}", "{name}"))
    structs: set[type[Struct]] = set()
    for answer in answers:
        _add_structs(answer, structs)
    for kind in structs:
        _require_what_is_always_there(kind, schemas[kind.__name__])
    return {name: _in_words(schema) for name, schema in {**cast("Schema", definitions["$defs"]), **schemas}.items()}


def _add_structs(kind: Any, structs: set[type[Struct]]) -> None:
    """Add the structs of which a type consists."""
    if isinstance(kind, type) and issubclass(kind, Struct) and kind not in structs:
        structs.add(kind)
        for hint in get_type_hints(kind).values():
            _add_structs(hint, structs)
    for part in get_args(kind):
        _add_structs(part, structs)


def _require_what_is_always_there(kind: type[Struct], schema: Schema) -> None:
    """Require the fields of an answer that have a default, where a default is told like any other value."""
    for name, described in schema["properties"].items():
        if "default" in described and not kind.__struct_config__.omit_defaults:
            schema.setdefault("required", []).append(name)
        described.pop("default", None)


def _in_words(schema: Any) -> Any:
    """Return a schema in which what is allowed is said as a description, and titles that only repeat names are gone."""
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


def missing(app: Flask) -> Iterable[str]:
    """Return the endpoints of the API that nothing describes."""
    return sorted({rule.endpoint for rule, _ in api_routes(app) if rule.operation is UNDESCRIBED})
