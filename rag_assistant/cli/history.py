"""``rag-assistant history``: list, show, export and erase conversations, and see what the model was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from flask.cli import AppGroup

from rag_assistant.cli.errors import named_errors
from rag_assistant.cli.params import ID, YES, confirm
from rag_assistant.conversations.commands import run_command
from rag_assistant.conversations.prompts import title_for
from rag_assistant.errors import ConversationDeleted, InvalidRequest, ReceiptNotFound
from rag_assistant.presenters.export import FORMATS, as_json, as_markdown
from rag_assistant.presenters.turns import receipt_data
from rag_assistant.records import ModelRequest

if TYPE_CHECKING:
    from datetime import datetime

    from rag_assistant.web.services import Services

TURNS_SHOWN = 20


def history_commands(services: Services) -> AppGroup:
    """Return the commands about conversations and what the model was sent."""
    group = AppGroup("history", help="Conversations, and what the model was sent.")

    @group.command("list")
    def list_conversations() -> None:
        """List conversations, most recent first."""
        with named_errors():
            services.prepare()
            before: tuple[datetime, int] | None = None
            while found := services.conversations.page(100, before):
                before = (found[-1].updated_at, found[-1].id)
                for one in found:
                    click.echo(f"{one.id:6}  {one.turns:4} {'turn ' if one.turns == 1 else 'turns'}  {one.title}")

    @group.command("show")
    @click.argument("conversation", type=ID)
    def show(conversation: int) -> None:
        """Show what is saved, what the model would see next, and the newest turns as they were said."""
        with named_errors():
            services.prepare()
            click.echo(run_command("/history", services.history_actions, conversation).text)
            for turn in services.turns.page(conversation, TURNS_SHOWN):
                click.secho(f"\nTurn {turn.number} (id {turn.id}, {turn.status})", bold=True)
                if turn.erased_at is not None:
                    click.echo(f"Erased on {turn.erased_at:%Y-%m-%d}.")
                    continue
                click.echo(f"> {turn.question}\n\n{turn.answer or turn.error_message or ''}".rstrip())

    @group.command("export")
    @click.argument("conversation", type=ID)
    @click.option("--format", "format_name", type=click.Choice(list(FORMATS)), default="markdown", show_default=True)
    def export(conversation: int, format_name: str) -> None:
        """Export a conversation."""
        with named_errors():
            services.prepare()
            found = services.conversations.get(conversation)
            write = as_markdown if format_name == "markdown" else as_json
            for piece in write(found, services.turns.every(conversation), services.versions.all):
                click.echo(piece, nl=False)

    @group.command("receipt")
    @click.argument("turn", type=ID, metavar="TURN_ID")
    def receipt(turn: int) -> None:
        """Print the receipt of a turn as JSON: what the model was sent, and what was left out."""
        with named_errors():
            services.prepare()
            body = services.turns.receipt(turn)
            if body is None:
                raise ReceiptNotFound(turn)
            shown = receipt_data(services.turns.get(turn), body)
            click.echo(json.dumps(shown, ensure_ascii=False, indent=2))

    @group.command("replay")
    @click.argument("turn", type=ID, metavar="TURN_ID")
    def replay(turn: int) -> None:
        """Send a turn's exact request again, to the current endpoint. Nothing is saved."""
        with named_errors():
            services.prepare()
            body = services.turns.receipt(turn)
            if body is None or "request" not in body:
                raise ReceiptNotFound(turn)
            if "erased_turns" in body:
                raise InvalidRequest(
                    f"Part of what turn {turn} sent was erased since, so its exact request can't be sent again."
                )
            try:
                _replay(services, body["request"])
            finally:
                services.close()

    @group.command("erase")
    @click.argument("turn", type=ID, metavar="TURN_ID")
    @YES
    def erase(turn: int, yes: bool) -> None:
        """Erase a turn permanently. Its place in the conversation stays."""
        with named_errors():
            services.prepare()
            question = title_for(services.turns.get(turn).question)
            confirm(
                f"Erase the question “{question}” and its answers permanently, here and in branches, along with any "
                "summary of them? Text that other answers repeat stays.",
                yes,
            )
            erased = services.eraser.erase(turn)
            click.echo(f"Turn {erased.number} of conversation {erased.conversation_id} erased.")

    @group.command("purge")
    @click.argument("conversation", type=ID)
    @YES
    def purge(conversation: int, yes: bool) -> None:
        """Erase a conversation permanently."""
        with named_errors():
            services.prepare()
            confirm(f"Erase {_named(services, conversation)} permanently?", yes)
            services.conversations.purge(conversation)
            click.echo(f"Conversation {conversation} erased.")

    return group


def _named(services: Services, conversation: int) -> str:
    try:
        return f"“{services.conversations.get(conversation).title}”"
    except ConversationDeleted:
        return f"conversation {conversation}, which is in the trash,"


def _replay(services: Services, request: dict[str, object]) -> None:
    call = services.models.new_call()
    endpoint = services.models.endpoint(call)
    sent = ModelRequest.from_body(request)
    for reply in services.models.stream(endpoint, sent, call, lambda why: click.secho(why, dim=True, err=True)):
        click.echo(reply.text, nl=False)
        for called in reply.tool_calls:
            click.echo(f"{called['function']['name']} {called['function']['arguments']}")
        if reply.usage:
            click.secho(f"\n{json.dumps(reply.usage)}", dim=True, err=True)
    click.echo()
