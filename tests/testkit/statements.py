"""Listens to SQLAlchemy's events."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event


@contextmanager
def listening(target: object, name: str, listener: Callable[..., Any]) -> Iterator[None]:
    """Call a function at each event of a name of one engine, or of all engines."""
    event.listen(target, name, listener)
    try:
        yield
    finally:
        event.remove(target, name, listener)
