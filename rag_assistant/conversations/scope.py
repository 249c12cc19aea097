"""Which documents may be asked about: those that are there."""

from __future__ import annotations

from rag_assistant.conversations.collaborators import Documents
from rag_assistant.errors import DocumentNotFound, InvalidRequest
from rag_assistant.records import Scope


def check_scope(documents: Documents, scope: Scope) -> None:
    """Refuse a scope that names what is not there. Raises DocumentNotFound, InvalidRequest."""
    for document_id in documents.missing(scope.document_ids):
        raise DocumentNotFound(document_id)
    if not scope.tags:
        return
    known = documents.tags()
    for tag in scope.tags:
        if tag not in known:
            there = f"There are: {', '.join(known)}." if known else "No document has a tag."
            raise InvalidRequest(f'No document has the tag "{tag}". {there}')
