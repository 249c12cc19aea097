"""``rag-assistant receipts``: export what the model was sent as a signed file, and verify such files."""

from pathlib import Path

import click

from rag_assistant.cli.api import Api, api_command
from rag_assistant.cli.commands import ID
from rag_assistant.records.errors import InvalidReceipts

receipts = click.Group("receipts", help="Export signed receipts, and verify them.")


@api_command("export", receipts)
@click.argument("conversation", type=ID)
def export(api: Api, conversation: int) -> None:
    """Print the receipts of a conversation as a signed file."""
    for piece in api.text(f"/api/conversations/{conversation}/receipts"):
        click.echo(piece, nl=False)


@api_command("key", receipts)
def key(api: Api) -> None:
    """Print the public key of this installation."""
    click.echo(api.call("GET", "/api/receipts/key")["public_key"])


@receipts.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", "public_key", help="The installation's public key; without it, the key in the file is shown.")
def verify(file: Path, public_key: str | None) -> None:
    """Check a file of receipts, offline: every line, their order and the signature."""
    from rag_assistant.history.receipt_chain import check_chain
    from rag_assistant.runtime.signing import is_signed

    try:
        with file.open("rb") as lines:
            seal, erased = check_chain(lines)
    except InvalidReceipts as error:
        raise click.ClickException(str(error)) from error
    if public_key is not None and public_key.strip().lower() != seal.key:
        raise click.ClickException(f"The file was signed with another key: {seal.key}.")
    if not is_signed(seal.signed, seal.signature, seal.key):
        raise click.ClickException("The signature does not match: the file was changed, or signed with another key.")
    count = f"{seal.links} receipt" if seal.links == 1 else f"{seal.links} receipts"
    click.echo(f"Conversation {seal.conversation}: {count}, signed on {seal.signed_at[:10]}.")
    for time, parts in sorted(erased.items()):
        click.echo(
            f"Erased by its owner: {parts} part{'s' * (parts > 1)}, {time or 'at a time that was not recorded'}."
        )
    if not seal.lines:
        click.echo("The file is of release 1.0: anybody who had it may have erased parts of it, but not changed any.")
    if public_key is None:
        click.echo(f"Signed with {seal.key}. Compare that with: rag-assistant receipts key")
