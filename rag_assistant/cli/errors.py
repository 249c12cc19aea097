"""Errors on the command line: one sentence, no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from rag_assistant.records.errors import AssistantError

if TYPE_CHECKING:
    from rag_assistant.services import Services


class named_errors:
    """Turn errors of ours into messages of the command line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, AssistantError):
            raise click.ClickException(str(error)) from error


@contextmanager
def prepared(services: Services) -> Iterator[None]:
    """Bring the database to the present schema before a command, or a block, and name its errors."""
    with named_errors():
        services.prepare()
        yield
