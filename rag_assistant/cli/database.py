"""``rag-assistant db``: the database's schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rag_assistant.cli.errors import named_errors

if TYPE_CHECKING:
    from rag_assistant.services import Services


def database_commands(services: Services) -> click.Group:
    from rag_assistant.storage.migrate import SCHEMA_REVISION, current_revision, migrate

    group = click.Group("db", help="Manage the database schema.")

    @group.command("upgrade")
    def upgrade() -> None:
        """Upgrade the database to the current schema."""
        with named_errors():
            before = current_revision(services.database)
            migrate(services.database)
        click.echo(f"Schema: {before or 'empty'} -> {SCHEMA_REVISION}")

    @group.command("current")
    def current() -> None:
        """Show the database's schema and the one this version expects."""
        with named_errors():
            found = current_revision(services.database)
        click.echo(f"Schema: {found or 'empty'} (this version: {SCHEMA_REVISION})")

    return group
