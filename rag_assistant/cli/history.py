"""``rag-assistant history``: list, show, export and erase conversations, and see what the model was sent."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.elsewhere import works_on
from rag_assistant.cli.history_backends import HistoryBackend, LocalHistory, RemoteHistory
from rag_assistant.cli.params import AS_JSON, ID, YES, confirm
from rag_assistant.conversations.prompts import title_for
from rag_assistant.llm.pump import TextSink
from rag_assistant.presenters.export import FORMATS
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import InvalidRequest, ReceiptNotFound

if TYPE_CHECKING:
    from rag_assistant.cli.remote import RemoteServer
    from rag_assistant.services import Services

TURNS_SHOWN = 20


def history_commands(services: Services | None) -> click.Group:
    """Return the commands about conversations; without ``services`` they work on servers elsewhere alone."""
    group = click.Group("history", help="Conversations, and what the model was sent.")
    on_history = works_on(services, LocalHistory, RemoteHistory)

    @group.command("list")
    @AS_JSON
    @on_history
    def list_conversations(history: HistoryBackend, as_json: bool) -> None:
        """List conversations, most recent first."""
        for one in history.conversations():
            if as_json:
                click.echo(json.dumps(one, ensure_ascii=False))
                continue
            turns = one["turns"]
            click.echo(f"{one['conversation_id']:6}  {turns:4} {'turn ' if turns == 1 else 'turns'}  {one['title']}")

    @group.command("show")
    @click.argument("conversation", type=ID)
    @on_history
    def show(history: HistoryBackend, conversation: int) -> None:
        """Show what is saved, what the model would see next, and the newest turns as they were said."""
        click.echo(history.in_words(conversation))
        for turn in history.newest_turns(conversation, TURNS_SHOWN):
            click.secho(f"\nTurn {turn['turn']} (id {turn['turn_id']}, {turn['status']})", bold=True)
            if "erased_at" in turn:
                click.echo(f"Erased on {turn['erased_at'][:10]}.")
                continue
            answer = turn["answer"] or turn.get("error", {}).get("message") or ""
            click.echo(f"> {turn['question']}\n\n{answer}".rstrip())

    @group.command("export")
    @click.argument("conversation", type=ID)
    @click.option("--format", "format_name", type=click.Choice(list(FORMATS)), default="markdown", show_default=True)
    @on_history
    def export(history: HistoryBackend, conversation: int, format_name: str) -> None:
        """Export a conversation."""
        for piece in history.exported(conversation, format_name):
            click.echo(piece, nl=False)

    @group.command("receipt")
    @click.argument("turn", type=ID, metavar="TURN_ID")
    @on_history
    def receipt(history: HistoryBackend, turn: int) -> None:
        """Print the receipt of a turn as JSON: what the model was sent, and what was left out."""
        click.echo(json.dumps(history.receipt(turn), ensure_ascii=False, indent=2))

    @group.command("erase")
    @click.argument("turn", type=ID, metavar="TURN_ID")
    @YES
    @on_history
    def erase(history: HistoryBackend, turn: int, yes: bool) -> None:
        """Erase a turn permanently. Its place in the conversation stays."""
        question = title_for(history.turn(turn)["question"])
        confirm(
            f"Erase the question “{question}” and its answers permanently, here and in branches, along with any "
            "summary of them? Text that other answers repeat stays.",
            yes,
        )
        erased = history.erase(turn)
        click.echo(f"Turn {erased['turn']} of conversation {erased['conversation_id']} erased.")

    @group.command("purge")
    @click.argument("conversation", type=ID)
    @YES
    @on_history
    def purge(history: HistoryBackend, conversation: int, yes: bool) -> None:
        """Erase a conversation permanently."""
        title = history.title(conversation)
        named = f"conversation {conversation}, which is in the trash," if title is None else f"“{title}”"
        confirm(f"Erase {named} permanently?", yes)
        history.purge(conversation)
        click.echo(f"Conversation {conversation} erased.")

    @group.command("replay")
    @click.argument("turn", type=ID, metavar="TURN_ID")
    @works_on(services, lambda here: here, _refuse_to_replay)
    def replay(here: Services, turn: int) -> None:
        """Send a turn's exact request again, to the current endpoint. Nothing is saved."""
        here.prepare()
        body = here.turns.receipt(turn)
        if body is None or "request" not in body:
            raise ReceiptNotFound(turn)
        if "erased_turns" in body:
            raise InvalidRequest(
                f"Part of what turn {turn} sent was erased since, so its exact request can't be sent again."
            )
        try:
            _replay(here, body["request"])
        finally:
            here.close()

    return group


def _refuse_to_replay(_server: RemoteServer) -> Services:
    raise click.UsageError("replay works with this machine's data and endpoint only, without --server.")


def _replay(services: Services, request: dict[str, object]) -> None:
    call = services.models.new_call()
    endpoint = services.models.endpoint(call)
    sent = ModelRequest.from_body(request)
    why = partial(click.secho, dim=True, err=True)
    reply = services.models.stream(endpoint, sent, call, _Echo(), why)
    for called in reply.tool_calls:
        click.echo(f"{called['function']['name']} {called['function']['arguments']}")
    if reply.usage:
        click.secho(f"\n{json.dumps(reply.usage)}", dim=True, err=True)
    click.echo()


class _Echo(TextSink):
    """Prints what a model says as it comes."""

    def take(self, text: str) -> None:
        super().take(text)
        click.echo(text, nl=False)
