"""The first account where the command line is not at hand: whoever can read the log may make it, once."""

from __future__ import annotations

import logging
import secrets
from ipaddress import ip_address

from rag_assistant.accounts.accounts import Accounts, Actor
from rag_assistant.errors import SettingsError, SignInFailed

log = logging.getLogger(__name__)

MAKE_ONE = "rag-assistant accounts add NAME --admin"
CODE_BYTES = 9


class Setup:
    """Holds the code with which the first account is made in a browser, while there is none."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._code: str | None = None

    def prepare(self, host: str, in_container: bool) -> None:
        """Refuse an address that others reach while there is no account, or in a container log a code for the first.

        Raises SettingsError.
        """
        if is_loopback(host) or self._accounts.any():
            return
        if not in_container:
            raise SettingsError(
                f"host is {host}, which others can reach, and there is no account yet. Make one first: {MAKE_ONE}."
            )
        self._code = secrets.token_urlsafe(CODE_BYTES)
        log.warning("There is no account yet. Open /setup and make the first one with this code: %s", self._code)

    @property
    def is_open(self) -> bool:
        """Whether the first account is still to be made with the code."""
        return self._code is not None and not self._accounts.any()

    def make_first(self, code: str, name: str, password: str, address: str) -> None:
        """Make the first account. Raises SignInFailed, TooManyAttempts, InvalidRequest, AccountsExist."""
        self._accounts.count_attempt("setup", address)
        if self._code is None or not secrets.compare_digest(code.strip().encode(), self._code.encode()):
            raise SignInFailed("The code is wrong. It stands in the server's log.")
        self._accounts.add(name, "admin", Actor(name.strip(), address), password, only_first=True)
        self._code = None


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
