"""``import`` and ``export``: conversations of other products, and all of our own data, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from rag_assistant.cli.api import api_here
from rag_assistant.cli.commands import printable, services_command
from rag_assistant.cli.documents import DocumentData, work_with_progress
from rag_assistant.conversations.exchange.confined import read_confined
from rag_assistant.conversations.exchange.entries import MAX_ENTRIES
from rag_assistant.conversations.exchange.files import (
    archived_conversations,
    archived_documents,
    document_file,
    write_archive,
)
from rag_assistant.records.archive import ArchivedDocument
from rag_assistant.records.errors import AssistantError
from rag_assistant.records.views import DocumentAnswer, data_of, view_of

if TYPE_CHECKING:
    from rag_assistant.services import Services

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

    FILE is conversations.json of ChatGPT or the zip file it came in, an export of Open WebUI or LibreChat, or an
    archive made by "export", whose documents are added, too. What is here already is skipped.
    """
    with file.open("rb") as opened:
        importer = _services_of(services, person)
        with read_confined(opened, MAX_TEXT_BYTES, TIMEOUT_SECONDS, services.data_dir, MAX_ENTRIES) as archive:
            added, refused = _add_documents(importer, opened, archive.documents)
            outcomes, notes = importer.conversation_import.run(archive)
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
    return services.for_person(services.accounts.people.named(person).id, changes_documents=True)


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
        except AssistantError as error:
            click.secho(f"{one.name}: {error}", fg="red", err=True)
            refused += 1
            continue
        click.echo(f"{one.name}: {'added' if new else 'here already'}, document {document.id}")
        added.append(data_of(view_of(DocumentAnswer, document)))
    return added, refused


def _counted(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what + 's'}"
