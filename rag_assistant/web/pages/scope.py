"""Which documents a page asks about: in its address, in its forms, and in words."""

from collections.abc import Sequence
from typing import Any

from flask import request

from rag_assistant.records import Scope
from rag_assistant.web.languages import gettext, ngettext
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
    tags = _listed(scope.tags, gettext("or"))
    if not scope.document_ids:
        return gettext("documents tagged {tags}", tags=tags)
    named = scope.document_ids[:MAX_NAMED]
    names = services().documents.names(named)
    words = [names.get(one, gettext("document {n} (deleted)", n=one)) for one in named]
    if len(scope.document_ids) > MAX_NAMED:
        words.append(ngettext("{n} more", "{n} more", len(scope.document_ids) - MAX_NAMED))
    joined = _listed(words, gettext("and"))
    return gettext("{documents}, where tagged {tags}", documents=joined, tags=tags) if tags else joined


def _listed(words: Sequence[str], last: str) -> str:
    """Return words as a list in a sentence: "a, b and c"."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
