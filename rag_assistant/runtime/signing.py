"""The key with which this installation signs receipts, created on first use; and signature verification."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assistant.runtime.data_dir import created_once

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE = "receipts.key"


class Signer:
    """Signs with the key of a data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / KEY_FILE

    @property
    def public_key(self) -> str:
        """The public key for verifying signatures."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        return self._key.sign(message).hex()

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = created_once(self._path, lambda: Ed25519PrivateKey.generate().private_bytes_raw())
        return Ed25519PrivateKey.from_private_bytes(key)


def is_signed(message: bytes, signature: str, public_key: str) -> bool:
    """Return whether a message was signed with the private key of a public one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
