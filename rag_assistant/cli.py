"""The command line: ``flask --app app db | documents | ask``, with the same services as the server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from flask import Flask
from flask.cli import AppGroup

from rag_assistant.data_dir import lock_data_dir
from rag_assistant.errors import AssistantError, SettingsError
from rag_assistant.records import LARGEST_NUMBER, UNSET, Document, Question, Unset
from rag_assistant.validation import spells_number

if TYPE_CHECKING:
    from rag_assistant.factory import Services

SECONDS_BETWEEN_LOOKS = 0.2


def init_app(app: Flask, services: Services) -> None:
    """Add the commands."""
    app.cli.add_command(_db_commands(services))
    app.cli.add_command(_documents_commands(services))

    @app.cli.command("ask")
    @click.argument("question")
    @click.option("--conversation", type=click.IntRange(1, LARGEST_NUMBER), help="Go on with this conversation.")
    @click.option("--max-history-turns", help='How many earlier turns the model sees, or "all".')
    def ask(question: str, conversation: int | None, max_history_turns: str | None) -> None:
        """Ask a question and print its answer as it is written."""
        with _named_errors():
            services.prepare()
            services.load_embedder()
            limit = _history_limit(max_history_turns)
            turn = services.assistant.ask(Question(question, conversation, limit))
            try:
                last = _print_answer(services.assistant.follow(turn.id))
            except KeyboardInterrupt:
                services.assistant.stop(turn.id)
                raise click.Abort from None
            finally:
                services.close()
        _print_rest(last)


def _db_commands(services: Services) -> AppGroup:
    from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision, migrate

    group = AppGroup("db", help="The database.")

    @group.command("upgrade")
    def upgrade() -> None:
        """Bring the database to the present schema."""
        with _named_errors():
            before = current_revision(services.database)
            migrate(services.database)
        click.echo(f"Schema: {before or 'empty'} -> {SCHEMA_REVISION}")

    @group.command("current")
    def current() -> None:
        """Show the database's schema, and the one that this version has."""
        with _named_errors():
            found = current_revision(services.database)
        click.echo(f"Schema: {found or 'empty'} (this version: {SCHEMA_REVISION})")

    return group


def _documents_commands(services: Services) -> AppGroup:
    group = AppGroup("documents", help="The library.")

    @group.command("add")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
    def add(paths: tuple[Path, ...]) -> None:
        """Add files, and all files below folders; wait until they are ready."""
        with _named_errors():
            services.prepare()
            added = []
            for path in _files_below(paths):
                try:
                    with path.open("rb") as file:
                        document, new = services.library.accept(file, path.name)
                except AssistantError as error:
                    click.secho(f"{path}: {error}", fg="red", err=True)
                    continue
                click.echo(f"{path}: document {document.id}{'' if new else ', was there before'}")
                added.append(document)
            failed = _work_with_progress(services, added)
        if failed or len(added) == 0:
            raise click.exceptions.Exit(1)

    @group.command("list")
    def list_documents() -> None:
        """List the documents, the newest first."""
        with _named_errors():
            services.prepare()
            before: int | None = None
            while page := services.documents.page(100, before):
                before = page[-1].id
                for one in page:
                    reason = f"  {one.reason}" if one.reason else ""
                    click.echo(f"{one.id:6}  {one.state:9}  {one.embedded:5} of {one.chunks:5}  {one.name}{reason}")

    @group.command("delete")
    @click.argument("document_ids", nargs=-1, required=True, type=click.IntRange(1, LARGEST_NUMBER))
    def delete(document_ids: tuple[int, ...]) -> None:
        """Delete documents for good."""
        with _named_errors():
            services.prepare()
            for document_id in document_ids:
                services.library.remove(document_id)
                click.echo(f"Document {document_id} was deleted.")

    return group


def _files_below(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(below for below in path.rglob("*") if below.is_file() and not _hidden(below, path))
        else:
            yield path


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _work_with_progress(services: Services, documents: list[Document]) -> int:
    """Wait until the documents are worked through, by the running server or else by us; return how many failed."""
    logging.getLogger("rag_assistant").setLevel(logging.ERROR)  # What fails is printed here, once.
    try:
        lock = lock_data_dir(services.data_dir)
    except SettingsError:
        lock = None
        click.echo("The running server works on them.")
    worker = threading.Thread(target=services.library.work_through, daemon=True)
    if lock is not None:
        worker.start()
    failed = 0
    for document in documents:
        ended = _show_progress(services, document.id)
        if ended.state == "failed":
            failed += 1
            click.secho(f"{ended.name}: {ended.reason}", fg="red", err=True)
    if lock is not None:
        worker.join()
        lock.close()
    return failed


def _show_progress(services: Services, document_id: int) -> Document:
    """Draw a bar until a document is ready or has failed, and return it."""
    document = services.documents.get(document_id)
    with click.progressbar(length=100, label=document.name[:40].ljust(40)) as bar:
        while document.state not in ("ready", "failed"):
            bar.update(100 * document.embedded // max(1, document.chunks) - bar.pos)
            time.sleep(SECONDS_BETWEEN_LOOKS)
            document = services.documents.get(document_id)
        bar.update(100 - bar.pos)
    return document


def _print_answer(events: Any) -> dict[str, Any]:
    """Print the text of an answer as it comes, and return the data of its last event."""
    last: dict[str, Any] = {}
    for event in events:
        if event is None:
            continue
        if event.name == "token":
            click.echo(event.data["text"], nl=False)
        elif event.name == "state":
            click.secho(event.data["message"], dim=True, err=True)
        last = event.data
    click.echo()
    return last


def _print_rest(answer: dict[str, Any]) -> None:
    """Print what belongs to an answer: what went wrong, what the model did not see, the sources."""
    if answer.get("history_trimmed"):
        history = answer["history"]
        click.secho(
            f"The model saw {history['turns_kept']} of {history['turns_total']} earlier turns.", fg="yellow", err=True
        )
    for source in answer.get("sources", ()):
        page = f", page {source['page']}" if source["page"] else ""
        click.secho(f"[{source['n']}] {source['document']}{page}", dim=True, err=True)
    if "conversation_id" in answer:
        click.secho(f"Go on with: --conversation {answer['conversation_id']}", dim=True, err=True)
    if "error" in answer:
        raise click.ClickException(answer["error"]["message"])


def _history_limit(said: str | None) -> int | Unset | None:
    if said is None:
        return UNSET
    if said.lower() in ("all", "null", "none"):
        return None
    if not (spells_number(said)):
        raise click.BadParameter(f'"{said}"; it must be a whole number, 0 or more, or "all" for no limit.')
    return int(said)


class _named_errors:
    """Turn errors of ours into messages of the command line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, AssistantError):
            raise click.ClickException(str(error)) from error
