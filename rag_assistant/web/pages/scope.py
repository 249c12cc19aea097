"""Which documents a page asks about: in its address, in its forms, and in words."""

from __future__ import annotations

from typing import Any

from flask import request

from rag_assistant.records import Scope
from rag_assistant.web.request_parsing import ids_of
from rag_assistant.web.services import services

MAX_NAMED = 3


def scope_in_address() -> Scope:
    """Return the documents that the address of a page names with documents and tag. Raises InvalidRequest."""
    tags = tuple(tag.strip() for tag in request.args.getlist("tag") if tag.strip())
    return Scope(ids_of("documents", request.args.getlist("documents")), tags)


def scope_in_form() -> dict[str, Any]:
    """Return the fields of a question that say which documents a form asks about. Raises InvalidRequest."""
    named, tags = request.form.getlist("document_ids"), request.form.getlist("tags")
    fields: dict[str, Any] = {"document_ids": list(ids_of("document_ids", named)), "tags": tags}
    return {name: values for name, values in fields.items() if values}


def in_words(scope: Scope) -> str:
    """Return which documents a scope leaves, such as "geese.pdf" or "documents tagged birds or boats"."""
    tagged = f"tagged {' or '.join(scope.tags)}" if scope.tags else ""
    if not scope.document_ids:
        return f"documents {tagged}"
    named = scope.document_ids[:MAX_NAMED]
    known = services().documents.names(named)
    words = [known.get(document_id, f"document {document_id} (deleted)") for document_id in named]
    if len(scope.document_ids) > MAX_NAMED:
        words.append(f"{len(scope.document_ids) - MAX_NAMED} more")
    joined = " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
    return f"{joined}, where {tagged}" if tagged else joined
