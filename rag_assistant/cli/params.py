"""Parameters that several commands share: an id, and the word that something permanent is meant."""

from __future__ import annotations

import click

from rag_assistant.records import MAX_INT32


class Id(click.IntRange):
    """The number of a conversation, a turn or a document."""

    name = "number"  # What an error calls it.


ID = Id(1, MAX_INT32)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object a line, as in the API.")
YES = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")


def confirm(sentence: str, yes: bool) -> None:
    """Ask whether something permanent is meant, unless that was said already; end the command if it is not."""
    if not yes:
        click.confirm(f"{sentence} This can't be undone.", abort=True)
