"""Documents to look for on pages, and the names that a list shows."""

import re
from typing import Any

from rag_assistant.extraction.formats.kinds import PLAIN
from rag_assistant.records import NewDocument
from rag_assistant.services import Services

FACT = "The lighthouse keeper feeds seventeen geese."


def enter(services: Services, name: str, size_bytes: int = 1, media_type: str = PLAIN, **more: Any) -> int:
    """Put a document into the list that nobody works on, and return its id: to upload one takes longer."""
    return services.documents.add(NewDocument(name, media_type, size_bytes, name, name, **more))[0].id


def names_on(page: str) -> list[str]:
    return re.findall(r'<a id="document-\d+"[^>]*>([^<]*)</a>', page)
