"""Tables over documents: a row for each document, a column for each question, an answer in each cell."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from rag_assistant.records.accounts import Shared
from rag_assistant.records.base import Number
from rag_assistant.records.questions import EVERYTHING, Scope

MAX_GRID_DOCUMENTS, MAX_GRID_COLUMNS = 500, 20
ColumnType = Literal["text", "number", "date", "yes_no"]
CellState = Literal["empty", "queued", "running", "done", "failed"]
# "unverified": no cited place plainly says the value, as docs/limitations.md promises of a value without a doubt.
CellDoubt = Literal[
    "unverified", "other_values", "ambiguous_date", "more_answered", "not_cited", "wrong_type", "not_understood"
]


class GridColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """A question that is asked of each document, and the type of its answers."""

    id: Number
    name: str
    question: str
    type: ColumnType = "text"


class Estimate(Struct, frozen=True, forbid_unknown_fields=True):
    """What starting a table will take, as the cells before did; ``None`` if that isn't known yet."""

    cells: int
    requests: int
    tokens: int
    seconds: int | None


class Grid(Shared, frozen=True, kw_only=True):
    """A table over the documents of ``scope``, else of its project; ``cells`` counts them by state.

    With ``watch``, new documents are asked by themselves from its start on. It stops at ``max_tokens``; ``reason`` says
    why it stopped by itself. What its answers used, replaced ones too, are ``used_tokens`` and ``used_seconds``. Of the
    cells that are done, ``outdated`` are of a document that has changed since, and ``quoted`` without a model. A full
    table has ``left_out`` so many documents.
    """

    id: int = field(name="grid_id")
    columns: tuple[GridColumn, ...]
    scope: Scope = EVERYTHING
    project_id: int | None = None
    watch: bool = False
    max_tokens: int | None = None
    cells_at_once: int = 4
    used_tokens: int = 0
    used_seconds: float = 0
    reason: str | None = None
    documents: int = 0
    left_out: int = 0
    cells: Mapping[CellState, int] = {}
    outdated: int = 0
    quoted: int = 0
    estimate: Estimate | None = None
    created_at: datetime
    deleted_at: datetime | None = None


class CellResult(Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer says, with the sentence it rests on: characters ``start`` to ``end`` of the document ``sha256``.

    ``number`` is for sorting; ``doubt`` is what keeps a value from being sure (docs/limitations.md).
    """

    outcome: Literal["value", "not_found", "disagreement"]
    value: str = ""
    number: float | None = None
    quote: str | None = None
    page: Number | None = None
    start: Number | None = None
    end: Number | None = None
    doubt: CellDoubt | None = None
    model: str | None = None
    sha256: str = ""
    tokens: int | None = None


class Cell(Struct, frozen=True, forbid_unknown_fields=True):
    """One cell; while it is asked again, it keeps its result. ``outdated``: its document has changed since."""

    document_id: int
    column_id: int
    state: CellState
    result: CellResult | None = None
    error: str | None = None
    outdated: bool = False


class GridRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A document with its cells, in the order of the columns."""

    document_id: int
    document: str
    cells: tuple[Cell, ...]


class ClaimedCell(Struct, frozen=True):
    """A cell that the process ``worker`` asks for the person who owns its table; its key, and the document's content.

    ``attempts`` counts how often it was begun, ``max_tokens`` what its answer may have, if there is a budget.
    """

    key: tuple[int, int, int]
    column: GridColumn
    person_id: int | None
    worker: str
    attempts: int
    sha256: str
    max_tokens: int | None
