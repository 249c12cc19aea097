"""A document as JSON. Pure."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from rag_assistant.records import Document


def document_data(document: Document) -> dict[str, Any]:
    """Return a document as it is listed, with all that an administrator may see."""
    data = asdict(document)
    return {"document_id": data.pop("id")} | data | {"created_at": document.created_at.isoformat()}
