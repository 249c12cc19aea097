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


# Control characters of terminals. Windows line ends are allowed.
CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
CONTROLS |= {ord("\n"): "\n", ord("\t"): "\t", ord("\r"): ""}


def is_terminal() -> bool:
    """Return whether the output is an interactive terminal."""
    return sys.stdout.isatty()


def printable(value: Any) -> Any:
    """Return text, or JSON with it, without characters that control the terminal."""
    if not is_terminal():
        return value
    if isinstance(value, dict):
        return {name: printable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [printable(one) for one in value]
    return value.translate(CONTROLS) if isinstance(value, str) else value


class ApiError(click.ClickException):
    """The API refused a request, or didn't answer. ``type`` and ``details`` are those of the error."""

    def __init__(
        self, message: str, exit_code: int = 1, type_: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc] # click reads it from the error.
        self.type = type_
        self.details = details or {}


class Id(click.IntRange):
    """The number of a conversation, a turn or a document."""

    name = "number"  # Its name in error messages.


ID = Id(1, MAX_INT32)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object a line, as in the API.")
YES = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")


def confirm(sentence: str, yes: bool) -> None:
    """Ask for confirmation of something permanent, unless ``yes``; end the command if it is refused."""
    if not yes:
        click.confirm(f"{sentence} This can't be undone.", abort=True)


@contextmanager
def opened_services() -> Iterator[Services]:
    """Open the services of this installation for a command; our errors become one sentence."""
    from rag_assistant.services import open_services

    try:
        with closing(open_services()) as services:
            yield services
    except AssistantError as error:
        raise click.ClickException(str(error)) from error


def services_command(
    name: str, group: click.Group | None = None, *, start: bool = True, answers: bool = False
) -> Callable[[Function], click.Command]:
    """Make a command of a group that uses the services of this installation, started with ``start``."""

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
    """Draw a progress bar on a terminal, and give a function to update it with the amount done and the total."""
    with click.progressbar(length=BAR_STEPS, label=label, hidden=not sys.stderr.isatty(), file=sys.stderr) as bar:
        yield lambda done, total: bar.update(BAR_STEPS * done // max(1, total) - bar.pos)
