"""The command line, with the same services as the server.

``rag-assistant ask``, and in a checkout ``.venv/bin/python app.py ask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

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
    from flask import Flask

    from rag_assistant.web.services import Services


MAKERS = {
    "ask": ask_command,
    "chat": chat_command,
    "eval": eval_command,
    "reindex": reindex_command,
    "backup": backup_command,
    "restore": restore_command,
    "export": export_command,
    "import": import_command,
    "doctor": doctor_command,
    "status": status_command,
    "mcp": mcp_command,
    "accounts": accounts_commands,
    "history": history_commands,
    "documents": documents_commands,
    "files": files_commands,
    "model": model_commands,
    "db": database_commands,
}


def init_app(app: Flask, services: Services) -> None:
    """Add the commands, which a server does without."""
    for one in commands(services):
        app.cli.add_command(one)


def commands(services: Services | None) -> list[click.Command]:
    """Return all of them."""
    return [command(name, services) for name in MAKERS]


def command(name: str, services: Services | None) -> click.Command:
    """Return a command; without services it can be looked at and not run."""
    return MAKERS[name](cast("Services", services))
