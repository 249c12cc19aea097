"""Runs our commands as a terminal does."""

from __future__ import annotations

import click
from click.testing import CliRunner, Result

from rag_assistant import cli
from rag_assistant.factory import open_services


class Shell:
    """Runs commands, each with services of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __call__(self, *words: str, typed: str | None = None, color: bool = False) -> Result:
        name, services = words[0], open_services(self.environment)
        program = click.Group("rag-assistant", {name: cli.command(name, services)})
        result = CliRunner().invoke(program, words, input=typed, color=color)
        services.close()
        return result

    def under(self, **settings: str) -> Shell:
        """Return a shell with other settings over the same data."""
        return Shell(self.environment | settings)
