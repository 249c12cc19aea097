"""``backup`` and ``restore``: everything in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.commands import progress, services_command
from rag_assistant.records.errors import BackupFailed
from rag_assistant.runtime.data_dir import drop_unused, lock_data_dir

if TYPE_CHECKING:
    from rag_assistant.services import Services
    from rag_assistant.storage.backup import Kept

FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@services_command("backup")
@FILE
def backup(services: Services, file: Path) -> None:
    """Back up to FILE; the server can keep running."""
    from rag_assistant.storage.backup import write_backup

    with progress("backup") as tell:
        written = write_backup(_kept(services), file, tell)
    count = f"{written.documents} {'document' if written.documents == 1 else 'documents'}"
    click.echo(f"{file}: {count}, {written.size_bytes / 1e6:.1f} MB. It holds no keys.")
    if written.missing:
        click.echo(f"{written.missing} without its original file: it is gone.", err=True)


@services_command("restore", start=False)
@FILE
def restore(services: Services, file: Path) -> None:
    """Restore a backup where nothing is yet: a data folder, PostgreSQL, S3."""
    from rag_assistant.storage.backup import restore_backup

    with lock_data_dir(services.data_dir):
        try:
            with progress("restore") as tell:
                restored = restore_backup(file, _kept(services), tell)
        except BackupFailed:
            if services.database.is_sqlite:
                drop_unused(services.data_dir)
            raise
    click.echo(f"Restored into {_where(services)}: the state of {restored.created_at[:19]} UTC.")
    click.echo(f"Its settings, without keys: {restored.settings}")


def _kept(services: Services) -> Kept:
    from rag_assistant.retrieval.tokenize import words_of
    from rag_assistant.storage.backup import Kept

    return Kept(services.database, services.uploads.store, services.data_dir, services.settings.path, words_of)


def _where(services: Services) -> str:
    database = "" if services.database.is_sqlite else " and PostgreSQL"
    files = f" and {services.uploads.store.address}" if services.uploads.store.is_shared else ""
    return f"{services.data_dir}{database}{files}"
