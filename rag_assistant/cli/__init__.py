"""The command line: ``flask --app app ask | chat | history | documents | db``, with the same services as the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Flask

from rag_assistant.cli.asking import ask_command, chat_command
from rag_assistant.cli.database import database_commands
from rag_assistant.cli.documents import documents_commands
from rag_assistant.cli.history import history_commands

if TYPE_CHECKING:
    from rag_assistant.factory import Services


def init_app(app: Flask, services: Services) -> None:
    """Add the commands."""
    for made in (ask_command, chat_command, history_commands, documents_commands, database_commands):
        app.cli.add_command(made(services))
