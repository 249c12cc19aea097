"""``rag-assistant documents``: the library."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from flask.cli import AppGroup

from rag_assistant.cli.errors import named_errors
from rag_assistant.cli.params import ID, YES, confirm
from rag_assistant.errors import AssistantError, SettingsError
from rag_assistant.records import Document
from rag_assistant.runtime.data_dir import lock_data_dir
from rag_assistant.validation import storable

if TYPE_CHECKING:
    from rag_assistant.web.services import Services

POLL_INTERVAL_SECONDS = 0.2
WORKED_ON = ("queued", "reading", "recognising", "embedding")
DOCUMENT_IDS = click.argument("document_ids", nargs=-1, required=True, type=ID)


def documents_commands(services: Services) -> AppGroup:
    group = AppGroup("documents", help="Manage the library.")

    @group.command("add")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
    @click.option("--tag", "tags", multiple=True, help="Tag the documents. Can be given several times.")
    @click.option("--remove-missing", is_flag=True, help="Delete documents whose files are gone from the folders.")
    def add(paths: tuple[Path, ...], tags: tuple[str, ...], remove_missing: bool) -> None:
        """Add files and folders, and wait until they are ready.

        Unchanged files are skipped; a changed one replaces its older version once it is ready.
        """
        with named_errors():
            services.prepare()
            added, refused = _take_in(services, paths, tags)
            if remove_missing:
                _remove_missing(services, paths)
            failed = work_with_progress(services, added)
        if failed or refused:
            raise click.exceptions.Exit(1)

    @group.command("list")
    @click.option("--tag", help="Only documents with this tag.")
    def list_documents(tag: str | None) -> None:
        """List documents, newest first."""
        with named_errors():
            services.prepare()
            before: int | None = None
            while page := services.documents.page(100, before, tag):
                before = page[-1].id
                for one in page:
                    click.echo(_line(one))

    @group.command("tag")
    @click.argument("document_id", type=ID)
    @click.argument("tags", nargs=-1)
    @click.option("--clear", is_flag=True, help="Remove all tags.")
    def tag(document_id: int, tags: tuple[str, ...], clear: bool) -> None:
        """Replace the tags of a document."""
        if clear == bool(tags):
            raise click.UsageError("Name the new tags, or use --clear to remove all of them.")
        with named_errors():
            services.prepare()
            click.echo(_line(services.documents.change(document_id, tags=tags)))

    @group.command("cancel")
    @DOCUMENT_IDS
    def cancel(document_ids: tuple[int, ...]) -> None:
        """Cancel processing. The files stay; "retry" processes them again."""
        with named_errors():
            services.prepare()
            for document_id in document_ids:
                click.echo(_line(services.library.cancel(document_id)))

    @group.command("retry")
    @DOCUMENT_IDS
    def retry(document_ids: tuple[int, ...]) -> None:
        """Process documents again, whether they failed, were cancelled, or are ready."""
        with named_errors():
            services.prepare()
            failed = work_with_progress(services, [services.library.read_again(number) for number in document_ids])
        if failed:
            raise click.exceptions.Exit(1)

    @group.command("delete")
    @DOCUMENT_IDS
    @YES
    def delete(document_ids: tuple[int, ...], yes: bool) -> None:
        """Delete documents permanently."""
        with named_errors():
            services.prepare()
            names = [services.documents.get(document_id).name for document_id in dict.fromkeys(document_ids)]
            confirm(f"Delete {', '.join(names)} permanently?", yes)
            for document_id in dict.fromkeys(document_ids):
                services.library.remove(document_id)
                click.echo(f"Document {document_id} deleted.")

    return group


def _take_in(services: Services, paths: tuple[Path, ...], tags: tuple[str, ...]) -> tuple[list[Document], int]:
    """Return the documents to be processed, and how many files were rejected."""
    from rag_assistant.documents.folder_sync import Folders, files_below, refuse_strange

    folders = Folders(services.library, services.documents)
    added, refused, counts = [], 0, dict.fromkeys(("new", "changed", "moved", "known", "unchanged"), 0)
    for path in files_below(paths):
        named = storable(str(path))
        try:
            refuse_strange(path, paths)
            document, outcome = folders.take_in(path, tags)
        except (AssistantError, OSError) as error:
            click.secho(f"{named}: {error}", fg="red", err=True)
            refused += 1
            continue
        counts[outcome] += 1
        if outcome != "unchanged":
            same = " (same content)" if outcome == "known" else ""
            click.echo(f"{named}: {outcome}, document {document.id}{same}")
        if document.state in WORKED_ON:
            added.append(document)
    said = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    click.echo(", ".join([*said, f"{refused} rejected"] if refused else said) or "No files found.")
    return added, refused


def _remove_missing(services: Services, paths: tuple[Path, ...]) -> None:
    from rag_assistant.documents.folder_sync import Folders

    for document in Folders(services.library, services.documents).gone_below(paths):
        services.library.remove(document.id)
        click.echo(f"{document.origin}: gone, document {document.id} deleted")


def _line(one: Document) -> str:
    tags = f"  [{', '.join(one.tags)}]" if one.tags else ""
    newer = f"  new version of {one.replaces}" if one.replaces else ""
    reason = f"  {one.reason}" if one.reason else ""
    return f"{one.id:6}  {one.state:9}  {one.embedded:5} of {one.chunks:5}  {one.name}{tags}{newer}{reason}"


def work_with_progress(services: Services, documents: list[Document]) -> int:
    """Wait until the documents are processed, by the running server or by us; return how many failed."""
    if not documents:
        return 0
    logging.getLogger("rag_assistant").setLevel(logging.ERROR)  # What fails is printed here, once.
    failed = 0
    with somebody_works(services):
        for document in documents:
            ended = _show_progress(services, document)
            if ended is not None and ended.state == "failed":
                failed += 1
            if ended is not None and ended.reason:
                click.secho(
                    f"{ended.name}: {ended.reason}", fg="red" if ended.state == "failed" else "yellow", err=True
                )
    return failed


@contextmanager
def somebody_works(services: Services) -> Iterator[None]:
    """Process the library in the background: in the running server, or else in this process."""
    try:
        lock = lock_data_dir(services.data_dir)
    except SettingsError:
        click.echo("The running server processes them.")
        yield
        return
    services.start_library()
    try:
        yield
    finally:
        services.library.close()
        lock.close()


def _show_progress(services: Services, document: Document) -> Document | None:
    """Draw a bar until a document is processed, and return it; a new version becomes the document it replaces."""
    with click.progressbar(length=100, label=document.name[:40].ljust(40)) as bar:
        while (now := _present(services, document)) is not None and now.state in WORKED_ON:
            bar.update(100 * now.embedded // max(1, now.chunks) - bar.pos)
            time.sleep(POLL_INTERVAL_SECONDS)
        bar.update(100 - bar.pos)
    return now


def _present(services: Services, document: Document) -> Document | None:
    """Return the current state of a document, or of the one it replaced; ``None`` if it was deleted."""
    ids = [document.id, document.replaces] if document.replaces else [document.id]
    left = [number for number in ids if number not in services.documents.missing(ids)]
    return services.documents.get(left[0]) if left else None
