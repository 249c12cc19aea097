"""Runs our commands as a terminal does."""

from __future__ import annotations

import io
from contextlib import closing

from click.testing import CliRunner, Result

from rag_assistant.__main__ import program
from rag_assistant.services import open_services


class Shell:
    """Runs commands, each with services of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __call__(self, *words: str, typed: str | None = None, color: bool = False) -> Result:
        return CliRunner().invoke(
            program, words, input=typed, color=color, env=self.environment, prog_name="rag-assistant"
        )

    def under(self, **settings: str) -> Shell:
        """Return a shell with other settings over the same data."""
        return Shell(self.environment | settings)


def queue(shell: Shell, text: str, name: str) -> None:
    """Add a document as a server does that ends before it is read."""
    with closing(open_services(shell.environment)) as services:
        services.prepare()
        services.library.accept(io.BytesIO(text.encode()), name)
