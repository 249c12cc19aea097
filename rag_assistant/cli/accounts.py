"""``rag-assistant accounts``: who may sign in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rag_assistant.accounts.accounts import COMMAND_LINE, Actor
from rag_assistant.cli.commands import YES, confirm, services_command
from rag_assistant.records import ABILITIES, ROLES, Role

if TYPE_CHECKING:
    from rag_assistant.services import Services

ACTOR = Actor(COMMAND_LINE)
NAME = click.argument("name")


accounts = click.Group("accounts", help="Manage who may sign in.")


@services_command("add", accounts)
@NAME
@click.option("--admin", is_flag=True, help="An administrator manages accounts and sees the settings.")
@click.option("--link", is_flag=True, help="Print a one-time link instead of asking for a password.")
def add(services: Services, name: str, admin: bool, link: bool) -> None:
    """Create an account. The first one is an administrator and gets all existing data."""
    password = None if link else click.prompt("Password", hide_input=True, confirmation_prompt=True)
    person = services.accounts.add(name, "admin" if admin else "member", ACTOR, password)
    click.echo(f"{person.name} can sign in ({person.role}).")
    if link:
        print_link(services, person.name)


@services_command("list", accounts)
def list_accounts(services: Services) -> None:
    """List accounts."""
    for one in services.accounts.people.all():
        click.echo(f"{one.name}  {one.role}{'  disabled' * (one.disabled_at is not None)}")


@services_command("link", accounts)
@NAME
def link(services: Services, name: str) -> None:
    """Print a one-time link for choosing a password."""
    print_link(services, name)


@services_command("identity", accounts)
@NAME
@click.argument("subject")
def identity(services: Services, name: str, subject: str) -> None:
    """Let somebody sign in with the provider that knows them as SUBJECT (the claim "sub")."""
    person = services.accounts.people.get(name)
    services.single_sign_on.link_subject(person, subject, ACTOR)
    click.echo(f"{person.name} can sign in with the provider.")


@services_command("role", accounts)
@NAME
@click.argument("role", type=click.Choice(ROLES))
def role(services: Services, name: str, role: Role) -> None:
    """Make somebody an administrator or a member."""
    person = services.accounts.people.get(name)
    services.accounts.set_role(person, role, ACTOR)
    click.echo(f"{person.name} is now {'an administrator' if role == 'admin' else 'a member'}.")


@services_command("disable", accounts)
@NAME
def disable(services: Services, name: str) -> None:
    """Block somebody, but keep their data."""
    person = services.accounts.people.get(name)
    services.accounts.set_disabled(person, True, ACTOR)
    click.echo(f"{person.name} can no longer sign in.")


@services_command("enable", accounts)
@NAME
def enable(services: Services, name: str) -> None:
    """Let somebody in again."""
    person = services.accounts.people.get(name)
    services.accounts.set_disabled(person, False, ACTOR)
    click.echo(f"{person.name} can sign in again.")


@services_command("delete", accounts)
@NAME
@click.option("--give-to", help="Who gets their conversations and documents. Without it they are erased.")
@YES
def delete(services: Services, name: str, give_to: str | None, yes: bool) -> None:
    """Delete an account."""
    person = services.accounts.people.get(name)
    heir = services.accounts.people.get(give_to) if give_to else None
    what = f"gives everything to {heir.name}" if heir else "erases all their conversations and documents"
    confirm(f"Delete the account {person.name}? This {what}.", yes)
    services.delete_account(person, ACTOR, heir)
    click.echo(f"The account {person.name} was deleted.")


@services_command("token", accounts)
@NAME
@click.option("--name", "token_name", required=True, help="What the token is for.")
@click.option("--scope", "scopes", multiple=True, required=True, type=click.Choice(ABILITIES))
@click.option("--days", type=int, help="Valid for this many days. Without it: no expiry.")
def token(services: Services, name: str, token_name: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Print a new API token for somebody's programs. It is not shown again."""
    secret, _ = services.accounts.make_token(services.accounts.people.get(name), token_name, scopes, days, ACTOR)
    click.echo(secret)


@services_command("log", accounts)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
def log(services: Services, limit: int) -> None:
    """Show changes to accounts, newest first."""
    for one in services.accounts.log.newest(limit):
        where = f" from {one.address}" if one.address else ""
        click.echo(f"{one.at:%Y-%m-%d %H:%M} {one.actor}{where}: {one.action}: {one.subject}")


def print_link(services: Services, name: str) -> None:
    secret = services.accounts.make_link(services.accounts.people.get(name), ACTOR)
    values = services.settings.current
    # Behind a proxy, or where any address is listened on, nobody told us ours.
    is_known = not (values.allowed_hosts or values.base_path or values.host in ("0.0.0.0", "::"))  # noqa: S104
    host = f"[{values.host}]" if ":" in values.host else values.host
    what, address = (
        ("address", f"http://{host}:{values.port}") if is_known else ("path on the server", values.base_path)
    )
    click.echo(f"Open this {what}, once, within two days: {address}/choose-password?link={secret}")
