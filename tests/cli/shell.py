"""Runs our commands as a terminal does."""

from __future__ import annotations

from click.testing import Result
from flask import Flask

from rag_assistant import cli
from rag_assistant.factory import create_app


class Shell:
    """Runs commands, each with an application of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __call__(self, *words: str, typed: str | None = None, color: bool = False) -> Result:
        app: Flask = create_app(self.environment)
        cli.init_app(app, app.extensions["assistant"])
        result: Result = app.test_cli_runner().invoke(args=list(words), input=typed, color=color)
        app.extensions["assistant"].close()
        return result

    def under(self, **settings: str) -> Shell:
        """Return a shell with other settings over the same data."""
        return Shell(self.environment | settings)
