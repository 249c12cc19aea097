"""``rag-assistant files``: where uploaded files lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rag_assistant.cli.errors import prepared

if TYPE_CHECKING:
    from rag_assistant.services import Services


def files_commands(services: Services) -> click.Group:
    group = click.Group("files", help="Manage where uploaded files are kept.")

    @group.command("move")
    @click.option("--from", "source", metavar="PLACE", help="An s3:// address; without it, the data folder.")
    @prepared(services)
    def move(source: str | None) -> None:
        """Move files to where files_url says, from where they were before.

        Each is checked by its SHA-256. If it breaks off, run it again.
        """
        from rag_assistant.documents.file_moves import move_files

        target = services.uploads.store
        there = services.open_files(source or str(services.data_dir / "uploads"))
        if there.owner == target.owner:
            raise click.UsageError(f"Files are kept in {target.address} already. Set files_url, or use --from.")
        count = 0
        for document in move_files(services.documents, there, target):
            count += 1
            click.echo(f"{document.name}: moved, document {document.id}")
        click.echo(f"{count} {'file' if count == 1 else 'files'} moved from {there.address} to {target.address}.")

    return group
