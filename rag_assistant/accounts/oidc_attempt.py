"""One sign-in at a provider, from start to response."""

from __future__ import annotations

import base64
import hashlib
import secrets

from msgspec import Struct

OVER = "This sign-in is over, or was begun in another browser. Begin it again."


class Attempt(Struct, frozen=True):
    """One sign-in, identified by a secret in the browser that started it.

    State, nonce and verifier derive from the secret, so nothing is stored, and none reveals another.
    """

    secret: str

    @classmethod
    def begin(cls) -> Attempt:
        return cls(secrets.token_urlsafe(32))

    @property
    def state(self) -> str:
        """The state parameter, returned with the response."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """The nonce in the ID token."""
        return self._derived("nonce")

    @property
    def code_verifier(self) -> str:
        """The PKCE code verifier (RFC 7636)."""
        return self._derived("code verifier")

    def _derived(self, what: str) -> str:
        digest = hashlib.sha256(f"{what}\0{self.secret}".encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
