"""The command line: ``rag-assistant ask``, and in a checkout ``.venv/bin/python app.py ask``.

Commands about people's data use the API, in this process or of another server (api.py); those about the installation
use the services (commands.py).
"""

import json
from importlib import import_module
from pkgutil import get_data

import click

# The module of each command, imported when it is called, and its line in --help.
COMMANDS: dict[str, tuple[str, str]] = json.loads(get_data(__name__, "commands.json") or b"")


def command(name: str) -> click.Command:
    """Return a command by its name."""
    module = import_module(f"{__name__}.{COMMANDS[name][0]}")
    return next(one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name)
