"""One sign-in at a provider, from its beginning to the answer."""

from __future__ import annotations

import base64
import hashlib
import secrets

from msgspec import Struct

OVER = "This sign-in is over, or was begun in another browser. Begin it again."


class Attempt(Struct, frozen=True):
    """One sign-in, known by a secret that only the browser has that began it.

    State, nonce and verifier follow from the secret, so nothing is kept here, and none of them tells another.
    """

    secret: str

    @classmethod
    def begin(cls) -> Attempt:
        """Return a new one."""
        return cls(secrets.token_urlsafe(32))

    @property
    def state(self) -> str:
        """What comes back with the answer."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """What stands in the ID token."""
        return self._derived("nonce")

    @property
    def code_verifier(self) -> str:
        """What the provider is shown with the code (RFC 7636)."""
        return self._derived("code verifier")

    def _derived(self, what: str) -> str:
        digest = hashlib.sha256(f"{what}\0{self.secret}".encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
