"""Errors on the command line: one sentence, no traceback."""

from __future__ import annotations

import click

from rag_assistant.errors import AssistantError


class named_errors:
    """Turn errors of ours into messages of the command line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, AssistantError):
            raise click.ClickException(str(error)) from error
