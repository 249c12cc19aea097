"""What a library report lists, all of it as the person asking may see it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rag_assistant.records.documents import DateOrigin, DocumentState
from rag_assistant.records.views import CorrectionAnswer


class ReportedDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document of a report; of an unused one, how many ``questions`` since a moment have not found it."""

    id: int = field(name="document_id")
    name: str
    state: DocumentState
    date: str
    date_from: DateOrigin
    reason: str | None
    questions: int | None = None
    since: datetime | None = None


class NearCopies(Struct, frozen=True, forbid_unknown_fields=True):
    """Documents with nearly the same text, or ``identical`` letters and digits, and the ``newer`` one, if known."""

    documents: Annotated[list[ReportedDocument], Meta(min_length=2, max_length=2)]
    identical: bool
    newer: int | None


class ReportedQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A question that was asked so many ``times``, the last time here; ``changes`` are those to what it cites."""

    conversation_id: int
    turn: int
    turn_id: int
    question: str
    asked_at: datetime
    times: int = 1
    changes: Sequence[CorrectionAnswer] = ()
    rating: Literal["up", "down"] | None = None


class LibraryReport(Struct, frozen=True, forbid_unknown_fields=True):
    """What could be wrong with so many documents and answers: the first of each list, and ``counts`` of all of it.

    ``others_unanswered`` is for administrators; ``limits`` are sentences on what was left out.
    """

    documents: int
    questions: int
    counts: dict[str, int]
    outdated: list[ReportedQuestion]
    near_copies: list[NearCopies]
    garbled: list[ReportedDocument]
    unread: list[ReportedDocument]
    unanswered: list[ReportedQuestion]
    unused: list[ReportedDocument]
    others_unanswered: int | None
    limits: list[str]
