"""``rag-assistant history``: conversations, and what the model was sent; ``receipts``: that, signed, and verified."""

import json
import re

import click

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import AS_JSON, ID, YES, ApiError, confirm
from rag_assistant.conversations.exchange.export import FORMATS
from rag_assistant.conversations.prompts import title_for
from rag_assistant.records.errors import ConversationDeleted

TURNS_SHOWN = 20
CONVERSATION = click.argument("conversation", type=ID)
TURN = click.argument("turn", type=ID, metavar="TURN_ID")
PICTURE = re.compile(r'"(data:[^",]+),([^"\\]*)"')

history = click.Group("history", help="Show, export and erase conversations, and see what the model was sent.")


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
    """Show what is saved, what the model would see next, and the newest turns."""
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
@AS_JSON
def receipt(api: Api, turn: int, as_json: bool) -> None:
    """Print the receipt of a turn as JSON: what the model was sent, and what was left out. --json: pictures, too."""
    text = json.dumps(api.call("GET", f"/api/turns/{turn}/receipt"), ensure_ascii=False, indent=None if as_json else 2)
    click.echo(text if as_json else PICTURE.sub(lambda url: f'"{url[1]} ({len(url[2]) * 3 // 4000} kB)"', text))


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


@api_command("receipts", history)
@CONVERSATION
def receipts(api: Api, conversation: int) -> None:
    """Print the receipts of all answers of a conversation, and the answers, as lines of JSON."""
    for piece in api.text(f"/api/conversations/{conversation}/receipts"):
        click.echo(piece, nl=False)
