"""Which documents may be asked about: those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_assistant.records import Scope
from rag_assistant.records.errors import DocumentNotFound, InvalidRequest

if TYPE_CHECKING:
    from rag_assistant.storage.documents.documents import DocumentStore


def check_scope(documents: DocumentStore, scope: Scope) -> None:
    """Refuse a scope that names what is not there. Raises DocumentNotFound, InvalidRequest."""
    for document_id in documents.missing(scope.document_ids):
        raise DocumentNotFound(document_id)
    if not scope.tags:
        return
    known = documents.tags()
    for tag in scope.tags:
        if tag not in known:
            there = f"There are: {', '.join(known)}." if known else "No document has any tags."
            raise InvalidRequest(f'No document has the tag "{tag}". {there}')
