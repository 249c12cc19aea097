"""Maintenance: ``backup``, ``restore``, ``reindex``, ``doctor`` and ``files``; ``export`` and ``import``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from rag_assistant.cli.api import api_here
from rag_assistant.cli.commands import printable, progress, services_command
from rag_assistant.cli.documents import (
    POLL_INTERVAL_SECONDS,
    WORKED_ON,
    DocumentData,
    processing,
    reject,
    work_with_progress,
)
from rag_assistant.conversations.exchange.archive import MAX_ENTRIES
from rag_assistant.conversations.exchange.files import (
    archived_conversations,
    archived_documents,
    document_file,
    read_confined,
    write_archive,
)
from rag_assistant.conversations.exchange.importing import import_conversations
from rag_assistant.records.archive import ArchivedDocument
from rag_assistant.records.errors import AssistantError, BackupFailed
from rag_assistant.records.views import DocumentAnswer, answer_data
from rag_assistant.runtime.data_dir import drop_unused, lock_data_dir, open_to_others
from rag_assistant.storage.usage import documents_by_state

if TYPE_CHECKING:
    from rag_assistant.documents.doctor import Finding
    from rag_assistant.services import Services

LOOKS_UNTIL_QUIET = 10
FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@services_command("backup")
@FILE
def backup(services: Services, file: Path) -> None:
    """Back up to FILE; the server can keep running."""
    from rag_assistant.storage.backup import write_backup

    with progress("backup") as tell:
        written = write_backup(services.backup_content(), file, tell)
    click.echo(
        f"{file}: {_counted(written.documents, 'document')}, {written.size_bytes / 1e6:.1f} MB. It contains no keys."
    )
    if written.missing:
        click.echo(f"{written.missing} without the original file, which is missing.", err=True)


@services_command("restore", start=False)
@click.argument("file")
def restore(services: Services, file: str) -> None:
    """Restore a backup, also from an s3:// address, into an empty data folder, PostgreSQL or S3."""
    from rag_assistant.storage.backup import restore_backup

    with lock_data_dir(services.data_dir):
        try:
            with services.backups.local(file) as path, progress("restore") as tell:
                created_at, settings = restore_backup(path, services.backup_content(), tell)
        except BackupFailed:
            if services.database.is_sqlite:
                drop_unused(services.data_dir)
            raise
    database = "" if services.database.is_sqlite else " and PostgreSQL"
    files = f" and {services.uploads.store.address}" if services.uploads.store.is_shared else ""
    click.echo(f"Restored into {services.data_dir}{database}{files}: the state of {created_at[:19]} UTC.")
    click.echo(f"Its settings, without keys: {settings}")


@services_command("reindex")
@click.option("--read-again", is_flag=True, help="Also process every document again, after a change of chunk_chars.")
def reindex(services: Services, read_again: bool) -> None:
    """Embed everything with the configured embedding model, and switch search to it."""
    if read_again:
        again = map(services.library.read_again, services.documents.in_store())
        work_with_progress(api_here(services), [answer_data(DocumentAnswer, one) for one in again])
        return
    configured = services.embedders.configured().key
    with processing(services):
        services.processing.reindex()
        done, total = services.embeddings.progress(configured)
        with progress("embedding") as tell:
            for done, total in _until_quiet(services, configured):
                tell(done, total)
    serving = services.embeddings.serving()
    is_used = serving is not None and serving.key == configured
    used = "search uses it" if is_used else "search does not use it yet"
    click.echo(f"{done} of {total} chunks are embedded with {configured}; {used}.")
    if done < total:
        click.echo(f"Run {_program()} documents list to see which documents failed, and why.")
        raise click.exceptions.Exit(1)


@services_command("doctor")
@click.option("--fix", is_flag=True, help="Repair what can be repaired.")
@click.option("--restore-test", is_flag=True, help="Only restore the newest backup to a temporary folder.")
def doctor(services: Services, fix: bool, restore_test: bool) -> None:
    """Check that the database and the uploaded files agree."""
    if restore_test:
        from rag_assistant.retrieval.terms import turn_terms
        from rag_assistant.storage.backup import rehearse_restore

        newest = services.backups.status().newest
        if newest is None:
            raise BackupFailed("There is no backup in backup_folder.")
        with services.backups.local(newest) as path:
            created_at, usage = rehearse_restore(path, services.data_dir, turn_terms)
        counts = f"{_counted(usage['turns'], 'turn')}, {_counted(sum(usage['documents'].values()), 'document')}"
        click.echo(f"{newest} can be restored: {counts}, the state of {created_at[:19]} UTC.")
        return
    findings = list(services.doctor().examine())
    exposed = open_to_others(services.data_dir, *services.settings.private_files)
    for notice in (services.vectors.notice, *services.membership.leases.differences(), *exposed):
        if notice:
            click.echo(f"note: {notice}")
    left = _mend(services, findings) if fix and findings else len(findings)
    if not fix:
        for finding in findings:
            click.secho(f"found: {finding.sentence}", fg="red", err=True)
    if left:
        if not fix:
            click.echo(f"Run {_program()} doctor --fix to repair what can be repaired.")
        raise click.exceptions.Exit(1)
    click.echo("Everything is consistent." if not findings else "Everything else is consistent.")


files = click.Group("files", help="Manage where uploaded files are kept.")


@services_command("move", files)
@click.option("--from", "source", metavar="PLACE", help="An s3:// address; without it, the data folder.")
def move(services: Services, source: str | None) -> None:
    """Move files to where files_url says, each checked by its SHA-256. If interrupted, run it again."""
    from rag_assistant.documents.uploads import move_files

    target = services.uploads.store
    origin = services.open_files(source or str(services.data_dir / "uploads"))
    if origin.owner == target.owner:
        raise click.UsageError(f"Files are already kept in {target.address}. Set files_url, or use --from.")
    count = 0
    for moved in move_files(services.documents, origin, target):
        count += 1
        click.echo(moved)
    click.echo(f"{_counted(count, 'file')} moved from {origin.address} to {target.address}.")


def _program() -> str:
    return click.get_current_context().find_root().info_name or "rag-assistant"


def _mend(services: Services, findings: list[Finding]) -> int:
    """Repair what can be repaired, wait for background work, and return how many findings are left."""
    left = 0
    with processing(services):
        for finding in findings:
            if finding.mend is None:
                left += 1
                click.secho(f"not repaired: {finding.sentence}", fg="red", err=True)
            else:
                finding.mend()
                click.echo(f"repaired: {finding.sentence}")
        for _ in _until_quiet(services):
            pass
    return left


def _until_quiet(services: Services, embedder: str = "") -> Iterator[tuple[int, int]]:
    """Yield how many chunks are embedded, until nothing is pending or changes: between two jobs both may seem so."""
    quiet, before = 0, (-1, -1)
    while quiet < LOOKS_UNTIL_QUIET:
        time.sleep(POLL_INTERVAL_SECONDS)
        now = services.embeddings.progress(embedder)
        unfinished = services.processing.busy or not documents_by_state(services.database).keys().isdisjoint(WORKED_ON)
        quiet = quiet + 1 if now == before and not unfinished else 0
        before = now
        yield now


MAX_TEXT_BYTES, TIMEOUT_SECONDS = 2_000_000_000, 3600.0


@services_command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--person", metavar="NAME", help="Only this account's; without it, everything.")
def export(services: Services, file: Path, person: str | None) -> None:
    """Export all conversations and documents to FILE, a zip archive that "import" reads."""
    services = _services_of(services, person)
    documents, conversations = write_archive(
        file,
        archived_documents(services.documents, services.library.open_file),
        archived_conversations(services.exchange),
        services.notes.archived(),
    )
    click.echo(f"{file}: {_counted(conversations, 'conversation')}, {_counted(documents, 'document')}.")


@services_command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--person", metavar="NAME", help="For this account; without it, for the first administrator.")
def import_(services: Services, file: Path, person: str | None) -> None:
    """Import conversations from FILE.

    FILE is conversations.json of ChatGPT or the zip file it came in, an export of Open WebUI's chats, or an
    archive made by "export", whose documents are added, too. What is here already is skipped.
    """
    with file.open("rb") as opened:
        importer = _services_of(services, person)
        with read_confined(opened, MAX_TEXT_BYTES, TIMEOUT_SECONDS, services.data_dir, MAX_ENTRIES) as archive:
            added, refused = _add_documents(importer, opened, archive.documents)
            stores = importer.exchange, importer.documents, importer.notes
            outcomes, notes = import_conversations(archive, *stores, services.settings.current.retention_days)
    for one in outcomes:
        if one.new:
            count = f"{one.turns:4} {'turn ' if one.turns == 1 else 'turns'}"
            click.echo(f"{one.conversation_id:6}  {count}  {printable(one.title)}")
    new = sum(one.new for one in outcomes)
    skipped = f", {len(outcomes) - new} skipped: already here" if new < len(outcomes) else ""
    click.echo(f"{_counted(new, 'conversation')} imported{skipped}.")
    if archive.unreadable:
        entries = "entry is" if archive.unreadable == 1 else "entries are"
        click.echo(f"{archive.unreadable} {entries} not a conversation and left out.", err=True)
    if archive.mended:
        click.echo(f"In {_counted(archive.mended, 'conversation')}, invalid characters were replaced.", err=True)
    if notes:
        click.echo(f"{_counted(notes, 'note')} imported. None is sent before you accept it on the page Notes.")
    work_with_progress(api_here(services), added, refused)


def _services_of(services: Services, person: str | None) -> Services:
    """Return the services of an account, or of everybody. Raises AccountNotFound."""
    if person is None:
        return services
    return services.for_person(services.accounts.people.get(person).id, changes_documents=True)


def _add_documents(
    services: Services, file: IO[bytes], documents: tuple[ArchivedDocument, ...]
) -> tuple[list[DocumentData], int]:
    """Return the documents to be processed, and how many were refused."""
    added, refused = [], 0
    for one in sorted(documents, key=lambda document: document.id):
        try:
            with document_file(file, one) as content:
                if content is None:
                    click.echo(f"{one.name}: its file is not in the archive.", err=True)
                    continue
                document, new = services.library.accept(content, one.name, tags=one.tags)
                if new and one.date:
                    document = services.documents.change(document.id, date=one.date)
        except AssistantError as error:
            refused += reject(one.name, error)
            continue
        click.echo(f"{one.name}: {'added' if new else 'here already'}, document {document.id}")
        added.append(answer_data(DocumentAnswer, document))
    return added, refused


def _counted(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what + 's'}"
