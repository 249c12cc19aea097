"""The OpenAPI document at /openapi.json, and as a page at /docs: no script, and nothing from another host."""

import json
from functools import partial
from typing import Any

from flask import Blueprint, Response, current_app, jsonify, render_template, request
from markupsafe import Markup, escape

from rag_assistant.web.errors import error_kinds
from rag_assistant.web.routing import PUBLIC

blueprint = Blueprint("openapi", __name__)
Schema = dict[str, Any]
# A placeholder for the server's address, the only thing that varies in the page.
ANYWHERE = "https://anywhere.invalid"


@blueprint.get("/openapi.json", policy=PUBLIC, answer="application/json")
def openapi_json() -> Response:
    """Return the description of the API, in OpenAPI 3.1."""
    return jsonify(_document())


@blueprint.get("/docs", policy=PUBLIC)
def docs() -> str:
    """Show the description of the API."""
    listed: Markup | None = current_app.extensions.get("api_operations")
    if listed is None:
        listed = current_app.extensions["api_operations"] = _listed()
    here = request.host_url.rstrip("/") + request.script_root
    return render_template("api_docs.html", listed=listed.replace(ANYWHERE, escape(here)))


def _listed() -> Markup:
    """Return all operations and schemas as HTML, with ``ANYWHERE`` in place of the server's address."""
    document = _document()
    grouped: dict[str, list[Schema]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            shown = operation | {"method": method.upper(), "path": path, "call": _call(method.upper(), path, operation)}
            grouped[operation["tags"][0]].append(shown)
    schemas = document["components"]["schemas"]
    as_json = partial(json.dumps, indent=2, ensure_ascii=False)
    drawn = render_template(
        "_api_operations.html", groups=grouped, schemas=schemas, errors=error_kinds(), as_json=as_json
    )
    return Markup(drawn)  # noqa: S704 - A template of ours drew it.


def _document() -> Schema:
    document: Schema | None = current_app.extensions.get("openapi_document")
    if document is None:
        # Frees the response models, which nothing else needs.
        from rag_assistant.web.openapi.document import openapi_document

        document = current_app.extensions["openapi_document"] = openapi_document(current_app)
    return document | {"servers": [{"url": request.script_root or "/"}]}


def _call(method: str, path: str, operation: Schema) -> str:
    parts = ["curl -s", *([f"-X {method}"] if method not in ("GET", "POST") else []), f"'{ANYWHERE}{path}'"]
    content = operation.get("requestBody", {}).get("content", {})
    example = content.get("application/json", {}).get("example")
    if "multipart/form-data" in content and example is None:
        parts.append("-F file=@FILE")
    elif example is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(example)}'"]
    elif method == "POST":
        parts.insert(1, "-X POST")
    return " ".join(parts)
