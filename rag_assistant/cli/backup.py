"""``backup`` and ``restore``: everything in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.errors import named_errors, prepared
from rag_assistant.cli.progress import progress
from rag_assistant.records.errors import BackupFailed
from rag_assistant.runtime.data_dir import drop_unused, lock_data_dir

if TYPE_CHECKING:
    from rag_assistant.services import Services
    from rag_assistant.storage.backup import Kept

FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


def backup_command(services: Services) -> click.Command:
    @click.command("backup")
    @FILE
    def backup(file: Path) -> None:
        """Back up to FILE; the server can keep running."""
        from rag_assistant.storage.backup import write_backup

        with prepared(services), progress("backup") as told:
            made = write_backup(_kept(services), file, told)
        count = f"{made.documents} {'document' if made.documents == 1 else 'documents'}"
        click.echo(f"{file}: {count}, {made.size_bytes / 1e6:.1f} MB. It holds no keys.")
        if made.missing:
            click.echo(f"{made.missing} without its original file: it is gone.", err=True)

    return backup


def restore_command(services: Services) -> click.Command:
    @click.command("restore")
    @FILE
    def restore(file: Path) -> None:
        """Restore a backup where nothing is yet: a data folder, PostgreSQL, S3."""
        from rag_assistant.storage.backup import restore_backup

        with named_errors(), lock_data_dir(services.data_dir):
            try:
                with progress("restore") as told:
                    made = restore_backup(file, _kept(services), told)
            except BackupFailed:
                if services.database.is_sqlite:
                    drop_unused(services.data_dir)
                raise
        click.echo(f"Restored into {_where(services)}: the state of {made['created_at'][:19]} UTC.")
        click.echo(f"Its settings, without keys: {made['settings']}")

    return restore


def _kept(services: Services) -> Kept:
    from rag_assistant.retrieval.tokenize import words_of
    from rag_assistant.storage.backup import Kept

    return Kept(services.database, services.uploads.store, services.data_dir, services.settings.path, words_of)


def _where(services: Services) -> str:
    database = "" if services.database.is_sqlite else " and PostgreSQL"
    files = f" and {services.uploads.store.address}" if services.uploads.store.is_shared else ""
    return f"{services.data_dir}{database}{files}"
