"""The command line: ``rag-assistant ask``, and in a checkout ``.venv/bin/python app.py ask``.

What people keep, a command asks of the API, in this process or of a server elsewhere (api.py); what is about the
installation itself, it does with the services (commands.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is defined, and what --help says of it; a test compares that with what it says of itself."""

    module: str
    name: str
    help: str


# A shell that completes a word waits for one module alone to be loaded, and --help for none.
COMMANDS = {
    "ask": Entry("ask", "ask", "Ask a question and print the answer as it is written."),
    "chat": Entry(
        "ask", "chat", "Chat in the terminal: /help lists the commands, Ctrl-C stops an answer, Ctrl-D quits."
    ),
    "documents": Entry("documents", "documents", "Manage the library."),
    "files": Entry("maintenance", "files", "Manage where uploaded files are kept."),
    "accounts": Entry("accounts", "accounts", "Manage who may sign in."),
    "history": Entry("history", "history", "Conversations, and what the model was sent."),
    "mcp": Entry(
        "mcp",
        "mcp",
        "Serve a program that starts this command: the Model Context Protocol on standard input and output.",
    ),
    "eval": Entry("evaluate", "evaluate", "Ask every rated question again and show what got better or worse."),
    "model": Entry("model", "model", "Fetch a language model, or test the connected one."),
    "reindex": Entry(
        "maintenance", "reindex", "Embed everything with the configured embedding model, and switch search to it."
    ),
    "backup": Entry("backup", "backup", "Back up to FILE; the server can keep running."),
    "restore": Entry("backup", "restore", "Restore a backup where nothing is yet: a data folder, PostgreSQL, S3."),
    "export": Entry(
        "exchange", "export", 'Export all conversations and documents to FILE, a zip archive that "import" reads.'
    ),
    "import": Entry("exchange", "import_", "Import conversations from FILE."),
    "status": Entry("status", "status", "Show version, folders, sizes, counts and pending work."),
    "doctor": Entry(
        "maintenance", "doctor", "Check that the database, the uploaded files and the index of the vectors agree."
    ),
    "db": Entry("maintenance", "database", "Manage the database schema."),
}


def command(name: str) -> click.Command:
    """Return a command by its name."""
    entry = COMMANDS[name]
    found: click.Command = getattr(import_module(f"{__name__}.{entry.module}"), entry.name)
    return found
