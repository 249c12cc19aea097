"""``rag-assistant documents``: the library."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.document_backends import DocumentsBackend, LocalDocuments, RemoteDocuments
from rag_assistant.cli.elsewhere import works_on
from rag_assistant.cli.params import AS_JSON, ID, YES, confirm
from rag_assistant.cli.progress import progress
from rag_assistant.cli.remote import RefusedThere
from rag_assistant.presenters.documents import document_data
from rag_assistant.records import Document
from rag_assistant.records.errors import AssistantError
from rag_assistant.records.validation import storable

if TYPE_CHECKING:
    from rag_assistant.services import Services

WORKED_ON = ("queued", "reading", "recognising", "embedding")
DOCUMENT_IDS = click.argument("document_ids", nargs=-1, required=True, type=ID)


def documents_commands(services: Services | None) -> click.Group:
    """Return the commands about documents; without ``services`` they work on servers elsewhere alone."""
    group = click.Group("documents", help="Manage the library.")
    on_library = works_on(services, LocalDocuments, RemoteDocuments)

    @group.command("add")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
    @click.option("--tag", "tags", multiple=True, help="Tag the documents. Can be given several times.")
    @click.option("--remove-missing", is_flag=True, help="Delete documents whose files are gone from the folders.")
    @on_library
    def add(library: DocumentsBackend, paths: tuple[Path, ...], tags: tuple[str, ...], remove_missing: bool) -> None:
        """Add files and folders, and wait until they are ready.

        Unchanged files are skipped; a changed one replaces its older version once it is ready. A server elsewhere
        knows files by their content alone: there, a changed one is another document.
        """
        local = library if isinstance(library, LocalDocuments) else None
        if remove_missing and local is None:
            raise click.UsageError("--remove-missing works on this machine's library only, without --server.")
        added, refused = _take_in(library, paths, tags)
        if remove_missing and local is not None:
            for document in local.remove_missing(paths):
                click.echo(f"{document.origin}: gone, document {document.id} deleted")
        failed = work_with_progress(library, added)
        if failed or refused:
            raise click.exceptions.Exit(1)

    @group.command("add-page")
    @click.argument("urls", nargs=-1, required=True)
    @click.option("--tag", "tags", multiple=True, help="Tag the documents. Can be given several times.")
    @on_library
    def add_page(library: DocumentsBackend, urls: tuple[str, ...], tags: tuple[str, ...]) -> None:
        """Add web pages by their addresses, and wait until they are ready; known ones are fetched again."""
        added, refused = [], 0
        for url in urls:
            try:
                document, outcome = library.add_page(url, tags)
            except (AssistantError, RefusedThere) as error:
                click.secho(f"{storable(url)}: {error}", fg="red", err=True)
                refused += 1
                continue
            click.echo(f"{storable(url)}: {outcome}, document {document.id}")
            if document.state in WORKED_ON:
                added.append(document)
        failed = work_with_progress(library, added)
        if failed or refused:
            raise click.exceptions.Exit(1)

    @group.command("list")
    @click.option("--tag", help="Only documents with this tag.")
    @AS_JSON
    @on_library
    def list_documents(library: DocumentsBackend, tag: str | None, as_json: bool) -> None:
        """List documents, newest first."""
        for one in library.every(tag):
            click.echo(json.dumps(document_data(one), ensure_ascii=False) if as_json else _line(one))

    @group.command("tag")
    @click.argument("document_id", type=ID)
    @click.argument("tags", nargs=-1)
    @click.option("--clear", is_flag=True, help="Remove all tags.")
    @on_library
    def tag(library: DocumentsBackend, document_id: int, tags: tuple[str, ...], clear: bool) -> None:
        """Replace the tags of a document."""
        if clear == bool(tags):
            raise click.UsageError("Name the new tags, or use --clear to remove all of them.")
        click.echo(_line(library.tag(document_id, tags)))

    @group.command("cancel")
    @DOCUMENT_IDS
    @on_library
    def cancel(library: DocumentsBackend, document_ids: tuple[int, ...]) -> None:
        """Cancel processing. The files stay; "retry" processes them again."""
        for document_id in document_ids:
            click.echo(_line(library.cancel(document_id)))

    @group.command("retry")
    @DOCUMENT_IDS
    @on_library
    def retry(library: DocumentsBackend, document_ids: tuple[int, ...]) -> None:
        """Process documents again, whether they failed, were cancelled, or are ready."""
        if work_with_progress(library, [library.retry(number) for number in document_ids]):
            raise click.exceptions.Exit(1)

    @group.command("delete")
    @DOCUMENT_IDS
    @YES
    @on_library
    def delete(library: DocumentsBackend, document_ids: tuple[int, ...], yes: bool) -> None:
        """Delete documents permanently."""
        names = [library.get(document_id).name for document_id in dict.fromkeys(document_ids)]
        confirm(f"Delete {', '.join(names)} permanently?", yes)
        for document_id in dict.fromkeys(document_ids):
            library.delete(document_id)
            click.echo(f"Document {document_id} deleted.")

    return group


def _take_in(library: DocumentsBackend, paths: tuple[Path, ...], tags: tuple[str, ...]) -> tuple[list[Document], int]:
    """Return the documents to be processed, and how many files were rejected."""
    from rag_assistant.documents.sources.folder import files_below, refuse_strange

    added, refused, counts = [], 0, dict.fromkeys(("new", "changed", "moved", "known", "unchanged"), 0)
    for path in files_below(paths):
        named = storable(str(path))
        try:
            refuse_strange(path, paths)
            document, outcome = library.take_in(path, tags)
        except (AssistantError, RefusedThere, OSError) as error:
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


def _line(one: Document) -> str:
    tags = f"  [{', '.join(one.tags)}]" if one.tags else ""
    newer = f"  new version of {one.replaces}" if one.replaces else ""
    reason = f"  {one.reason}" if one.reason else ""
    return f"{one.id:6}  {one.state:9}  {one.embedded:5} of {one.chunks:5}  {one.name}{tags}{newer}{reason}"


def work_with_progress(library: DocumentsBackend, documents: list[Document]) -> int:
    """Wait until the documents are processed; return how many failed."""
    if not documents:
        return 0
    logging.getLogger("rag_assistant").setLevel(logging.ERROR)  # What fails is printed here, once.
    failed = 0
    with library.working():
        for document in documents:
            ended = _show_progress(library, document)
            if ended is not None and ended.state == "failed":
                failed += 1
            if ended is not None and ended.reason:
                click.secho(
                    f"{ended.name}: {ended.reason}", fg="red" if ended.state == "failed" else "yellow", err=True
                )
    return failed


def _show_progress(library: DocumentsBackend, document: Document) -> Document | None:
    """Draw a bar until a document is processed, and return it; a new version becomes the document it replaces."""
    with progress(document.name[:40].ljust(40)) as tell:
        while (now := _present(library, document)) is not None and now.state in WORKED_ON:
            tell(now.embedded, now.chunks)
            time.sleep(library.poll_interval_seconds)
        tell(1, 1)
    return now


def _present(library: DocumentsBackend, document: Document) -> Document | None:
    """Return the current state of a document, or of the one it replaced; ``None`` if it was deleted."""
    now = library.present(document.id)
    return library.present(document.replaces) if now is None and document.replaces is not None else now
