"""Maintenance: ``rag-assistant backup``, ``restore``, ``reindex``, ``doctor``, ``files`` and ``db``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.api import api_here
from rag_assistant.cli.commands import progress, services_command
from rag_assistant.cli.documents import POLL_INTERVAL_SECONDS, WORKED_ON, processing, work_with_progress
from rag_assistant.records.errors import BackupFailed
from rag_assistant.records.views import DocumentAnswer, data_of, view_of
from rag_assistant.runtime.data_dir import drop_unused, lock_data_dir
from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision, migrate
from rag_assistant.storage.usage import documents_by_state

if TYPE_CHECKING:
    from rag_assistant.documents.doctor import Finding
    from rag_assistant.services import Services
    from rag_assistant.storage.backup import Kept

LOOKS_UNTIL_QUIET = 10
FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@services_command("backup")
@FILE
def backup(services: Services, file: Path) -> None:
    """Back up to FILE; the server can keep running."""
    from rag_assistant.storage.backup import write_backup

    with progress("backup") as tell:
        written = write_backup(_kept(services), file, tell)
    count = f"{written.documents} {'document' if written.documents == 1 else 'documents'}"
    click.echo(f"{file}: {count}, {written.size_bytes / 1e6:.1f} MB. It contains no keys.")
    if written.missing:
        click.echo(f"{written.missing} without the original file, which is missing.", err=True)


@services_command("restore", start=False)
@FILE
def restore(services: Services, file: Path) -> None:
    """Restore a backup into an empty data folder, PostgreSQL or S3."""
    from rag_assistant.storage.backup import restore_backup

    with lock_data_dir(services.data_dir):
        try:
            with progress("restore") as tell:
                created_at, settings = restore_backup(file, _kept(services), tell)
        except BackupFailed:
            if services.database.is_sqlite:
                drop_unused(services.data_dir)
            raise
    database = "" if services.database.is_sqlite else " and PostgreSQL"
    files = f" and {services.uploads.store.address}" if services.uploads.store.is_shared else ""
    click.echo(f"Restored into {services.data_dir}{database}{files}: the state of {created_at[:19]} UTC.")
    click.echo(f"Its settings, without keys: {settings}")


def _kept(services: Services) -> Kept:
    from rag_assistant.retrieval.terms import turn_terms
    from rag_assistant.storage.backup import Kept

    return Kept(services.database, services.uploads.store, services.data_dir, services.settings.path, turn_terms)


@services_command("reindex")
@click.option("--read-again", is_flag=True, help="Also process every document again, after a change of chunk_chars.")
def reindex(services: Services, read_again: bool) -> None:
    """Embed everything with the configured embedding model, and switch search to it."""
    if read_again:
        again = map(services.library.read_again, services.documents.in_store())
        work_with_progress(api_here(services), [data_of(view_of(DocumentAnswer, one)) for one in again])
        return
    configured = services.embedders.configured().key
    with processing(services):
        services.library.reindex()
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
def doctor(services: Services, fix: bool) -> None:
    """Check that the database and the uploaded files agree."""
    findings = list(services.doctor().examine())
    if services.vectors.notice:
        click.echo(f"note: {services.vectors.notice}")
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
    """Move files from where they were to where files_url says.

    Each is checked by its SHA-256. If interrupted, run it again.
    """
    from rag_assistant.documents.uploads import move_files

    target = services.uploads.store
    origin = services.open_files(source or str(services.data_dir / "uploads"))
    if origin.owner == target.owner:
        raise click.UsageError(f"Files are already kept in {target.address}. Set files_url, or use --from.")
    count = 0
    for moved in move_files(services.documents, origin, target):
        count += 1
        click.echo(moved)
    click.echo(f"{count} {'file' if count == 1 else 'files'} moved from {origin.address} to {target.address}.")


database = click.Group("db", help="Manage the database schema.")


@services_command("upgrade", database, start=False)
def upgrade(services: Services) -> None:
    """Upgrade the database to the current schema."""
    before = current_revision(services.database)
    migrate(services.database)
    click.echo(f"Schema: {before or 'empty'} -> {SCHEMA_REVISION}")


@services_command("current", database, start=False)
def current(services: Services) -> None:
    """Show the database's schema and the one this version expects."""
    click.echo(f"Schema: {current_revision(services.database) or 'empty'} (this version: {SCHEMA_REVISION})")


def _program() -> str:
    """Return how we were called: rag-assistant, or python app.py."""
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
    """Yield how many chunks are embedded, until nothing is pending and nothing changes.

    Between two jobs neither is visible for a moment; of a server's jobs only the documents' states and the results are.
    """
    quiet, before = 0, (-1, -1)
    while quiet < LOOKS_UNTIL_QUIET:
        time.sleep(POLL_INTERVAL_SECONDS)
        now = services.embeddings.progress(embedder)
        unfinished = services.library.busy or not documents_by_state(services.database).keys().isdisjoint(WORKED_ON)
        quiet = quiet + 1 if now == before and not unfinished else 0
        before = now
        yield now
