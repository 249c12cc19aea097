"""What ``--server`` means: a command works on a server elsewhere, and not on the data of this machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rag_assistant.cli.errors import named_errors
from rag_assistant.cli.remote import SERVER_VARIABLE, TOKEN_VARIABLE, RemoteServer

if TYPE_CHECKING:
    from rag_assistant.services import Services

Backend = TypeVar("Backend")


def works_on(
    services: Services | None, here: Callable[[Services], Backend], there: Callable[[RemoteServer], Backend]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that name a server; the command gets what works there, or without one on ``services``."""
    server_option = click.option(
        "--server", metavar="URL", envvar=SERVER_VARIABLE, help=f"Use this server ({SERVER_VARIABLE})."
    )
    token_option = click.option(
        "--token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"A file with an API token for it; without one, {TOKEN_VARIABLE} has it.",
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*args: Any, server: str | None, token_file: Path | None, **options: Any) -> None:
            with named_errors():
                if server is not None:
                    command(there(RemoteServer(server, token_from(token_file))), *args, **options)
                elif services is None or token_file is not None:
                    raise click.UsageError("--token-file needs --server.")
                else:
                    command(here(services), *args, **options)

        return server_option(token_option(run))

    return decorate


def token_from(file: Path | None) -> str | None:
    """Return the API token in a file or in the environment. It is never a word of the command: all could see it."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file} cannot be read ({getattr(error, 'strerror', None) or 'no text'}).") from error
    if not token or len(token.split()) != 1 or not token.isascii():
        raise click.BadParameter(f"{file} must hold an API token and nothing else.")
    return token


def names_server(words: list[str]) -> bool:
    """Tell whether a command is about a server elsewhere."""
    return bool(os.environ.get(SERVER_VARIABLE)) or any(
        word == "--server" or word.startswith("--server=") for word in words
    )
