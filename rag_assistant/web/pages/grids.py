"""The pages of tables over documents, as plain forms."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, render_template, request

from rag_assistant.documents.uploads import MAX_TAG_CHARS
from rag_assistant.records import MAX_GRID_COLUMNS
from rag_assistant.records.errors import AssistantError, InvalidRequest
from rag_assistant.records.validation import spells_number
from rag_assistant.web import grid_files
from rag_assistant.web.api import grids as api
from rag_assistant.web.forms import as_form, to, to_page
from rag_assistant.web.pages.frame import frame
from rag_assistant.web.pages.sharing import save_access
from rag_assistant.web.request_bodies import MAX_TAGS, ChangeGridBody, NewGridBody
from rag_assistant.web.request_parsing import Body, checked, form_fields, ids_of
from rag_assistant.web.routing import ASK, ASK_AS_PERSON, READ, services

blueprint = Blueprint("grid_pages", __name__)

ONE, ROWS_SHOWN = "/tables/<int:grid_id>", 25
# Messages for invalid fields, by their labels.
HINTS: dict[str | None, str] = {
    "name": "Use a name of 1 to 200 characters.",
    "columns": f"Give 1 to {MAX_GRID_COLUMNS} columns, each with a question of up to 1000 characters.",
    "tags": f"Use up to {MAX_TAGS} tags, each of 1 to {MAX_TAG_CHARS} characters, separated by commas.",
    "max_tokens": "“Budget in tokens” must be a whole number of 1 or more, or empty for no limit.",
    "cells_at_once": "“Cells at once” must be a whole number from 1 to 20.",
}


def to_grid(data: Mapping[str, Any]) -> Response:
    """Redirect to a table as it was shown: its rows sorted, found and filtered."""
    return to_page("grid_pages.grid", grid_id=data["grid_id"], **_params())


def _params() -> dict[str, str]:
    return {name: one for name, one in request.args.items() if name in ("offset", *api.LIST_PARAMS)}


@blueprint.get("/tables", policy=READ)
def grids(error: AssistantError | None = None) -> str:
    """Show all tables, and a form for a new one: about the documents named in the address, or all."""
    named = request.args.getlist("documents") or request.form.getlist("document_ids")
    names = services().documents.names(ids_of("documents", named))
    shown = {"grids": api.estimated(*services().grids.all()), "names": names, "all_projects": services().projects.all()}
    gone = ids_of("deleted", request.args.getlist("deleted"))
    shown["deleted"] = [one for one in services().grids.all(deleted=True) if one.id in gone] if gone else []
    return render_template("grids.html", columns=_columns_typed(), error=error, **shown, **frame(None))


@blueprint.get(ONE, policy=READ)
def grid(grid_id: int, error: AssistantError | None = None) -> str:
    """Show a part of a table's rows, what the rest will take, and its columns."""
    (shown,) = api.estimated(services().grids.get(grid_id))
    rows, total = api.rows_asked(shown, ROWS_SHOWN)
    page = {"grid": shown, "rows": rows, "total": total, "rows_shown": ROWS_SHOWN, "max_columns": MAX_GRID_COLUMNS}
    asks_others = shown.writable and not shown.watch and not shown.left_out
    page["new_documents"] = services().grids.without_row(shown) if asks_others else 0
    page["columns"] = _columns_typed() if "column_id" in request.form else shown.columns
    return render_template("grid.html", error=error, words=grid_files, params=_params(), **page, **frame(None))


def _columns_typed() -> list[dict[str, str | int | None]]:
    """Return the form's columns: lines of repeated fields, of which those without a question go."""
    names = ("id", "name", "question", "type")
    lines = zip(*(request.form.getlist(f"column_{name}") for name in names), strict=False)
    columns = [dict(zip(names, line, strict=True)) for line in lines if line[2].strip()]
    return [one | {"id": int(one["id"]) if spells_number(one["id"]) else None} for one in columns]


def _sent(model: type[Body]) -> Body:
    columns = _columns_typed()
    try:
        return checked(model, form_fields(model) | ({"columns": columns} if columns else {}))
    except InvalidRequest as error:
        raise InvalidRequest(HINTS.get(error.param, str(error))) from error


trashed = as_form(api.delete, lambda data: to_page("grid_pages.grids", deleted=data["grid_id"]))
shared = as_form(lambda grid_id: save_access(services().grids, "table", grid_id), to_grid, grid)
for rule, policy, name, view in (
    ("/tables", ASK, "add", as_form(lambda: api.add(_sent(NewGridBody)), to_grid, grids)),
    (ONE, ASK, "change", as_form(lambda grid_id: api.change(grid_id, _sent(ChangeGridBody)), to_grid, grid)),
    (f"{ONE}/start", ASK, "start", as_form(api.start, to_grid, grid)),
    (f"{ONE}/stop", ASK, "stop", as_form(api.stop, to_grid)),
    (f"{ONE}/cells/<int:document_id>/<int:column_id>/again", ASK, "again", as_form(api.again, to_grid)),
    (f"{ONE}/shares", ASK_AS_PERSON, "share", shared),
    (f"{ONE}/delete", ASK, "delete", trashed),
    (f"{ONE}/restore", ASK, "restore", as_form(api.restore, to_grid)),
    (f"{ONE}/erase", ASK, "erase", as_form(api.erase, to("sidebar.deleted", erased=1))),
):
    blueprint.post(rule, policy=policy, endpoint=name)(view)
