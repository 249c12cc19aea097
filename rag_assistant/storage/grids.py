"""Tables over documents: who may see them, their columns and rows. grid_cells.py has the cells that are asked."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from rag_assistant.records import MAX_GRID_DOCUMENTS, Cell, Grid, GridColumn, GridRow, Scope
from rag_assistant.records.errors import CellNotFound, GridNotFound, NotGridOwner, NothingToAsk
from rag_assistant.storage.accounts.libraries import SharedStore
from rag_assistant.storage.conversations.conversations import usable_project
from rag_assistant.storage.database import insert_rows, record_of, set_values
from rag_assistant.storage.documents.scope import in_scope
from rag_assistant.storage.full_text import holds
from rag_assistant.storage.ownership import OF_A_PERSON, grids_of, in_readable_library, readable_project
from rag_assistant.storage.tables import documents, grid_cells, grid_shares, grids, now, projects

RESULT, KEY = grid_cells.c.result, tuple(grid_cells.primary_key)
NUMBER, VALUE = RESULT["number"].as_float(), RESULT["value"].as_string()
# Which rows are shown: those with such a cell.
CELL_FILTERS: dict[str, sa.ColumnElement[bool]] = {
    **{name: RESULT["outcome"].as_string() == name for name in ("value", "not_found", "disagreement")},
    "doubtful": RESULT["doubt"].as_string().is_not(None),
    "failed": grid_cells.c.state == "failed",
    "unanswered": RESULT.is_(None),
}
_IS_OUTDATED = sa.func.coalesce(documents.c.sha256 != RESULT["sha256"].as_string(), sa.false()).label("outdated")
_CELL = sa.select(*(grid_cells.c[name] for name in Cell.__struct_fields__ if name != "outdated"), _IS_OUTDATED)


class GridStore(SharedStore[Grid]):
    """Stores tables over documents. People see those they may read, with the rows of documents they may read."""

    table, item_id, of = grids, grid_shares.c.grid_id, staticmethod(grids_of)
    kind, not_found, not_owner, counted = Grid, GridNotFound, NotGridOwner, "documents"

    def all(self, *, deleted: bool = False) -> list[Grid]:
        """Return the tables that a person may read, their own first; ``deleted``: their own in the trash."""
        return [one for one in super().all() if (one.deleted_at is not None) is deleted and (one.mine or not deleted)]

    def add(self, values: Mapping[str, Any], columns: Sequence[GridColumn], scope: Scope) -> Grid:
        """Create a table with a row for each document. Raises ProjectNotFound."""
        with self._database.read() as connection:
            usable_project(connection, values.get("project_id"))
        own = {"columns": _numbered(columns), "scope": scope.as_dict(), "created_at": now()}
        return self.change(self._add({**values, **own}).id, {})

    def change(
        self, grid_id: int, values: Mapping[str, Any], columns: Sequence[GridColumn] = (), scope: Scope | None = None
    ) -> Grid:
        """Change a table; a column with another question or type is a new one. What is left of no cell is erased.

        Raises GridNotFound, NotGridOwner: only the owner shares with ``everyone``, and chooses documents.
        """
        changed = dict(values) | ({} if scope is None else {"scope": scope.as_dict()})
        with self._database.write() as connection:
            row = self._present(connection, grid_id, writers=not {"everyone", "scope"} & changed.keys())
            if columns:
                changed["columns"] = _numbered(columns, [GridColumn(**one) for one in row["columns"]])
            set_values(connection, grids, grid_id, changed)
            self._fit(connection, grid_id, drops=bool(columns or scope is not None))
        return self.get(grid_id)

    def fit(self, grid_id: int) -> None:
        """Add a row for each new document of a table."""
        with self._database.write() as connection:
            self._fit(connection, grid_id)

    def _fit(self, connection: sa.Connection, grid_id: int, *, drops: bool = False) -> None:
        """Add the missing cells of searchable documents, the oldest first; with ``drops``, drop those of no row."""
        row = connection.execute(sa.select(grids).where(grids.c.id == grid_id).with_for_update()).mappings().one()
        own, columns = grid_cells.c.grid_id == grid_id, [one["id"] for one in row["columns"]]
        # The owner, as whom it is asked, can search them.
        bound = self._database if row["person_id"] is None else self._database.for_person(row["person_id"])
        here, scope = projects.c.id == row["project_id"], row["scope"] or {}
        if not scope and row["project_id"] is not None:
            of_project = sa.select(projects.c.scope).where(here, readable_project(bound, projects.c.id))
            project = connection.execute(of_project).first()
            # Without its project, it isn't about everything.
            scope = {"document_ids": [0]} if project is None else project.scope or {}
        readable = in_scope(bound, documents.c.id, record_of(scope, Scope))
        has_row = readable, OF_A_PERSON, documents.c.replaces.is_(None), documents.c.chunks > 0
        if drops:
            gone = grid_cells.c.document_id.not_in(sa.select(documents.c.id).where(*has_row))
            connection.execute(sa.delete(grid_cells).where(own, gone | grid_cells.c.column_id.not_in(columns)))
        counted = sa.select(grid_cells.c.document_id).where(own).group_by(grid_cells.c.document_id)
        rows = set(connection.execute(counted).scalars())
        whole = counted.having(sa.func.count() == len(columns))
        lacking = sa.select(documents.c.id).where(*has_row, documents.c.id.not_in(whole)).order_by(documents.c.id)
        ids = connection.execute(lacking.limit(MAX_GRID_DOCUMENTS)).scalars().all()
        new = [one for one in ids if one not in rows][: max(0, MAX_GRID_DOCUMENTS - len(rows))]
        pairs = map(tuple, connection.execute(sa.select(*KEY[1:]).where(own, grid_cells.c.document_id.in_(ids))))
        missing = {(one, column) for one in {*new, *rows.intersection(ids)} for column in columns}.difference(pairs)
        state = "queued" if row["watch"] else "empty"
        cells = [dict(zip(("document_id", "column_id"), pair, strict=True)) for pair in sorted(missing)]
        insert_rows(connection, grid_cells, [{"grid_id": grid_id, "state": state} | cell for cell in cells])

    def start(self, grid_id: int, document_id: int = 0, column_id: int = 0) -> Grid:
        """Queue every cell that has no answer or failed; or one of a document again.

        Raises GridNotFound, NotGridOwner, NothingToAsk, CellNotFound.
        """
        with self._database.write() as connection:
            row = self._present(connection, grid_id, writers=True)
            self._fit(connection, grid_id)
            which, states = [grid_cells.c.grid_id == grid_id], ["empty", "failed"]
            if document_id:
                which, states = self._cell(grid_id, document_id, column_id), [*states, "done"]
            queued = sa.update(grid_cells).where(*which, grid_cells.c.state.in_(states))
            if not connection.execute(queued.values(state="queued", attempts=0, error=None)).rowcount:
                if document_id and connection.execute(sa.select(KEY[0]).where(*which)).first() is None:
                    raise CellNotFound(grid_id, document_id, column_id)
                if not document_id and not row["watch"]:
                    raise NothingToAsk(row["name"])
            set_values(connection, grids, grid_id, {"reason": None, "failures": 0})
        return self.get(grid_id)

    def stop(self, grid_id: int) -> Grid:
        """Ask no more cells, and watch no longer; answers being written are completed. Raises as ``change`` does."""
        with self._database.write() as connection:
            self._present(connection, grid_id, writers=True)
            stop_asking(connection, grid_id)
        return self.get(grid_id)

    def trash(self, grid_id: int) -> None:
        """Stop a table, and move it to the trash. Raises GridNotFound, NotGridOwner."""
        with self._database.write() as connection:
            self._present(connection, grid_id)
            stop_asking(connection, grid_id, deleted_at=now())

    def restore(self, grid_id: int) -> Grid:
        """Restore a table from the trash. Raises GridNotFound, NotGridOwner."""
        with self._database.write() as connection:
            self._own(connection, grid_id)
            set_values(connection, grids, grid_id, {"deleted_at": None})
        return self.get(grid_id)

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
        first = grid_cells.alias()
        in_grid = first.c.grid_id == grid.id, first.c.column_id == grid.columns[0].id
        of_row = grid_cells.c.grid_id == grid.id, grid_cells.c.document_id == documents.c.id
        with self._database.read() as connection:
            query = sa.select(documents.c.id, documents.c.name).join(first, first.c.document_id == documents.c.id)
            query = query.where(*in_grid, in_readable_library(connection))
            if sought:
                inside = sa.exists().where(*of_row, holds(connection, VALUE, sought)).correlate(documents)
                query = query.where(holds(connection, documents.c.name, sought) | inside)
            if cells:
                query = query.where(sa.exists().where(*of_row, CELL_FILTERS[cells]).correlate(documents))
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            name, order = sort.removeprefix("-"), sa.desc if sort.startswith("-") else sa.asc
            if name.isdigit():
                query = query.outerjoin(grid_cells, sa.and_(*of_row, grid_cells.c.column_id == int(name)))
                query = query.order_by(NUMBER.is_(None), order(NUMBER), sa.func.coalesce(VALUE, "") == "", order(VALUE))
            query = query.order_by(order(documents.c.name_key), documents.c.id).limit(limit).offset(offset)
            rows = connection.execute(query).all()
            own = grid_cells.c.grid_id == grid.id, grid_cells.c.document_id.in_([row.id for row in rows])
            joined = _CELL.join(documents, documents.c.id == grid_cells.c.document_id).where(*own)
            cells_of: dict[int, dict[int, Cell]] = {row.id: {} for row in rows}
            for one in connection.execute(joined).mappings():
                cells_of[one["document_id"]][one["column_id"]] = record_of(
                    {**one, "outdated": bool(one["outdated"])}, Cell
                )
        ids = [column.id for column in grid.columns]
        return [GridRow(row.id, row.name, tuple(cells_of[row.id][one] for one in ids)) for row in rows], total

    def receipt(self, grid_id: int, document_id: int, column_id: int) -> dict[str, Any]:
        """Return a cell's answer as it came, with the messages that were sent for it. Raises as ``start`` does."""
        self.get(grid_id)
        receipts = self._values(sa.select(grid_cells.c.receipt).where(*self._cell(grid_id, document_id, column_id)))
        if not receipts:
            raise CellNotFound(grid_id, document_id, column_id)
        return receipts[0] or {"answer": "", "messages": []}

    def _cell(self, grid_id: int, document_id: int, column_id: int) -> list[sa.ColumnElement[bool]]:
        """Return the conditions for a cell of a readable document."""
        there = sa.select(documents.c.id).where(in_readable_library(self._database))
        return [*cell_at(grid_id, document_id, column_id), grid_cells.c.document_id.in_(there)]

    def _present(self, connection: sa.Connection, grid_id: int, *, writers: bool = False) -> sa.RowMapping:
        row = self._own(connection, grid_id, writers=writers)
        if row["deleted_at"] is not None:
            raise GridNotFound(grid_id)
        return row

    def _in_each(self, connection: sa.Connection) -> sa.Select[Any]:
        count = sa.func.count(grid_cells.c.document_id.distinct())
        readable = documents.c.id == grid_cells.c.document_id, in_readable_library(connection)
        return sa.select(grid_cells.c.grid_id, count).where(*readable).group_by(grid_cells.c.grid_id)

    def _records_of(self, connection: sa.Connection, rows: Sequence[sa.RowMapping]) -> list[Grid]:
        counts: dict[int, dict[str, int]] = {row["id"]: {} for row in rows}
        counted = sa.select(grid_cells.c.grid_id, grid_cells.c.state, sa.func.count())
        for grid_id, state, count in connection.execute(counted.group_by(grid_cells.c.grid_id, grid_cells.c.state)):
            counts.setdefault(grid_id, {})[state] = count
        whole: Any = [{**row, "scope": row["scope"] or {}, "cells": counts[row["id"]]} for row in rows]
        return super()._records_of(connection, whole)


def cell_at(*key: int) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for the cell of a table, a document and a column."""
    return [column == value for column, value in zip(KEY, key, strict=True)]


def stop_asking(connection: sa.Connection, grid_id: int, reason: str | None = None, **values: Any) -> None:
    """Take a table's cells off the queue, and record the reason, if it stops by itself, and other ``values``."""
    waiting = grid_cells.c.grid_id == grid_id, grid_cells.c.state == "queued"
    state = sa.case((RESULT.is_(None), "empty"), else_="done")
    connection.execute(sa.update(grid_cells).where(*waiting).values(state=state))
    set_values(connection, grids, grid_id, {"reason": reason, "watch": False, "failures": 0, **values})


def _numbered(columns: Sequence[GridColumn], before: Sequence[GridColumn] = ()) -> list[dict[str, Any]]:
    """Return columns as stored: one that is there with its question and type keeps its id, others get new ones."""
    ids = {(one.id, one.question, one.type) for one in before}
    free = max([0, *(one.id for one in before)])
    numbered: list[dict[str, Any]] = []
    for one in columns:
        stays = (one.id, one.question, one.type) in ids and one.id not in [column["id"] for column in numbered]
        free += not stays
        numbered.append({"id": one.id if stays else free, "name": one.name, "question": one.question, "type": one.type})
    return numbered
