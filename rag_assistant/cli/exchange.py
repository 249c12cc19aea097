"""``import`` and ``export``: conversations of other products, and everything of our own, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from rag_assistant.cli.document_backends import LocalDocuments
from rag_assistant.cli.documents import WORKED_ON, work_with_progress
from rag_assistant.cli.errors import named_errors
from rag_assistant.conversations.exchange.exporting import archived_conversations, archived_documents
from rag_assistant.conversations.exchange.files import document_file, read_export, write_archive
from rag_assistant.records import Document
from rag_assistant.records.archive import ArchivedDocument
from rag_assistant.records.errors import AssistantError

if TYPE_CHECKING:
    from rag_assistant.services import Services

# All of it is in memory at once.
MAX_TEXT_BYTES = 2_000_000_000


def export_command(services: Services) -> click.Command:
    @click.command("export")
    @click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
    @click.option("--person", metavar="NAME", help="Only what this account has; without it, everything.")
    def export(file: Path, person: str | None) -> None:
        """Export all conversations and documents to FILE, a zip archive that "import" reads."""
        with named_errors():
            services.prepare()
            own = _services_of(services, person)
            documents, written = write_archive(
                file,
                archived_documents(own.documents, own.library.open_file),
                archived_conversations(own.exchange),
            )
        click.echo(f"{file}: {_counted(written, 'conversation')}, {_counted(documents, 'document')}.")

    return export


def import_command(services: Services) -> click.Command:
    @click.command("import")
    @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    @click.option("--person", metavar="NAME", help="For this account; without it, for the first administrator.")
    def import_(file: Path, person: str | None) -> None:
        """Import conversations from FILE.

        FILE is conversations.json of ChatGPT or the zip file it came in, an export of Open WebUI or LibreChat, or an
        archive made by "export", whose documents are added, too. What is here already is skipped.
        """
        with named_errors(), file.open("rb") as opened:
            services.prepare()
            own = _services_of(services, person)
            found = read_export(opened, MAX_TEXT_BYTES)
            added, refused = _add_documents(own, opened, found.documents)
            outcomes = own.conversation_import.run(found)
            for one in outcomes:
                if one.new:
                    click.echo(
                        f"{one.conversation_id:6}  {one.turns:4} {'turn ' if one.turns == 1 else 'turns'}  {one.title}"
                    )
            new = sum(one.new for one in outcomes)
            skipped = f", {len(outcomes) - new} skipped: already here" if new < len(outcomes) else ""
            click.echo(f"{_counted(new, 'conversation')} imported{skipped}.")
            if found.unreadable:
                entries = "entry is" if found.unreadable == 1 else "entries are"
                click.echo(f"{found.unreadable} {entries} not a conversation and left out.", err=True)
            failed = work_with_progress(LocalDocuments(services), added)
        if failed or refused:
            raise click.exceptions.Exit(1)

    return import_


def _services_of(services: Services, person: str | None) -> Services:
    """Return the services of an account, or of everybody. Raises AccountNotFound."""
    return services if person is None else services.of_person(services.accounts.named(person).id, True)


def _add_documents(
    services: Services, file: IO[bytes], documents: tuple[ArchivedDocument, ...]
) -> tuple[list[Document], int]:
    """Return the documents that are to be processed, and how many were refused."""
    added, refused = [], 0
    for one in sorted(documents, key=lambda document: document.id):
        try:
            with document_file(file, one) as content:
                if content is None:
                    click.echo(f"{one.name}: its file is not in the archive.", err=True)
                    continue
                document, new = services.library.accept(content, one.name, tags=one.tags)
        except AssistantError as error:
            click.secho(f"{one.name}: {error}", fg="red", err=True)
            refused += 1
            continue
        click.echo(f"{one.name}: {'added' if new else 'here already'}, document {document.id}")
        if document.state in WORKED_ON:
            added.append(document)
    return added, refused


def _counted(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what + 's'}"
