"""Tables over documents: who may see them, their columns and rows, and which of their cells a process asks when."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from rag_assistant.records import MAX_GRID_DOCUMENTS, Cell, CellState, ClaimedCell, Grid, GridColumn, GridRow, Scope
from rag_assistant.records.errors import CellNotFound, GridNotFound, NotGridOwner, NothingToAsk
from rag_assistant.storage.accounts.libraries import SharedStore
from rag_assistant.storage.conversations.conversations import usable_project
from rag_assistant.storage.database import Store, record_of, set_values
from rag_assistant.storage.documents.scope import in_scope
from rag_assistant.storage.full_text import holds
from rag_assistant.storage.ownership import OF_A_PERSON, grids_of, in_readable_library, readable_project
from rag_assistant.storage.processes import is_nobodys
from rag_assistant.storage.tables import documents, grid_cells, grid_shares, grids, now, people, projects

# A cell is begun this often if the process or the model fails; a table stops after so many failures in a row.
MAX_ATTEMPTS, MAX_FAILURES = 3, 5
# With a budget, an answer has at most so many tokens: a value, and the thoughts before it; and at least so many.
MAX_CELL_TOKENS, MIN_CELL_TOKENS = 4096, 256
# The tokens of a request with its answer, but for passages; of a passage; and the fewest bytes of text in one.
REQUEST_TOKENS, PASSAGE_TOKENS, BYTES_PER_TOKEN, MAX_SAMPLE = 320, 250, 3, 50
BUDGET_USED = "The next answer would likely exceed the token budget of {n}. Raise it to go on."
# In place of a model's errors, which may name its address.
OWNER_SEES_WHY = "Only the owner of this table sees why."
ENDED_TOO_OFTEN = "The server ended several times while this was being answered."
RESULT, STATE, KEY = grid_cells.c.result, grid_cells.c.state, tuple(grid_cells.primary_key)
NUMBER, VALUE = RESULT["number"].as_float(), RESULT["value"].as_string()
_IS_OUTDATED = sa.func.coalesce(documents.c.sha256 != RESULT["sha256"].as_string(), sa.false(), type_=sa.Boolean)
_IS_QUOTED, _OUTCOME = RESULT["model"].as_string() == "quotes", RESULT["outcome"].as_string()
# Which rows are shown: those with such a cell.
CELL_FILTERS: dict[str, sa.ColumnElement[bool]] = {
    **{name: name == _OUTCOME for name in ("value", "not_found", "disagreement")},
    "doubtful": RESULT["doubt"].as_string().is_not(None) | (_OUTCOME == "disagreement") | _IS_OUTDATED,
    "failed": STATE == "failed",
    "unanswered": RESULT.is_(None),
}
# Once a table is stopped, what is running is not queued again: it has this state instead.
_UNASKED, _IS_STOPPED = sa.case((RESULT.is_(None), "empty"), else_="done"), (grid_cells.c.attempts == 0)
_CELL = sa.select(*KEY[1:], STATE, RESULT, grid_cells.c.error, _IS_OUTDATED.label("outdated"))
_COUNTED, _OTHERS = grid_cells.alias(), grids.alias()


class GridStore(SharedStore[Grid]):
    """Stores tables over documents. People see those they may read, with the rows of documents they may read."""

    table, item_id, of = grids, grid_shares.c.grid_id, staticmethod(grids_of)
    kind, not_found, not_owner, counted = Grid, GridNotFound, NotGridOwner, "documents"
    present = (grids.c.deleted_at.is_(None),)

    def all(self, *, deleted: bool = False) -> list[Grid]:
        """Return the tables that a person may read, their own first; ``deleted``: their own in the trash."""
        if deleted:
            return [one for one in self._readable(grids.c.deleted_at.is_not(None)) if one.mine]
        return super().all()

    def add(self, values: Mapping[str, Any]) -> Grid:
        """Create a table with a row for each document. Raises ProjectNotFound."""
        with self._database.read() as connection:
            usable_project(connection, values.get("project_id"))
        return self.change(self._add({**values, "columns": [], "created_at": now()}).id, values)

    def change(self, grid_id: int, values: Mapping[str, Any]) -> Grid:
        """Change a table; a column with another question or type is a new one. What is left of no cell is erased.

        Raises GridNotFound, NotGridOwner: only the owner shares with ``everyone``, chooses documents, drops columns.
        """
        with self._database.write() as connection:
            row = self._present(connection, grid_id, writers=not {"everyone", "scope"} & values.keys())
            changed: dict[str, Any] = {}
            if "columns" in values:
                changed["columns"] = _numbered(values["columns"], row["columns"])
            left = {one["id"] for one in changed.get("columns", row["columns"])}
            if drops := "scope" in values or any(one["id"] not in left for one in row["columns"]):
                self._own(connection, grid_id)
            if values.get("max_tokens", row["max_tokens"]) != row["max_tokens"]:
                changed["reason"] = None
            set_values(connection, grids, grid_id, {**values, **changed})
            self._fit(connection, grid_id, drops=drops)
        return self.get(grid_id)

    def fit(self, grid_id: int) -> None:
        """Add a row for each new document of a table."""
        with self._database.write() as connection:
            self._fit(connection, grid_id)

    def _fit(self, connection: sa.Connection, grid_id: int, *, drops: bool = False) -> None:
        """Add the missing cells of searchable documents, the oldest first; with ``drops``, drop those of no row."""
        row = connection.execute(sa.select(grids).where(grids.c.id == grid_id).with_for_update()).mappings().one()
        has_row, own = self._has_row(connection, row), grid_cells.c.grid_id == grid_id
        if drops:
            there = KEY[1].in_(sa.select(documents.c.id).where(has_row))
            is_left = sa.and_(there, KEY[2].in_([one["id"] for one in row["columns"]]))
            connection.execute(sa.delete(grid_cells).where(own, ~is_left))
        rows = documents.c.id.in_(sa.select(grid_cells.c.document_id).where(own))
        shown = sa.select(documents.c.id).where(has_row | rows).order_by(~rows, documents.c.id)
        columns = sa.union_all(*(sa.select(sa.literal(one["id"]).label("id")) for one in row["columns"])).subquery()
        exists = sa.exists().where(own, KEY[1] == documents.c.id, KEY[2] == columns.c.id)
        # A new column is asked once somebody wants it.
        state = sa.case((rows, "empty"), else_="queued" if row["watch"] and row["started"] else "empty")
        missing = sa.select(sa.literal(grid_id), documents.c.id, columns.c.id, state)
        missing = missing.select_from(documents.join(columns, sa.true()))
        missing = missing.where(has_row, ~exists, documents.c.id.in_(shown.limit(MAX_GRID_DOCUMENTS)))
        connection.execute(sa.insert(grid_cells).from_select([*KEY, STATE], missing))

    def without_row(self, grid: Grid) -> int:
        """Return how many documents a table has no row for: they are new, or there is no room."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(grids).where(grids.c.id == grid.id)).mappings().one()
            is_left = self._has_row(connection, row), ~sa.exists().where(KEY[0] == grid.id, KEY[1] == documents.c.id)
            return connection.execute(sa.select(sa.func.count(documents.c.id)).where(*is_left)).scalar_one()

    def _has_row(self, connection: sa.Connection, row: sa.RowMapping) -> sa.ColumnElement[bool]:
        """Return which documents a table is about."""
        # The owner, as whom it is asked, can search them.
        bound = self._database if row["person_id"] is None else self._database.for_person(row["person_id"])
        scope = row["scope"]
        if not scope and row["project_id"] is not None:
            usable = projects.c.id == row["project_id"], readable_project(bound, projects.c.id)
            # Without its project, it isn't about everything.
            scopes = connection.execute(sa.select(projects.c.scope).where(*usable)).scalars()
            scope = next(scopes, {"document_ids": [0]})
        is_in = in_scope(bound, documents.c.id, record_of(scope or {}, Scope)), documents.c.replaces.is_(None)
        return sa.and_(*is_in, OF_A_PERSON, documents.c.chunks > 0)

    def start(self, grid_id: int, document_id: int = 0, column_id: int = 0, *, asks_model: bool = True) -> Grid:
        """Queue every cell that has no answer or failed, else those outdated or quoted; or one of a document again.

        Raises GridNotFound, NotGridOwner, NothingToAsk, CellNotFound.
        """
        own, states = [grid_cells.c.grid_id == grid_id], ["empty", "failed"]
        if document_id:
            self._of_cell(STATE, grid_id, document_id, column_id)
            own, states = _cell_at(grid_id, document_id, column_id), [*states, "done"]
        with self._database.write() as connection:
            row = self._present(connection, grid_id, writers=True)
            self._fit(connection, grid_id)
            cells = sa.update(grid_cells).where(*own)
            queued, at = cells.values(state="queued", attempts=0, error=None), documents.c.id == KEY[1]
            goes_on = cells.where(STATE == "running", _IS_STOPPED).values(attempts=1)
            begun = connection.execute(goes_on).rowcount + connection.execute(queued.where(STATE.in_(states))).rowcount
            quoted = _IS_QUOTED if asks_model else sa.false()
            renewed = queued.where(STATE == "done", quoted | sa.exists().where(at, _IS_OUTDATED))
            if not (begun or document_id or connection.execute(renewed).rowcount or row["watch"]):
                raise NothingToAsk(row["name"])
            started = row["started"] or not document_id
            set_values(connection, grids, grid_id, {"reason": None, "failures": 0, "started": started})
        return self.get(grid_id)

    def stop(self, grid_id: int) -> Grid:
        """Ask no more cells, and watch no longer; answers being written are completed. Raises as ``change`` does."""
        with self._database.write() as connection:
            self._present(connection, grid_id, writers=True)
            _stop_asking(connection, grid_id)
        return self.get(grid_id)

    def trash(self, grid_id: int, *, restores: bool = False) -> None:
        """Stop a table and move it to the trash, or restore it from there. Raises GridNotFound, NotGridOwner."""
        with self._database.write() as connection:
            self._own(connection, grid_id)
            _stop_asking(connection, grid_id, deleted_at=None if restores else now())

    def erase(self, grid_id: int) -> None:
        """Erase a table that is in the trash, from the file too. Raises GridNotFound, NotGridOwner."""
        with self._database.write() as connection:
            if self._own(connection, grid_id)["deleted_at"] is None:
                raise GridNotFound(grid_id)
            connection.execute(sa.delete(grids).where(grids.c.id == grid_id))
        self._database.forget_deleted()

    def rows(
        self, grid: Grid, limit: int, offset: int = 0, *, sort: str = "name", sought: str = "", cells: str = ""
    ) -> tuple[list[GridRow], int]:
        """Return up to ``limit`` rows after the first ``offset``, and how many there are.

        ``sort`` is "name" or a column's id, with "-" descending; rows without a value come last. ``sought`` is in the
        document's name or a cell; ``cells`` is one of CELL_FILTERS.
        """
        own = grid_cells.c.grid_id == grid.id
        of_row = sa.and_(own, grid_cells.c.document_id == documents.c.id)
        with self._database.read() as connection:
            query = sa.select(documents.c.id, documents.c.name).where(in_readable_library(connection))
            query = query.where(documents.c.id.in_(sa.select(grid_cells.c.document_id).where(own)))
            if sought:
                inside = sa.exists().where(of_row, holds(connection, VALUE, sought)).correlate(documents)
                query = query.where(holds(connection, documents.c.name, sought) | inside)
            if cells:
                query = query.where(sa.exists().where(of_row, CELL_FILTERS[cells]).correlate(documents))
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            name, order = sort.removeprefix("-"), sa.desc if sort.startswith("-") else sa.asc
            if name.isdigit():
                query = query.outerjoin(grid_cells, sa.and_(of_row, grid_cells.c.column_id == int(name)))
                query = query.order_by(NUMBER.is_(None), order(NUMBER), sa.func.coalesce(VALUE, "") == "", order(VALUE))
            query = query.order_by(order(documents.c.name_key), documents.c.id).limit(limit).offset(offset)
            names = dict(map(tuple, connection.execute(query)))
            joined = _CELL.join(documents, documents.c.id == grid_cells.c.document_id).where(own, KEY[1].in_(names))
            records = [record_of(one, Cell) for one in connection.execute(joined).mappings()]
        shown = records if grid.mine else [replace(one, error=one.error and OWNER_SEES_WHY) for one in records]
        at = {(one.document_id, one.column_id): one for one in shown}
        return [GridRow(one, names[one], tuple(at[one, column.id] for column in grid.columns)) for one in names], total

    def receipt(self, grid_id: int, document_id: int, column_id: int) -> dict[str, Any]:
        """Return to the owner a cell's answer as it came, with what was sent for it. Raises as ``start`` does."""
        receipt = self._of_cell(grid_cells.c.receipt, grid_id, document_id, column_id)
        if not (grid := self.get(grid_id)).mine:
            raise NotGridOwner(grid.name)
        return {"answer": "", "messages": [], "response_format": None} | (receipt or {})

    def tokens_each(self, grid_ids: Sequence[int], passages: int) -> dict[int, float]:
        """Return what an answer takes in each table: as those before, else a request with up to so many passages."""
        with self._database.read() as connection:
            return _tokens_each(connection, grid_ids, passages)

    def _of_cell(self, column: sa.Column[Any], *key: int) -> Any:
        self.get(key[0])
        there = KEY[1].in_(sa.select(documents.c.id).where(in_readable_library(self._database)))
        if not (values := self._values(sa.select(column).where(*_cell_at(*key), there))):
            raise CellNotFound(*key)
        return values[0]

    def _present(self, connection: sa.Connection, grid_id: int, *, writers: bool = False) -> sa.RowMapping:
        row = self._own(connection, grid_id, writers=writers)
        if row["deleted_at"] is not None:
            raise GridNotFound(grid_id)
        return row

    def _in_each(self, connection: sa.Connection) -> sa.Select[Any]:
        readable = documents.c.id == grid_cells.c.document_id, in_readable_library(connection)
        counted = sa.select(grid_cells.c.grid_id, sa.func.count(grid_cells.c.document_id.distinct()))
        return counted.where(*readable).group_by(grid_cells.c.grid_id)

    def _records_of(self, connection: sa.Connection, rows: Sequence[sa.RowMapping]) -> list[Grid]:
        counts: dict[int, Counter[str]] = {row["id"]: Counter() for row in rows}
        renewable = sa.case((STATE != "done", None), (_IS_OUTDATED, "outdated"), (_IS_QUOTED, "quoted"))
        counted = sa.select(KEY[0], STATE, renewable, sa.func.count()).join(documents, documents.c.id == KEY[1])
        counted = counted.where(KEY[0].in_(counts), in_readable_library(connection)).group_by(KEY[0], STATE, renewable)
        for grid_id, *kinds, number in connection.execute(counted):
            counts[grid_id].update(dict.fromkeys(filter(None, kinds), number))
        whole: Any = [{**row, "scope": row["scope"] or {}, "cells": counts[row["id"]]} for row in rows]
        for row in whole:
            row |= {name: row["cells"].pop(name, 0) for name in ("outdated", "quoted")}
        records = super()._records_of(connection, whole)
        return [one if one.mine else _for_others(one) for one in records]


class CellQueue(Store):
    """Gives out the cells to be asked, of everybody's tables, at the pace and within the budget of each."""

    def claim(
        self, worker: str, max_at_once: int, max_per_minute: int, resting: Sequence[int], passages: int | None
    ) -> ClaimedCell | None:
        """Claim the next cell of the table with the fewest running ones; ``None`` if none may be asked now.

        A person's limits and how many ``passages`` a model gets, ``None`` without one, are as given. Tables that are
        ``resting`` are left out; one whose budget the next answer would likely exceed is stopped.
        """
        waiting = sa.select(grid_cells.c.grid_id).where(STATE == "queued", grid_cells.c.grid_id.not_in(resting))
        if not self._values(waiting.limit(1)):
            return None
        of_owner = sa.select(_OTHERS.c.id).where(_OTHERS.c.person_id == grids.c.person_id)
        own, of_person = _COUNTED.c.grid_id == grids.c.id, _COUNTED.c.grid_id.in_(of_owner)
        counted = {"running": (own, _COUNTED.c.state == "running")}
        counted["recent"] = own, _COUNTED.c.asked_at > now() - timedelta(minutes=1)
        counted |= {f"{name}_of_person": (of_person, counted[name][1]) for name in ("running", "recent")}
        number = sa.select(sa.func.count()).select_from(_COUNTED)
        counts = (number.where(*conditions).scalar_subquery().label(name) for name, conditions in counted.items())
        query = sa.select(grids, *counts).outerjoin(people, people.c.id == grids.c.person_id)
        query = query.where(people.c.disabled_at.is_(None), grids.c.deleted_at.is_(None), grids.c.id.in_(waiting))
        query = query.order_by("running", "recent", grids.c.id).with_for_update(of=grids)
        with self._database.write() as connection:
            for row in connection.execute(query).mappings().all():
                used, budget = row["used_tokens"], row["max_tokens"]
                if row["running_of_person"] >= max_at_once or row["recent_of_person"] >= max_per_minute:
                    continue
                if row["running"] >= (row["cells_at_once"] if budget is None or used else 1):
                    continue
                if budget is None:
                    return _take(connection, row, worker, None)
                expected = 0 if passages is None else round(_tokens_each(connection, [row["id"]], passages)[row["id"]])
                if (left := budget - used - row["running"] * expected) >= expected:
                    most = min(MAX_CELL_TOKENS, max(MIN_CELL_TOKENS, left - expected))
                    return _take(connection, row, worker, most)
                _stop_asking(connection, row["id"], BUDGET_USED.format(n=f"{budget:,}"))
        return None

    def end(self, cell: ClaimedCell, state: CellState, *, tokens: int = 0, seconds: float = 0, **values: Any) -> None:
        """Store how asking a cell ended, unless others have taken it over, and what it used.

        If it is "queued", it is asked again; "empty" takes it off the queue. After many failures, its table stops.
        """
        own = STATE == "running", grid_cells.c.worker == cell.worker
        unasked = {"queued": sa.case((_IS_STOPPED, _UNASKED), else_=state), "empty": _UNASKED}
        ended = sa.update(grid_cells).where(*_cell_at(*cell.key), *own)
        with self._database.write() as connection:
            # As stopping locks them: the table first.
            connection.execute(sa.select(grids.c.id).where(grids.c.id == cell.key[0]).with_for_update())
            if not connection.execute(ended.values(state=unasked.get(state, state), **values)).rowcount:
                return
            used = {"used_tokens": grids.c.used_tokens + tokens, "used_seconds": grids.c.used_seconds + seconds}
            failures = 0 if state == "done" else grids.c.failures + int(bool(values.get("error")))
            counted = sa.update(grids).where(grids.c.id == cell.key[0]).values(failures=failures, **used)
            if connection.execute(counted.returning(grids.c.failures)).scalar_one() >= MAX_FAILURES:
                _stop_asking(connection, cell.key[0], values["error"])

    def take_up(self) -> list[int]:
        """Queue the cells of processes that died, unless that was too often; return the tables that watch."""
        left = STATE == "running", is_nobodys(grid_cells.c.worker)
        if self._values(sa.select(grid_cells.c.grid_id).where(*left).limit(1)):
            often = grid_cells.c.attempts >= MAX_ATTEMPTS
            state = sa.case((_IS_STOPPED, _UNASKED), (often, "failed"), else_="queued")
            ended = {"state": state, "error": sa.case((often, ENDED_TOO_OFTEN))}
            self._commit(sa.update(grid_cells).where(*left).values(ended))
        return self._values(sa.select(grids.c.id).where(grids.c.watch, grids.c.deleted_at.is_(None)))


def _for_others(grid: Grid) -> Grid:
    """Return a table as those see it with whom it is shared."""
    is_budget = grid.reason == BUDGET_USED.format(n=f"{grid.max_tokens or 0:,}")
    reason = grid.reason if is_budget else grid.reason and OWNER_SEES_WHY
    return replace(grid, reason=reason, used_tokens=0, used_seconds=0)


def _tokens_each(connection: sa.Connection, grid_ids: Sequence[int], passages: int) -> dict[int, float]:
    """Return ``GridStore.tokens_each``: a document that is shorter than its passages would be is sent whole."""
    # Of one table, as before each answer, those of the first cells are enough.
    most_cells = MAX_SAMPLE if len(grid_ids) == 1 else 1_000_000
    cells = sa.select(grid_cells).where(KEY[0].in_(grid_ids)).limit(most_cells).subquery()
    most = PASSAGE_TOKENS * sa.case((documents.c.chunks < passages, documents.c.chunks), else_=passages)
    whole = documents.c.size_bytes / BYTES_PER_TOKEN
    sent = REQUEST_TOKENS + sa.func.avg(sa.case((whole < most, whole), else_=most))
    query = sa.select(cells.c.grid_id, sa.func.avg(cells.c.result["tokens"].as_float()), sent)
    query = query.join(documents, documents.c.id == cells.c.document_id).group_by(cells.c.grid_id)
    of_each = {grid_id: float(as_before or expected) for grid_id, as_before, expected in connection.execute(query)}
    return dict.fromkeys(grid_ids, float(REQUEST_TOKENS)) | of_each


def _take(connection: sa.Connection, row: sa.RowMapping, worker: str, max_tokens: int | None) -> ClaimedCell:
    query = sa.select(*KEY, grid_cells.c.attempts, documents.c.sha256).where(KEY[0] == row["id"], STATE == "queued")
    query = query.join(documents, documents.c.id == grid_cells.c.document_id).order_by(*KEY).limit(1)
    *key, attempts, sha256 = connection.execute(query).one()
    begun = {"state": "running", "worker": worker, "attempts": attempts + 1, "asked_at": now()}
    connection.execute(sa.update(grid_cells).where(*_cell_at(*key)).values(begun))
    column = next(GridColumn(**one) for one in row["columns"] if one["id"] == key[2])
    return ClaimedCell((key[0], key[1], key[2]), column, row["person_id"], worker, attempts + 1, sha256, max_tokens)


def _cell_at(*key: int) -> list[sa.ColumnElement[bool]]:
    return [column == value for column, value in zip(KEY, key, strict=True)]


def _stop_asking(connection: sa.Connection, grid_id: int, reason: str | None = None, **values: Any) -> None:
    """Take a table's cells off the queue, and record the reason, if it stops by itself, and other ``values``."""
    stopped = sa.update(grid_cells).where(grid_cells.c.grid_id == grid_id, STATE.in_(["queued", "running"]))
    connection.execute(stopped.values(state=sa.case((STATE == "running", STATE), else_=_UNASKED), attempts=0))
    set_values(connection, grids, grid_id, {"reason": reason, "watch": False, "failures": 0, **values})


def _numbered(columns: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return columns as stored: one that is there with its question and type keeps its id, others get new ones."""
    ids = {(one["id"], one["question"], one["type"]): one["id"] for one in before}
    new = count(max(ids.values(), default=0) + 1)
    numbers = [ids.pop((one["id"], one["question"], one["type"]), None) for one in columns]
    named = [{**one, "name": one["name"] or one["question"][:100]} for one in columns]
    return [{**one, "id": number or next(new)} for one, number in zip(named, numbers, strict=True)]
