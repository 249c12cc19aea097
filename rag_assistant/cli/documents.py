"""``rag-assistant documents``: the library."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import AS_JSON, ID, YES, ApiError, confirm, opened_services, printable, progress
from rag_assistant.extraction.formats.kinds import is_archive
from rag_assistant.records.errors import AssistantError, DocumentNotFound, InvalidRequest, SettingsError
from rag_assistant.records.validation import storable
from rag_assistant.records.views import DocumentAnswer, answer_data
from rag_assistant.runtime.data_dir import lock_data_dir

if TYPE_CHECKING:
    from rag_assistant.documents.intake import SourceFile
    from rag_assistant.services import Services

# A document as the API lists it.
DocumentData = dict[str, Any]

WORKED_ON = ("queued", "reading", "recognising", "embedding")
POLL_INTERVAL_SECONDS = 0.2
REMOTE_POLL_INTERVAL_SECONDS = 1.0
DOCUMENT_IDS = click.argument("document_ids", nargs=-1, required=True, type=ID)
TAGS = click.option("--tag", "tags", multiple=True, help="Tag the documents. Can be given several times.")


documents = click.Group("documents", help="Manage the library.")


@api_command("add", documents)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@TAGS
@click.option("--remove-missing", is_flag=True, help="Delete documents whose files are gone from the folders.")
def add(api: Api, paths: tuple[Path, ...], tags: tuple[str, ...], remove_missing: bool) -> None:
    """Add files and folders, and wait until they are ready.

    Unchanged files are skipped; a changed one replaces its older version once it is ready. With --server, files
    are known by their content alone, so a changed one becomes another document.
    """
    if remove_missing and api.services is None:
        raise click.UsageError("--remove-missing works only on this machine's library, without --server.")
    added, rejected = _add_files(api, paths, tags)
    if remove_missing and api.services is not None:
        from rag_assistant.documents.intake import Intake
        from rag_assistant.documents.sources.folder import Folder, is_file

        folders = [Folder(path) for path in paths]
        intake = Intake(api.services.library)
        for document in intake.gone(lambda origin: any(folder.holds(origin) for folder in folders), is_file):
            api.services.library.remove(document.id)
            click.echo(f"{document.origin}: gone, document {document.id} deleted")
    work_with_progress(api, added, rejected)


@api_command("add-page", documents)
@click.argument("urls", nargs=-1, required=True)
@TAGS
def add_page(api: Api, urls: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Add web pages by their addresses, and wait until they are ready. Known pages are fetched again."""
    added, rejected = [], 0
    for url in urls:
        try:
            document = api.call("POST", "/api/documents/web-page", {"url": url, "tags": list(tags)})
        except ApiError as error:
            rejected += reject(storable(url), error)
            continue
        outcome = "new" if document["new"] else "unchanged"
        click.echo(f"{storable(url)}: {outcome}, document {document['document_id']}")
        added.append(document)
    work_with_progress(api, added, rejected)


@api_command("list", documents)
@click.option("--tag", help="Only documents with this tag.")
@AS_JSON
def list_documents(api: Api, tag: str | None, as_json: bool) -> None:
    """List documents, newest first."""
    for n, one in enumerate(api.pages("/api/documents", **({"tag": tag} if tag is not None else {}))):
        if n == 0 and not as_json:
            click.secho("    ID  STATE      CHUNKS          NAME", dim=True, err=True)
        click.echo(json.dumps(one, ensure_ascii=False) if as_json else _line(one))


@api_command("report", documents)
@AS_JSON
def report(api: Api, as_json: bool) -> None:
    """Report copies, garbled or unread text, unused documents, questions that found nothing, and changed sources."""
    answer = api.call("GET", "/api/documents/report")
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
        return
    for name, count in answer["counts"].items():
        if count:
            click.secho(f"{name.replace('_', ' ').capitalize()}: {count}", bold=True)
        for one in answer[name]:
            click.echo(f"  {printable(_line_of_report(one))}")
    click.echo("\n".join(answer["limits"]) or f"Documents looked at: {answer['documents']}.")


def _line_of_report(one: dict[str, Any]) -> str:
    if "question" in one:
        changes = " ".join(change["sentence"] for change in one["changes"])
        return f"conversation {one['conversation_id']}, turn {one['turn']}: {one['question'][:70]}  {changes}".rstrip()
    if "documents" in one:
        pair = " and ".join(map(_line_of_report, one["documents"]))
        pair = f"{'the same' if one['identical'] else 'nearly the same'}:  {pair}"
        return pair + (f"  newer: {one['newer']}" if one["newer"] else "")
    return "  ".join(filter(None, (str(one["document_id"]), one["name"], one["reason"])))


@api_command("tag", documents)
@click.argument("document_id", type=ID)
@click.argument("tags", nargs=-1)
@click.option("--clear", is_flag=True, help="Remove all tags.")
def tag(api: Api, document_id: int, tags: tuple[str, ...], clear: bool) -> None:
    """Replace the tags of a document."""
    if clear == bool(tags):
        raise click.UsageError("Name the new tags, or use --clear to remove all of them.")
    click.echo(_line(api.call("PATCH", f"/api/documents/{document_id}", {"tags": list(tags)})))


@api_command("cancel", documents)
@DOCUMENT_IDS
def cancel(api: Api, document_ids: tuple[int, ...]) -> None:
    """Cancel processing. The files stay; "retry" processes them again."""
    for document_id in document_ids:
        click.echo(_line(api.call("POST", f"/api/documents/{document_id}/cancel", {})))


@api_command("retry", documents)
@DOCUMENT_IDS
def retry(api: Api, document_ids: tuple[int, ...]) -> None:
    """Process documents again, whether they failed, were cancelled, or are ready."""
    work_with_progress(api, [api.call("POST", f"/api/documents/{one}/retry", {}) for one in document_ids])


@api_command("delete", documents)
@DOCUMENT_IDS
@YES
def delete(api: Api, document_ids: tuple[int, ...], yes: bool) -> None:
    """Delete documents permanently."""
    ids = list(dict.fromkeys(document_ids))
    names = [api.call("GET", f"/api/documents/{document_id}")["name"] for document_id in ids]
    confirm(f"Delete {', '.join(names)} permanently?", yes)
    for document_id in ids:
        api.call("DELETE", f"/api/documents/{document_id}")
        click.echo(f"Document {document_id} deleted.")


def _add_files(api: Api, paths: Sequence[Path], tags: Sequence[str]) -> tuple[list[DocumentData], int]:
    """Return the documents to be processed, and how many files were rejected."""
    from rag_assistant.documents.intake import Intake
    from rag_assistant.documents.sources.folder import file_at, files_below, is_file

    # Paths are only known on the machine of the library.
    intake = None if api.services is None else Intake(api.services.library)
    added, rejected, counts = [], 0, dict.fromkeys(("new", "changed", "moved", "known", "unchanged"), 0)
    for path in files_below(paths):
        named = storable(str(path))
        try:
            file = file_at(path, paths)
            if intake is not None and not is_archive(file.name):
                record, outcome = intake.take_in(file, is_file, tags)
                documents = [answer_data(DocumentAnswer, record) | {"outcome": outcome}]
            else:
                documents, refused = _upload(api, file, tags)
                rejected += sum(reject(f"{named}: {name}", InvalidRequest(reason)) for name, reason in refused)
        except (AssistantError, ApiError, OSError) as error:
            rejected += reject(named, error)
            continue
        for document in documents:
            outcome = document["outcome"]
            counts[outcome] += 1
            if outcome != "unchanged":
                same = " (same content)" if outcome == "known" else ""
                click.echo(f"{named}: {outcome}, document {document['document_id']}{same}")
        added += documents
    summary = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    click.echo(", ".join([*summary, f"{rejected} rejected"] if rejected else summary) or "No files found.")
    return added, rejected


def _upload(api: Api, file: SourceFile, tags: Sequence[str]) -> tuple[list[DocumentData], list[tuple[str, str]]]:
    """Upload a file, or the files in an archive; return their documents, and the refused ones with the reason."""
    path = "/api/documents/archive" if is_archive(file.name) else "/api/documents"
    with file.open() as content:
        answer = api.upload(path, file.name, content, {"tags": ",".join(tags)})
    documents = answer.get("documents", [answer])
    refused = [(one["name"], one["reason"]) for one in answer.get("refused", ())]
    return [one | {"outcome": "new" if one["new"] else "known"} for one in documents], refused


def reject(name: str, error: Exception) -> int:
    """Print why something wasn't added, and return 1; errors that the rest would meet, too, end the command."""
    if isinstance(error, ApiError) and error.exit_code != 1:
        raise error
    click.secho(f"{name}: {error}", fg="red", err=True)
    return 1


def _line(one: DocumentData) -> str:
    tags = f"  [{', '.join(one['tags'])}]" if one["tags"] else ""
    newer = f"  new version of {one['replaces']}" if one["replaces"] else ""
    reason = f"  {one['reason']}" if one["reason"] else ""
    embedded = f"{one['embedded']:5} of {one['chunks']:5}"
    return f"{one['document_id']:6}  {one['state']:9}  {embedded}  {one['name']}{tags}{newer}{reason}"


# --- processing


def work_with_progress(api: Api, documents: Sequence[DocumentData], failed: int = 0) -> None:
    """Wait until the documents are processed. If any failed, or had ``failed`` before, the command ends with 1."""
    documents = [document for document in documents if document["state"] in WORKED_ON]
    logging.getLogger("rag_assistant").setLevel(logging.ERROR)  # Failures are printed here, once.
    pause = POLL_INTERVAL_SECONDS if api.services is not None else REMOTE_POLL_INTERVAL_SECONDS
    with processing(api.services) if documents and api.services is not None else nullcontext():
        for document in documents:
            with progress(document["name"][:40].ljust(40)) as tell:
                while (ended := _current(api, document)) is not None and ended["state"] in WORKED_ON:
                    tell(ended["embedded"], ended["chunks"])
                    time.sleep(pause)
                tell(1, 1)
            if ended is not None and ended["reason"]:
                color = "red" if ended["state"] == "failed" else "yellow"
                click.secho(f"{ended['name']}: {ended['reason']}", fg=color, err=True)
            failed += ended is not None and ended["state"] == "failed"
    if failed:
        raise click.exceptions.Exit(1)


@contextmanager
def processing(services: Services) -> Iterator[None]:
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
        services.processing.close()
        lock.close()


def _current(api: Api, document: DocumentData) -> DocumentData | None:
    """Return the current state of a document; ``None`` if it was deleted."""
    try:
        current: DocumentData = api.call("GET", f"/api/documents/{document['document_id']}")
    except ApiError as error:
        if error.type != DocumentNotFound.__name__:
            raise
        return None
    return current


# --- before a question


def count_unread(services: Services) -> int:
    """Return how many documents are unread, so that no question finds them."""
    return len(services.documents.page(2000, states=("queued", "reading")))


def process_pending(services: Services, max_documents: float, max_embedding_seconds: float) -> None:
    """Read unread documents, if no server does: a question wouldn't find them. Progress is on stderr.

    More than ``max_documents``, or those of PostgreSQL's workers, are only counted.
    """
    unread = count_unread(services)
    if not unread:
        return
    if unread > max_documents or not services.database.is_sqlite:
        click.secho(f"{unread_in_words(unread)} Start the server or a worker to read them.", fg="yellow", err=True)
        return
    with opened_services() as worker:  # Leaving stops the work; the answer comes from another one.
        try:
            lock = lock_data_dir(worker.data_dir)
        except SettingsError:
            return  # A server reads them.
        with lock:
            worker.start_library()
            click.secho(f"Reading {unread} {'document' if unread == 1 else 'documents'} first.", dim=True, err=True)
            with progress("reading") as tell:
                while left := count_unread(worker):
                    tell(max(0, unread - left), unread)
                    time.sleep(POLL_INTERVAL_SECONDS)
            end = time.monotonic() + max_embedding_seconds
            while worker.processing.busy and time.monotonic() < end:
                time.sleep(POLL_INTERVAL_SECONDS)


def unread_in_words(count: int) -> str:
    """Return how many documents are unread, as a sentence."""
    return f"{'1 document has' if count == 1 else f'{count} documents have'} not been read yet."
