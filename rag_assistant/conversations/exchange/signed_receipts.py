"""The receipts of a conversation in one file that anybody can check: a line each, and a signed one at the end."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import decode

from rag_assistant.records.errors import InvalidReceipts
from rag_assistant.runtime.signing import Signer, is_signed

Hex = Annotated[str, Meta(pattern=r"^[0-9a-f]+\Z")]


class Seal(Struct, frozen=True, forbid_unknown_fields=True):
    """The last line: which receipts were signed, by the SHA-256 of all lines before, when, and with which key."""

    conversation: int
    receipts: int
    lines: Hex
    key: Hex
    signed_at: str
    signature: Hex = "00"

    @property
    def signed(self) -> bytes:
        """The signed part of the line."""
        return _line({name: value for name, value in to_builtins(self).items() if name != "signature"})


def signed_receipts(conversation_id: int, receipts: Iterable[dict[str, Any]], signer: Signer) -> Iterator[bytes]:
    """Yield a file of receipts, line by line."""
    count, digest = 0, sha256()
    for line in map(_line, receipts):
        count += 1
        digest.update(line)
        yield line
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    seal = Seal(conversation_id, count, digest.hexdigest(), signer.public_key, moment)
    yield _line(to_builtins(seal) | {"signature": signer.sign(seal.signed)})


def check_receipts(lines: Iterable[bytes]) -> Seal:
    """Return the seal of a file that is as it was signed, with the key that the seal names. Raises InvalidReceipts."""
    count, digest, last = -1, sha256(), b""
    for line in lines:
        digest.update(last)
        count, last = count + 1, line
    try:
        seal = decode(last, type=Seal)
    except (MsgspecError, ValueError, RecursionError) as error:
        raise InvalidReceipts(
            "The file has no signature at its end: it was cut off. Release 1.0 wrote and checks another format."
        ) from error
    is_whole = last == _line(to_builtins(seal)) and (seal.receipts, seal.lines) == (count, digest.hexdigest())
    if not is_whole or not is_signed(seal.signed, seal.signature, seal.key):
        raise InvalidReceipts("The signature does not match: the file was changed after it was signed.")
    return seal


def _line(value: dict[str, Any]) -> bytes:
    """Return canonical JSON: sorted names, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"
