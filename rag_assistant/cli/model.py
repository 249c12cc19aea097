"""``rag-assistant model``: fetch a language model to run on this machine, or test the one that is connected."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from rag_assistant.cli.commands import services_command
from rag_assistant.llm.local_model import GGUF
from rag_assistant.records.errors import NoEndpoint
from rag_assistant.runtime.download import check_file, download, name_in

if TYPE_CHECKING:
    from rag_assistant.services import Services


model = click.Group("model", help="Fetch a language model, or test the connected one.")


@services_command("get", model, start=False)
@click.argument("url")
@click.option("--sha256", help="The expected SHA-256 of the file.")
def get(services: Services, url: str, sha256: str | None) -> None:
    """Fetch the GGUF file at URL into the data folder. If interrupted, run it again to resume."""
    target = services.data_dir / "models" / name_in(url)
    expected = sha256.lower() if sha256 else None
    if target.exists():
        check_file(target, expected)
    else:
        click.echo(f"SHA-256 {download(url, target, GGUF, expected, _show)}")
    click.echo(f'{target} is ready. To use it, set "local_model": "{target}" in settings.json and restart.')


@services_command("test", model)
def test(services: Services) -> None:
    """Test the configured endpoints: list their models, and ask for a word and a vector."""
    try:
        check = services.check_connection()
    except NoEndpoint as error:
        sentences = [str(error)]
        for server in services.local_servers.find():
            if server.models:
                line = json.dumps(server.settings)
                sentences.append(
                    f"Found on this machine: {server.name} (port {server.port}). For settings.json: {line}"
                )
        raise click.ClickException("\n".join(sentences)) from error
    for step in check.steps:
        mark, color = ("ok", "green") if step.ok else ("failed", "red")
        click.echo(f"{click.style(mark, fg=color)}: {step.message} ({step.seconds:.1f} s)", err=not step.ok)
    if not check.ok:
        raise click.exceptions.Exit(1)


def _show(have: int, total: int | None) -> None:
    """Show download progress on one terminal line, which the next output overwrites."""
    if not sys.stdout.isatty():
        return
    share = f" of {total / 1e6:,.0f} MB ({have / total:.0%})" if total else " MB"
    click.echo(f"{have / 1e6:,.0f}{share}\r", nl=False)
