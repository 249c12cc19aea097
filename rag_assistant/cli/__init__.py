"""The command line, with the same services as the server.

``rag-assistant ask``, and in a checkout ``.venv/bin/python app.py ask``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from flask import Flask

    from rag_assistant.services import Services

# The module of each command, and the function there that makes it: a shell that completes a word, or a server
# elsewhere, waits for one of them alone to be loaded.
MAKERS = {
    "ask": ("ask", "ask_command"),
    "chat": ("ask", "chat_command"),
    "eval": ("evaluate", "eval_command"),
    "reindex": ("maintenance", "reindex_command"),
    "backup": ("backup", "backup_command"),
    "restore": ("backup", "restore_command"),
    "export": ("exchange", "export_command"),
    "import": ("exchange", "import_command"),
    "doctor": ("maintenance", "doctor_command"),
    "status": ("status", "status_command"),
    "mcp": ("mcp", "mcp_command"),
    "accounts": ("accounts", "accounts_commands"),
    "history": ("history", "history_commands"),
    "documents": ("documents", "documents_commands"),
    "files": ("files", "files_commands"),
    "model": ("model", "model_commands"),
    "db": ("database", "database_commands"),
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
    module, maker = MAKERS[name]
    made: click.Command = getattr(import_module(f"{__name__}.{module}"), maker)(services)
    return made
