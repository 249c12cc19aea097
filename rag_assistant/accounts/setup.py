"""Creating the first account without a command line: whoever can read the log may do it, once."""

import logging
import os
import secrets
from pathlib import Path

from rag_assistant.accounts.accounts import Accounts, Actor
from rag_assistant.accounts.addresses import is_loopback
from rag_assistant.records.errors import SettingsError, SignInFailed
from rag_assistant.settings.schema import Settings

log = logging.getLogger(__name__)

MAKE_ONE = "rag-assistant accounts add NAME --admin"
CODE_BYTES = 9
CONTAINER_SIGNS = (Path("/.dockerenv"), Path("/run/.containerenv"))


def in_container() -> bool:
    """Return whether this process runs in a container: Docker, Podman and systemd-nspawn say so."""
    named = os.environ.get("container")  # noqa: SIM112 - so they spell it
    return bool(named) or any(sign.exists() for sign in CONTAINER_SIGNS)


class Setup:
    """Holds the code for creating the first account in a browser."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._code: str | None = None

    def prepare(self, settings: Settings) -> None:
        """Without an account, refuse settings that admit others or, in a container, log a setup code. Raises
        SettingsError.
        """
        others = self._others(settings)
        if others is None or self._accounts.any():
            return
        if not in_container():
            raise SettingsError(f"{others}, and there is no account yet. Create one first: {MAKE_ONE}.")
        self._code = secrets.token_urlsafe(CODE_BYTES)
        log.warning("There is no account yet. Open /setup and make the first one with this code: %s", self._code)

    @staticmethod
    def _others(settings: Settings) -> str | None:
        """Return why others can reach this server, ``None`` if they can't."""
        if not is_loopback(settings.host):
            return f"host is {settings.host}, which others can reach"
        for name in ("oidc_issuer", "proxy_user_header"):
            if getattr(settings, name) is not None:
                return f"{name} is set, so that others sign in"
        return None

    @property
    def is_open(self) -> bool:
        """Whether the first account can still be created with the code."""
        return self._code is not None and not self._accounts.any()

    def make_first(self, code: str, name: str, password: str, address: str) -> None:
        """Create the first account. Raises SignInFailed, TooManyAttempts, InvalidRequest, AccountsExist."""
        self._accounts.count_attempt("setup", address)
        if self._code is None or not secrets.compare_digest(code.strip().encode(), self._code.encode()):
            raise SignInFailed("The code is wrong. It is in the server log.")
        self._accounts.add(name, "admin", Actor(name.strip(), address), password, only_first=True)
        self._code = None
