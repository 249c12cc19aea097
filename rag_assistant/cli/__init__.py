"""The command line: ``rag-assistant ask``, and in a checkout ``.venv/bin/python app.py ask``.

Commands about people's data use the API, in this process or of another server (api.py); those about the installation
use the services (commands.py).
"""

from importlib import import_module

import click

# The module of each command, imported when it is called, and its line in --help.
COMMANDS = {
    "ask": ("ask", "Ask a question and print the answer as it is written."),
    "chat": ("ask", "Chat in the terminal: /help lists the commands, Ctrl-C stops an answer, Ctrl-D quits."),
    "documents": ("documents", "Manage the library."),
    "files": ("maintenance", "Manage where uploaded files are kept."),
    "accounts": ("accounts", "Manage who may sign in."),
    "history": ("history", "Show, export and erase conversations, and see what the model was sent."),
    "receipts": ("receipts", "Export signed receipts, and verify them."),
    "mcp": (
        "mcp",
        "Serve the Model Context Protocol on standard input and output, to the program that starts this command.",
    ),
    "eval": ("evaluate", "Ask every rated question again and show what got better or worse."),
    "model": ("status", "Fetch a language model, or test the connected one."),
    "reindex": ("maintenance", "Embed everything with the configured embedding model, and switch search to it."),
    "backup": ("maintenance", "Back up to FILE; the server can keep running."),
    "restore": ("maintenance", "Restore a backup into an empty data folder, PostgreSQL or S3."),
    "export": ("maintenance", 'Export all conversations and documents to FILE, a zip archive that "import" reads.'),
    "import": ("maintenance", "Import conversations from FILE."),
    "status": ("status", "Show version, folders, sizes, counts and pending work."),
    "doctor": ("maintenance", "Check that the database and the uploaded files agree."),
    "db": ("maintenance", "Manage the database schema."),
}


def command(name: str) -> click.Command:
    """Return a command by its name."""
    module = import_module(f"{__name__}.{COMMANDS[name][0]}")
    return next(one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name)
