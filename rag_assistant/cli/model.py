"""``flask model``: fetch a language model to run on this machine, or test the one that is connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from flask.cli import AppGroup

from rag_assistant.cli.errors import named_errors
from rag_assistant.llm.connection_check import check_connection
from rag_assistant.llm.local_model import GGUF
from rag_assistant.runtime.download import download, name_in

if TYPE_CHECKING:
    from rag_assistant.web.services import Services


def model_commands(services: Services) -> AppGroup:
    group = AppGroup("model", help="Fetch a language model, or test the connected one.")

    @group.command("get")
    @click.argument("url")
    @click.option("--sha256", help="The file's SHA-256, to be sure that it is the right one.")
    def get(url: str, sha256: str | None) -> None:
        """Fetch the GGUF file at URL into the data folder. If it breaks off, run it again: it goes on where it was."""
        with named_errors():
            target = services.data_dir / "models" / name_in(url)
            if not target.exists():
                digest = download(url, target, GGUF, sha256.lower() if sha256 else None, _show)
                click.echo(f"\nSHA-256 {digest}")
            click.echo(f'{target} is there. To use it, set "local_model": "{target}" in settings.json and restart.')

    @group.command("test")
    def test() -> None:
        """Ask the endpoint of the settings for its models and for a word."""
        with named_errors():
            found = check_connection(services.models)
            if found.problem is not None:
                raise click.ClickException(found.problem)
            click.echo(f"{found.model} at {found.base_url} answered in {found.seconds:.1f} s.")

    return group


def _show(have: int, total: int | None) -> None:
    share = f" of {total / 1e6:,.0f} MB ({have / total:.0%})" if total else " MB"
    click.echo(f"\r{have / 1e6:,.0f}{share}", nl=False)
