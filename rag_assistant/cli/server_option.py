"""``--server``: a command that works with the API of this installation, or of a server elsewhere."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rag_assistant.cli.commands import Function, opened_services

SERVER_VARIABLE, TOKEN_VARIABLE = "RAG_ASSISTANT_SERVER", "RAG_ASSISTANT_TOKEN"


def with_api(*, answers: bool = False) -> Callable[[Function], Function]:
    """Give a command the API, with the options that name a server; without one, it is that of this installation."""
    server_option = click.option(
        "--server", metavar="URL", envvar=SERVER_VARIABLE, help=f"Use this server ({SERVER_VARIABLE})."
    )
    token_option = click.option(
        "--token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"A file with an API token for it; without one, {TOKEN_VARIABLE} has it.",
    )

    def decorate(command: Function) -> Function:
        @functools.wraps(command)
        def run(*args: Any, server: str | None, token_file: Path | None, **options: Any) -> None:
            from rag_assistant.cli.api import api_here, api_of_server

            if server is not None:
                command(api_of_server(server, read_token(token_file)), *args, **options)
            elif token_file is not None:
                raise click.UsageError("--token-file needs --server.")
            else:
                with opened_services() as services:
                    services.start_command(answers=answers)
                    command(api_here(services), *args, **options)

        return server_option(token_option(run))

    return decorate


def read_token(file: Path | None) -> str | None:
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
