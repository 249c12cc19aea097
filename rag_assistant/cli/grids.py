"""``rag-assistant grids``: tables over documents."""

import json
import re
import time
from pathlib import Path
from typing import Any, get_args

import click

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import AS_JSON, ID, progress
from rag_assistant.records import ColumnType

POLL_INTERVAL_SECONDS = 1.0
GRID_ID = click.argument("grid_id", type=ID)
TYPED = re.compile(r"(\w+):(.*)", re.DOTALL)
TYPES = get_args(ColumnType)

grids = click.Group(
    "grids", help="Manage what the page calls Tables: a row for each document, a column for each question."
)


@api_command("list", grids)
@AS_JSON
def list_grids(api: Api, as_json: bool) -> None:
    """List tables."""
    for one in api.call("GET", "/api/grids")["grids"]:
        click.echo(json.dumps(one, ensure_ascii=False) if as_json else _line(one))


@api_command("new", grids)
@click.argument("name")
@click.argument("questions", nargs=-1, required=True)
@click.option("--document", "document_ids", multiple=True, type=ID, help="Only these documents.")
@click.option("--tag", "tags", multiple=True, help="Only documents with this tag.")
def new(api: Api, name: str, questions: tuple[str, ...], **scope: tuple[Any, ...]) -> None:
    """Create a table; begin a question with "number:", "date:" or "yes_no:" for that type."""
    columns = list(map(_column, questions))
    body = {"name": name, "columns": columns} | {part: list(given) or None for part, given in scope.items()}
    click.echo(_line(api.call("POST", "/api/grids", body)))


@api_command("start", grids, answers=True)
@GRID_ID
def start(api: Api, grid_id: int) -> None:
    """Fill a table, and wait; after Ctrl-C a running server goes on."""
    if api.services is not None:
        api.services.grid_runner.start()
    one = api.call("POST", f"/api/grids/{grid_id}/start", {})
    with progress(one["name"][:40].ljust(40)) as tell:
        while one["cells"].get("queued", 0) + one["cells"].get("running", 0):
            tell(one["cells"].get("done", 0), sum(one["cells"].values()))
            time.sleep(POLL_INTERVAL_SECONDS)
            one = api.call("GET", f"/api/grids/{grid_id}")
    click.echo(_line(one))


@api_command("stop", grids)
@GRID_ID
def stop(api: Api, grid_id: int) -> None:
    """Ask no more cells of a table."""
    click.echo(_line(api.call("POST", f"/api/grids/{grid_id}/stop", {})))


@api_command("export", grids)
@GRID_ID
@click.argument("file", type=click.Path(path_type=Path))
def export(api: Api, grid_id: int, file: Path) -> None:
    """Write a table to FILE, .csv or .xlsx."""
    try:
        api.download(f"/api/grids/{grid_id}/export", file, format=file.suffix.removeprefix("."))
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written ({error.strerror}).") from error


def _column(question: str) -> dict[str, str]:
    if (typed := TYPED.fullmatch(question)) is None:
        return {"type": "text", "question": question}
    if typed[1].lower() not in TYPES:
        allowed = ", ".join(f'"{one}:"' for one in TYPES)
        raise click.UsageError(f'"{typed[1]}:" is no type of a column; a question may begin with {allowed}.')
    return {"type": typed[1].lower(), "question": typed[2]}


def _line(one: dict[str, Any]) -> str:
    done, tokens = one["cells"].get("done", 0), one["estimate"]["tokens"]
    total = sum(one["cells"].values())
    left = f"about {tokens:,} tokens left (estimated)" if tokens and done < total else None
    figures = f"{one['grid_id']:6}  {done:5} of {total:5} cells"
    return "  ".join(filter(None, (figures, one["name"], left, one["reason"])))
