"""``rag-assistant history``: list, show, export and erase conversations, and see what the model was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import AS_JSON, ID, YES, ApiError, confirm
from rag_assistant.conversations.exchange.export import FORMATS
from rag_assistant.conversations.prompts import title_for
from rag_assistant.records.errors import ConversationDeleted, InvalidRequest, ReceiptNotFound

if TYPE_CHECKING:
    pass

TURNS_SHOWN = 20
CONVERSATION = click.argument("conversation", type=ID)
TURN = click.argument("turn", type=ID, metavar="TURN_ID")


history = click.Group("history", help="Conversations, and what the model was sent.")


@api_command("list", history)
@AS_JSON
def list_conversations(api: Api, as_json: bool) -> None:
    """List conversations, most recent first."""
    for n, one in enumerate(api.pages("/api/conversations")):
        if as_json:
            click.echo(json.dumps(one, ensure_ascii=False))
            continue
        if n == 0:
            click.secho("    ID      TURNS  TITLE", dim=True, err=True)
        turns = one["turns"]
        click.echo(f"{one['conversation_id']:6}  {turns:4} {'turn ' if turns == 1 else 'turns'}  {one['title']}")


@api_command("show", history)
@CONVERSATION
def show(api: Api, conversation: int) -> None:
    """Show what is saved, what the model would see next, and the newest turns as they were said."""
    path = f"/api/conversations/{conversation}"
    click.echo(api.call("POST", f"{path}/commands", {"command": "/history"})["text"])
    for turn in api.call("GET", f"{path}/turns", limit=str(TURNS_SHOWN))["turns"]:
        click.secho(f"\nTurn {turn['turn']} (id {turn['turn_id']}, {turn['status']})", bold=True)
        if "erased_at" in turn:
            click.echo(f"Erased on {turn['erased_at'][:10]}.")
            continue
        answer = turn["answer"] or turn.get("error", {}).get("message") or ""
        click.echo(f"> {turn['question']}\n\n{answer}".rstrip())


@api_command("export", history)
@CONVERSATION
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), default="markdown", show_default=True)
def export(api: Api, conversation: int, format_name: str) -> None:
    """Export a conversation."""
    for piece in api.text(f"/api/conversations/{conversation}/export", format=format_name):
        click.echo(piece, nl=False)


@api_command("receipt", history)
@TURN
def receipt(api: Api, turn: int) -> None:
    """Print the receipt of a turn as JSON: what the model was sent, and what was left out."""
    click.echo(json.dumps(api.call("GET", f"/api/turns/{turn}/receipt"), ensure_ascii=False, indent=2))


@api_command("erase", history)
@TURN
@YES
def erase(api: Api, turn: int, yes: bool) -> None:
    """Erase a turn permanently. Its place in the conversation stays."""
    question = title_for(api.call("GET", f"/api/turns/{turn}")["question"])
    confirm(
        f"Erase the question “{question}” and its answers permanently, here and in branches, along with any "
        "summary of them? Text that other answers repeat stays.",
        yes,
    )
    erased = api.call("DELETE", f"/api/turns/{turn}", permanently="1")
    click.echo(f"Turn {erased['turn']} of conversation {erased['conversation_id']} erased.")


@api_command("purge", history)
@CONVERSATION
@YES
def purge(api: Api, conversation: int, yes: bool) -> None:
    """Erase a conversation permanently."""
    try:
        named = f"“{api.call('GET', f'/api/conversations/{conversation}')['title']}”"
    except ApiError as error:
        if error.type != ConversationDeleted.__name__:
            raise
        named = f"conversation {conversation}, which is in the trash,"
    confirm(f"Erase {named} permanently?", yes)
    api.call("POST", f"/api/conversations/{conversation}/purge", {})
    click.echo(f"Conversation {conversation} erased.")


@api_command("replay", history)
@TURN
def replay(api: Api, turn: int) -> None:
    """Send a turn's exact request again, to the current endpoint. Nothing is saved."""
    if api.services is None:
        raise click.UsageError("replay works with this machine's data and endpoint only, without --server.")
    from rag_assistant.llm.calls import ModelCall
    from rag_assistant.llm.client import Retrying
    from rag_assistant.records import ModelRequest

    body, models = api.services.turns.receipt(turn), api.services.models
    if body is None or "request" not in body:
        raise ReceiptNotFound(turn)
    if "erased_turns" in body:
        raise InvalidRequest(
            f"Part of what turn {turn} sent was erased since, so its exact request can't be sent again."
        )
    call = ModelCall()
    request = ModelRequest.from_body(body["request"])
    for part in models.stream(models.endpoint(call), request, call):
        if isinstance(part, str):
            click.echo(part, nl=False)
        elif isinstance(part, Retrying):
            click.secho(part.why, dim=True, err=True)
        else:
            for tool in part.tool_calls:
                click.echo(f"{tool['function']['name']} {tool['function']['arguments']}")
            if part.usage:
                click.secho(f"\n{json.dumps(part.usage)}", dim=True, err=True)
    click.echo()
