"""The command line, with the same services as the server.

``rag-assistant ask``, and in a checkout ``.venv/bin/python app.py ask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click
from flask import Flask

from rag_assistant.cli.accounts import accounts_commands
from rag_assistant.cli.ask import ask_command, chat_command
from rag_assistant.cli.backup import backup_command, restore_command
from rag_assistant.cli.database import database_commands
from rag_assistant.cli.documents import documents_commands
from rag_assistant.cli.evaluate import eval_command
from rag_assistant.cli.exchange import export_command, import_command
from rag_assistant.cli.files import files_commands
from rag_assistant.cli.history import history_commands
from rag_assistant.cli.maintenance import doctor_command, reindex_command
from rag_assistant.cli.mcp import mcp_command
from rag_assistant.cli.model import model_commands
from rag_assistant.cli.status import status_command

if TYPE_CHECKING:
    from rag_assistant.web.services import Services


def init_app(app: Flask, services: Services) -> None:
    """Add the commands, which a server does without."""
    for command in commands(services):
        app.cli.add_command(command)


def commands(services: Services | None) -> list[click.Command]:
    """Return the commands; without services they can be looked at and not run."""
    groups = accounts_commands, history_commands, documents_commands, files_commands, model_commands, database_commands
    alone = ask_command, chat_command, eval_command, reindex_command, backup_command, restore_command
    exchange = export_command, import_command
    made = (*alone, *exchange, doctor_command, status_command, mcp_command, *groups)
    return [one(cast("Services", services)) for one in made]
