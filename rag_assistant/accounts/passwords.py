"""Which passwords are allowed, and how they are hashed: argon2id with the parameters of RFC 9106, section 4."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from rag_assistant.records.errors import InvalidRequest, PasswordsBusy

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MIN_CHARS = 10
MAX_CHARS = 1000
MIN_DIFFERENT = 5
# Each takes 64 MiB and a core for a moment.
HASHED_AT_ONCE = 2
MAX_WAITING = 16
WAIT_SECONDS = 5.0

_places = threading.BoundedSemaphore(HASHED_AT_ONCE)
_queue = threading.BoundedSemaphore(HASHED_AT_ONCE + MAX_WAITING)


@contextmanager
def _turn() -> Iterator[None]:
    """Wait for a turn to hash. Raises PasswordsBusy if too many wait, or for too long."""
    if not _queue.acquire(blocking=False):
        raise PasswordsBusy
    with ExitStack() as leaving:
        leaving.callback(_queue.release)
        if not _places.acquire(timeout=WAIT_SECONDS):
            raise PasswordsBusy
        leaving.callback(_places.release)
        yield


def check_password(password: str, name: str) -> None:
    """Refuse a password that is easily guessed, or too long to be hashed quickly. Raises InvalidRequest."""
    if not MIN_CHARS <= len(password) <= MAX_CHARS:
        raise InvalidRequest(
            f"The password has {len(password)} characters; it must have {MIN_CHARS} to {MAX_CHARS}. "
            "A few words in a row are easy to remember."
        )
    different = len(set(password))
    if different < MIN_DIFFERENT:
        raise InvalidRequest(
            f"The password has too few different characters ({different}); it must have {MIN_DIFFERENT}."
        )
    if name.casefold() in password.casefold():
        raise InvalidRequest("The password must not contain the account name.")


def hash_password(password: str) -> str:
    """Return the hash of a password. Raises PasswordsBusy."""
    with _turn():
        return _hasher().hash(password)


def is_password(password_hash: str | None, password: str) -> bool:
    """Return whether a password matches a hash; without one it takes as long, and doesn't. Raises PasswordsBusy."""
    from argon2.exceptions import InvalidHashError, VerificationError

    with _turn():
        try:
            return _hasher().verify(password_hash or _nobodys(), password[:MAX_CHARS]) and password_hash is not None
        except (VerificationError, InvalidHashError):
            return False


@cache
def _nobodys() -> str:
    """Return a dummy hash, so that an unknown name takes as long as a wrong password."""
    return _hasher().hash("nobody has this")


@cache
def _hasher() -> PasswordHasher:
    """Return the hasher; it is loaded only if somebody signs in."""
    from argon2 import PasswordHasher
    from argon2.profiles import RFC_9106_LOW_MEMORY

    return PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
