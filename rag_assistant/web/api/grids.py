"""The JSON API of tables over documents."""

from flask import Blueprint, Response, jsonify, make_response, request
from msgspec.structs import replace

from rag_assistant.answering.grids import passages_sent, with_estimate
from rag_assistant.records import EVERYTHING, MAX_GRID_DOCUMENTS, Grid, GridRow, Message
from rag_assistant.records.views import data_of
from rag_assistant.storage.grids import CELL_FILTERS
from rag_assistant.web.api.sharing import share_with
from rag_assistant.web.grid_files import FILES
from rag_assistant.web.request_bodies import ChangeGridBody, NewGridBody, ShareBody
from rag_assistant.web.request_parsing import flag_asked, one_of, page_limit, read_body, text_asked, whole_number
from rag_assistant.web.routing import ASK, ASK_AS_PERSON, READ, services, whole_services

blueprint = Blueprint("grids_api", __name__, url_prefix="/api/grids")

ONE, CELL = "/<int:grid_id>", "/<int:grid_id>/cells/<int:document_id>/<int:column_id>"
LIST_PARAMS = ("sort", "q", "cells")


def estimated(*some: Grid) -> list[Grid]:
    """Return tables with an estimate of what starting each will take."""
    now, asks_model = services().settings.current, services().models.connected
    tokens = services().grids.tokens_each([one.id for one in some], passages_sent(now)) if asks_model else {}
    full = [one for one in some if one.writable and one.documents >= MAX_GRID_DOCUMENTS]
    left_out = {one.id: services().grids.without_row(one) for one in full}
    return [with_estimate(replace(one, left_out=left_out.get(one.id, 0)), now, tokens.get(one.id)) for one in some]


def answer_with(grid: Grid) -> Response:
    return jsonify(data_of(*estimated(grid)))


@blueprint.get("", policy=READ, params=("deleted",), answer={"grids": list[Grid]})
def grids() -> Response:
    """Return the tables you can read, your own first; ``deleted=1`` your own in the trash."""
    deleted = bool(flag_asked("deleted"))
    return jsonify(grids=[*map(data_of, estimated(*services().grids.all(deleted=deleted)))])


@blueprint.post("", policy=ASK, answer=Grid, status=201, body=NewGridBody)
def add(body: NewGridBody | None = None) -> Response:
    """Create a table; nothing is asked before it is started."""
    body = body or read_body(NewGridBody)
    services().documents.check_scope(body.scope() or EVERYTHING)
    return make_response(answer_with(services().grids.add(body.values())), 201)


@blueprint.get(ONE, policy=READ, answer=Grid)
def grid(grid_id: int) -> Response:
    """Return a table, without its rows."""
    return answer_with(services().grids.get(grid_id))


@blueprint.patch(ONE, policy=ASK, answer=Grid, body=ChangeGridBody)
def change(grid_id: int, body: ChangeGridBody | None = None) -> Response:
    """Change a table; a column with another question or type is a new one."""
    body, now = body or read_body(ChangeGridBody), services().grids.get(grid_id).scope
    services().documents.check_scope(body.scope(now) or EVERYTHING)
    return answer_with(services().grids.change(grid_id, body.values(now)))


@blueprint.put(f"{ONE}/shares", policy=ASK_AS_PERSON, answer=Grid, body=ShareBody)
def share(grid_id: int) -> Response:
    """Share a table with somebody, or stop sharing it."""
    return answer_with(share_with(services().grids, "table", grid_id, read_body(ShareBody)))


@blueprint.delete(ONE, policy=ASK, status=204)
def delete(grid_id: int) -> Response:
    """Stop a table, and move it to the trash."""
    services().grids.trash(grid_id)
    return make_response("", 204)


@blueprint.post(f"{ONE}/restore", policy=ASK, answer=Grid)
def restore(grid_id: int) -> Response:
    """Restore a table from the trash."""
    services().grids.trash(grid_id, restores=True)
    return grid(grid_id)


@blueprint.post(f"{ONE}/erase", policy=ASK, status=204)
def erase(grid_id: int) -> Response:
    """Erase a table that is in the trash, for good."""
    services().grids.erase(grid_id)
    return make_response("", 204)


@blueprint.post(f"{ONE}/start", policy=ASK, answer=Grid)
def start(grid_id: int, **cell: int) -> Response:
    """Ask every cell that has no answer or failed; if there is none, those outdated or answered without a model."""
    started = services().grids.start(grid_id, **cell, asks_model=services().models.connected)
    whole_services().grid_runner.wake()
    return answer_with(started)


@blueprint.post(f"{CELL}/again", policy=ASK, answer=Grid)
def again(grid_id: int, document_id: int, column_id: int) -> Response:
    """Ask one cell again; it keeps its answer until the new one."""
    return start(grid_id, document_id=document_id, column_id=column_id)


@blueprint.post(f"{ONE}/stop", policy=ASK, answer=Grid)
def stop(grid_id: int) -> Response:
    """Ask no more cells; answers being written are completed."""
    return answer_with(services().grids.stop(grid_id))


@blueprint.get(CELL, policy=READ, answer={"answer": str, "messages": list[Message], "response_format": dict | None})
def cell(grid_id: int, document_id: int, column_id: int) -> Response:
    """Return the answer of a cell as it came, and the messages and the schema that were sent for it."""
    return jsonify(services().grids.receipt(grid_id, document_id, column_id))


@blueprint.get(
    f"{ONE}/rows", policy=READ, params=("limit", "offset", *LIST_PARAMS), answer={"rows": list[GridRow], "total": int}
)
def rows(grid_id: int) -> Response:
    """Return rows of a table."""
    page, total = rows_asked(services().grids.get(grid_id), page_limit())
    return jsonify(rows=[data_of(one) for one in page], total=total)


def rows_asked(grid: Grid, limit: int) -> tuple[list[GridRow], int]:
    """Return the rows that the address's parameters name, and how many there are. Raises InvalidRequest."""
    sorts = [order + name for name in ("name", *(str(one.id) for one in grid.columns)) for order in ("", "-")]
    args, offset = request.args, whole_number("offset", 0, 0, MAX_GRID_DOCUMENTS) or 0
    sort, cells = one_of("sort", args.get("sort", "name"), sorts), args.get("cells", "")
    cells = one_of("cells", cells, ("", *CELL_FILTERS))
    return services().grids.rows(grid, limit, offset, sort=sort, sought=text_asked("q"), cells=cells)


@blueprint.get(f"{ONE}/export", policy=READ, params=("format", *LIST_PARAMS), answer="text/csv")
def export(grid_id: int) -> Response:
    """Return a table as a file, ``format`` csv or xlsx, each value with a link to its sentence."""
    grid, kind = services().grids.get(grid_id), one_of("format", request.args.get("format", "csv"), tuple(FILES))
    media_type, written = FILES[kind]
    response = make_response(written(grid, rows_asked(grid, MAX_GRID_DOCUMENTS)[0]))
    response.headers["Content-Type"] = media_type
    response.headers["Content-Disposition"] = f'attachment; filename="table-{grid_id}.{kind}"'
    return response
