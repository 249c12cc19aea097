"""``flask documents``: the library."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from flask.cli import AppGroup

from rag_assistant.cli.errors import named_errors
from rag_assistant.data_dir import lock_data_dir
from rag_assistant.errors import AssistantError, SettingsError
from rag_assistant.records import LARGEST_NUMBER, Document

if TYPE_CHECKING:
    from rag_assistant.factory import Services

SECONDS_BETWEEN_LOOKS = 0.2


def documents_commands(services: Services) -> AppGroup:
    group = AppGroup("documents", help="The library.")

    @group.command("add")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
    def add(paths: tuple[Path, ...]) -> None:
        """Add files, and all files below folders; wait until they are ready."""
        with named_errors():
            services.prepare()
            added = []
            for path in _files_below(paths):
                try:
                    with path.open("rb") as file:
                        document, new = services.library.accept(file, path.name)
                except AssistantError as error:
                    click.secho(f"{path}: {error}", fg="red", err=True)
                    continue
                click.echo(f"{path}: document {document.id}{'' if new else ', was there before'}")
                added.append(document)
            failed = _work_with_progress(services, added)
        if failed or len(added) == 0:
            raise click.exceptions.Exit(1)

    @group.command("list")
    def list_documents() -> None:
        """List the documents, the newest first."""
        with named_errors():
            services.prepare()
            before: int | None = None
            while page := services.documents.page(100, before):
                before = page[-1].id
                for one in page:
                    reason = f"  {one.reason}" if one.reason else ""
                    click.echo(f"{one.id:6}  {one.state:9}  {one.embedded:5} of {one.chunks:5}  {one.name}{reason}")

    @group.command("delete")
    @click.argument("document_ids", nargs=-1, required=True, type=click.IntRange(1, LARGEST_NUMBER))
    def delete(document_ids: tuple[int, ...]) -> None:
        """Delete documents for good."""
        with named_errors():
            services.prepare()
            for document_id in document_ids:
                services.library.remove(document_id)
                click.echo(f"Document {document_id} was deleted.")

    return group


def _files_below(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(below for below in path.rglob("*") if below.is_file() and not _hidden(below, path))
        else:
            yield path


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _work_with_progress(services: Services, documents: list[Document]) -> int:
    """Wait until the documents are worked through, by the running server or else by us; return how many failed."""
    logging.getLogger("rag_assistant").setLevel(logging.ERROR)  # What fails is printed here, once.
    try:
        lock = lock_data_dir(services.data_dir)
    except SettingsError:
        lock = None
        click.echo("The running server works on them.")
    worker = threading.Thread(target=services.library.work_through, daemon=True)
    if lock is not None:
        worker.start()
    failed = 0
    for document in documents:
        ended = _show_progress(services, document.id)
        if ended.state == "failed":
            failed += 1
            click.secho(f"{ended.name}: {ended.reason}", fg="red", err=True)
    if lock is not None:
        worker.join()
        lock.close()
    return failed


def _show_progress(services: Services, document_id: int) -> Document:
    """Draw a bar until a document is ready or has failed, and return it."""
    document = services.documents.get(document_id)
    with click.progressbar(length=100, label=document.name[:40].ljust(40)) as bar:
        while document.state not in ("ready", "failed"):
            bar.update(100 * document.embedded // max(1, document.chunks) - bar.pos)
            time.sleep(SECONDS_BETWEEN_LOOKS)
            document = services.documents.get(document_id)
        bar.update(100 - bar.pos)
    return document
