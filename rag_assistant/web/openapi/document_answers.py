"""Documents, libraries and what is found in them, as types of answers; see turn_answers.py."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from rag_assistant.records import Access, DocumentState
from rag_assistant.web.openapi.conversation_answers import Page
from rag_assistant.web.openapi.turn_answers import (
    EXACT,
    PassageAnswer,
)


@EXACT
class DocumentAnswer(TypedDict):
    """A document, and how far it has come."""

    document_id: int
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    state: DocumentState
    reason: str | None
    chunks: int
    embedded: int
    pages: int | None
    scanned_pages: int
    recognised_pages: int
    tags: list[str]
    created_at: str
    origin: NotRequired[str | None]
    replaces: int | None
    new: NotRequired[bool]
    library_id: NotRequired[int | None]


@EXACT
class DocumentsAnswer(Page):
    """A page of documents."""

    documents: list[DocumentAnswer]


@EXACT
class OriginAnswer(TypedDict):
    """What came of looking through a folder, a repository or a bucket last."""

    address: str
    checked_at: str | None
    files: int
    refused: int
    problem: str | None


@EXACT
class OriginsAnswer(TypedDict):
    """Everything from which documents come by themselves."""

    sources: list[OriginAnswer]


@EXACT
class TagsAnswer(TypedDict):
    """How many documents have each tag."""

    tags: dict[str, int]


@EXACT
class ShareAnswer(TypedDict):
    """With whom a library is shared, and what they may do."""

    person: str
    access: Access


@EXACT
class LibraryAnswer(TypedDict):
    """A set of documents, whose it is, and with whom it is shared."""

    library_id: int
    name: str
    owner: str | None
    documents: int
    everyone: Access | None
    shares: list[ShareAnswer]
    mine: bool
    writable: bool


@EXACT
class LibrariesAnswer(TypedDict):
    """The libraries that may be read, the own ones first."""

    libraries: list[LibraryAnswer]


@EXACT
class TextAnswer(TypedDict):
    """The text of a document, and where its pages begin."""

    document_id: int
    text: str
    page_starts: list[int]


@EXACT
class SearchAnswer(TypedDict):
    """What retrieval finds."""

    query: str
    follow_up_context: str | None
    leans_on: str | None
    passages: list[PassageAnswer]
