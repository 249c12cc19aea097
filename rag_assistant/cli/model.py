"""``rag-assistant model``: fetch a language model to run on this machine, or test the one that is connected."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.errors import named_errors
from rag_assistant.llm.local_model import GGUF
from rag_assistant.records.errors import NoEndpoint
from rag_assistant.runtime.download import check_file, download, name_in

if TYPE_CHECKING:
    from rag_assistant.services import Services


def model_commands(services: Services) -> click.Group:
    group = click.Group("model", help="Fetch a language model, or test the connected one.")

    @group.command("get")
    @click.argument("url")
    @click.option("--sha256", help="The file's SHA-256, to be sure that it is the right one.")
    def get(url: str, sha256: str | None) -> None:
        """Fetch the GGUF file at URL into the data folder. If it breaks off, run it again: it goes on where it was."""
        with named_errors():
            target = services.data_dir / "models" / name_in(url)
            meant = sha256.lower() if sha256 else None
            if target.exists():
                check_file(target, meant)
            else:
                click.echo(f"SHA-256 {download(url, target, GGUF, meant, _show)}")
            click.echo(f'{target} is there. To use it, set "local_model": "{target}" in settings.json and restart.')

    @group.command("test")
    def test() -> None:
        """Ask the endpoints of the settings for their models, a word and a vector."""
        with named_errors():
            services.prepare()
            try:
                found = services.check_connection()
            except NoEndpoint as error:
                raise click.ClickException("\n".join([str(error), *_offers(services)])) from error
        for step in found.steps:
            mark, color = ("ok", "green") if step.ok else ("failed", "red")
            click.echo(f"{click.style(mark, fg=color)}: {step.message} ({step.seconds:.1f} s)", err=not step.ok)
        if not found.ok:
            raise click.exceptions.Exit(1)

    return group


def _offers(services: Services) -> list[str]:
    """Return a line for each model server on this machine, with what connects it."""
    return [
        f"Found on this machine: {server.name} (port {server.port}). For settings.json: {json.dumps(server.settings)}"
        for server in services.local_servers.find()
        if server.models
    ]


def _show(have: int, total: int | None) -> None:
    """Show in a terminal how much has come, in a line that the next thing said is written over."""
    if not sys.stdout.isatty():
        return
    share = f" of {total / 1e6:,.0f} MB ({have / total:.0%})" if total else " MB"
    click.echo(f"{have / 1e6:,.0f}{share}\r", nl=False)
