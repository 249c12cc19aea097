"""The cells of tables that wait for an answer: which process asks which, at the pace and within the budget of each."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from rag_assistant.records import CellState, ClaimedCell, GridColumn
from rag_assistant.storage.database import Store
from rag_assistant.storage.grids import KEY, cell_at, stop_asking
from rag_assistant.storage.processes import is_nobodys
from rag_assistant.storage.tables import documents, grid_cells, grids, now, people

# A cell is begun this often if the process or the model fails; a table stops after so many failures in a row.
MAX_ATTEMPTS, MAX_FAILURES = 3, 5
BUDGET_USED = "The budget of {n} tokens is used up. Raise it to go on."
ENDED_TOO_OFTEN = "The server ended several times while this was being answered."
_COUNTED, _WAITS = grid_cells.alias(), grid_cells.c.state == "queued"


def _count(condition: sa.ColumnElement[bool], label: str) -> sa.Label[int]:
    of_grid = sa.select(sa.func.count()).where(_COUNTED.c.grid_id == grids.c.id, condition)
    return of_grid.scalar_subquery().label(label)


class CellQueue(Store):
    """Gives out the cells to be asked, of everybody's tables, and takes their answers."""

    def claim(self, worker: str, max_at_once: int, max_per_minute: int, resting: Sequence[int]) -> ClaimedCell | None:
        """Claim the next cell of the table with the fewest running ones; ``None`` if none may be asked now.

        A person's limits are as given, a table's own may be lower. Those that are ``resting`` are left out; one without
        enough budget is stopped.
        """
        waiting = sa.select(grid_cells.c.grid_id).where(_WAITS, grid_cells.c.grid_id.not_in(resting))
        if not self._values(waiting.limit(1)):
            return None
        recent = _count(_COUNTED.c.asked_at > now() - timedelta(minutes=1), "recent")
        query = sa.select(grids, _count(_COUNTED.c.state == "running", "running"), recent)
        query = query.add_columns(_count(_COUNTED.c.state == "done", "done"))
        query = query.outerjoin(people, people.c.id == grids.c.person_id).where(people.c.disabled_at.is_(None))
        query = query.where(grids.c.id.in_(waiting)).order_by("running", "recent", grids.c.id)
        with self._database.write() as connection:
            for row in connection.execute(query.with_for_update(of=grids)).mappings().all():
                per_minute = min(row["cells_per_minute"] or max_per_minute, max_per_minute)
                if row["running"] >= min(row["cells_at_once"], max_at_once) or row["recent"] >= per_minute:
                    continue
                expected = row["used_tokens"] * (1 + (row["running"] + 1) / max(1, row["done"]))
                if row["max_tokens"] is not None and expected >= row["max_tokens"]:
                    stop_asking(connection, row["id"], BUDGET_USED.format(n=f"{row['max_tokens']:,}"))
                else:
                    return _take(connection, row, worker)
        return None

    def end(self, cell: ClaimedCell, state: CellState, *, tokens: int = 0, seconds: float = 0, **values: Any) -> None:
        """Store how asking a cell ended, unless others have taken it over, and what it used.

        If it is "queued", it is asked again. After many failures in a row, its table stops.
        """
        own = grid_cells.c.state == "running", grid_cells.c.worker == cell.worker
        with self._database.write() as connection:
            ended = sa.update(grid_cells).where(*cell_at(*cell.key), *own).values(state=state, **values)
            if not connection.execute(ended).rowcount:
                return
            used = {"used_tokens": grids.c.used_tokens + tokens, "used_seconds": grids.c.used_seconds + seconds}
            failures = 0 if state == "done" else grids.c.failures + bool(values.get("error"))
            counted = sa.update(grids).where(grids.c.id == cell.key[0]).values(failures=failures, **used)
            if connection.execute(counted.returning(grids.c.failures)).scalar_one() >= MAX_FAILURES:
                stop_asking(connection, cell.key[0], values["error"])

    def take_up(self) -> list[int]:
        """Queue the cells of processes that died, unless that was too often; return the tables that watch."""
        left = grid_cells.c.state == "running", is_nobodys(grid_cells.c.worker)
        if self._values(sa.select(grid_cells.c.grid_id).where(*left).limit(1)):
            often = grid_cells.c.attempts >= MAX_ATTEMPTS
            ended = {"state": sa.case((often, "failed"), else_="queued"), "error": sa.case((often, ENDED_TOO_OFTEN))}
            self._commit(sa.update(grid_cells).where(*left).values(ended))
        return self._values(sa.select(grids.c.id).where(grids.c.watch, grids.c.deleted_at.is_(None)))


def _take(connection: sa.Connection, row: sa.RowMapping, worker: str) -> ClaimedCell:
    query = sa.select(*KEY, grid_cells.c.attempts, documents.c.sha256).where(grid_cells.c.grid_id == row["id"], _WAITS)
    query = query.join(documents, documents.c.id == grid_cells.c.document_id).order_by(*KEY).limit(1)
    *key, attempts, sha256 = connection.execute(query).one()
    begun = {"state": "running", "worker": worker, "attempts": attempts + 1, "asked_at": now()}
    connection.execute(sa.update(grid_cells).where(*cell_at(*key)).values(begun))
    column = next(GridColumn(**one) for one in row["columns"] if one["id"] == key[2])
    return ClaimedCell((key[0], key[1], key[2]), column, row["person_id"], worker, attempts + 1, sha256)
