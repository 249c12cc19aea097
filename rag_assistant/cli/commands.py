"""What commands share: the services of this installation, errors, parameters and progress bars."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from rag_assistant.records import MAX_INT32
from rag_assistant.records.errors import AssistantError

if TYPE_CHECKING:
    from rag_assistant.services import Services

BAR_STEPS = 1000

Function = Callable[..., None]


# What steers a terminal. Line ends of Windows are those of everybody.
CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
CONTROLS |= {ord("\n"): "\n", ord("\t"): "\t", ord("\r"): ""}


def is_terminal() -> bool:
    """Tell whether a person reads what is printed on a terminal."""
    return sys.stdout.isatty()


def printable(value: Any) -> Any:
    """Return what somebody has said, or JSON with it, so that it does not steer the terminal that shows it."""
    if not is_terminal():
        return value
    if isinstance(value, dict):
        return {name: printable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [printable(one) for one in value]
    return value.translate(CONTROLS) if isinstance(value, str) else value


class ApiError(click.ClickException):
    """A request was refused by the API, or not answered. ``type`` and ``details`` are what the error has there."""

    def __init__(
        self, message: str, exit_code: int = 1, type_: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc] # click reads it from the error.
        self.type = type_
        self.details = details or {}


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


@contextmanager
def opened_services() -> Iterator[Services]:
    """Open the services of this installation for a command; an error of ours is one sentence on the command line."""
    from rag_assistant.services import open_services

    try:
        with closing(open_services()) as services:
            yield services
    except AssistantError as error:
        raise click.ClickException(str(error)) from error


def services_command(
    name: str, group: click.Group | None = None, *, start: bool = True, answers: bool = False
) -> Callable[[Function], click.Command]:
    """Make a command, of a group, of what takes the services of this installation; ``start`` them before."""

    def decorate(function: Function) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> None:
            with opened_services() as services:
                if start:
                    services.start_command(answers=answers)
                function(services, *args, **options)

        return (click.command(name) if group is None else group.command(name))(run)

    return decorate


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar on a terminal, and give what is told how much is done, and of how much."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=BAR_STEPS, label=label, hidden=hidden, file=sys.stderr) as bar:
        yield lambda done, total: bar.update(BAR_STEPS * done // max(1, total) - bar.pos)
