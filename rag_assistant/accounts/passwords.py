"""Passwords: which are allowed, how they are hashed (argon2id with the parameters of RFC 9106, section 4), and how
often they may be tried: slower after each failure, without locking out the owner.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from rag_assistant.records.errors import InvalidRequest, PasswordsBusy, TooManyAttempts

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


MAX_WAIT_SECONDS = 60.0
FORGOTTEN_AFTER_SECONDS = 900.0
MAX_KNOWN = 10_000
# Characters of a name that was tried; accounts have shorter ones.
MAX_NAME_CHARS = 200
# Failures without a delay: for an account from one address, and for each of the two alone.
FREE_FOR_BOTH = 5
FREE_FOR_ONE = 20
# Sign-ins with the right password, from one address.
FREE_SUCCESSES = 20

Key = tuple[str, ...]


class Throttle:
    """Counts attempts; each counts as a failure until it is reported as successful.

    The longest wait is a minute. Attempts from elsewhere don't delay an address at which somebody is signed in.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # How many, and when the last was.
        self._failures: OrderedDict[Key, tuple[int, float]] = OrderedDict()

    def attempt(self, account: str, address: str, *, known_address: bool) -> None:
        """Count an attempt. Raises TooManyAttempts if it comes too soon; then it doesn't count."""
        moment = self._clock()
        keys = self._keys(account, address, known_address)
        with self._lock:
            right = self._right(account, address)
            wait = max(self._wait(key, free, moment) for key, free in {**keys, right: FREE_SUCCESSES}.items())
            if wait > 0:
                raise TooManyAttempts(max(2, round(wait)), retry_after_seconds=wait)
            for key in keys:
                self._count(key, moment)

    def succeeded(self, account: str, address: str, *, known_address: bool) -> None:
        """Clear the failures of a successful sign-in, and count it: endless sign-ins are slowed down, too."""
        with self._lock:
            for key in self._keys(account, address, known_address):
                self._failures.pop(key, None)
            self._count(self._right(account, address), self._clock())

    def _count(self, key: Key, moment: float) -> None:
        count, _ = self._failures.pop(key, (0, moment))
        self._failures[key] = count + 1, moment
        while len(self._failures) > MAX_KNOWN:
            self._failures.popitem(last=False)

    @staticmethod
    def _right(account: str, address: str) -> Key:
        return ("right", account[:MAX_NAME_CHARS], network_of(address))

    @staticmethod
    def _keys(account: str, address: str, known_address: bool) -> dict[Key, int]:
        from_where, account = network_of(address), account[:MAX_NAME_CHARS]
        keys: dict[Key, int] = {("both", account, from_where): FREE_FOR_BOTH}
        if not known_address:
            keys |= {("account", account): FREE_FOR_ONE, ("address", from_where): FREE_FOR_ONE}
        return keys

    def _wait(self, key: Key, free: int, moment: float) -> float:
        count, last = self._failures.get(key, (0, moment))
        if moment - last > FORGOTTEN_AFTER_SECONDS:
            del self._failures[key]
            return 0.0
        return last + min(MAX_WAIT_SECONDS, 2.0 ** min(count - free, 10)) - moment if count >= free else 0.0


def network_of(address: str) -> str:
    """Return what one subscriber has: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ip_network(f"{address.partition('%')[0]}/64", strict=False))
