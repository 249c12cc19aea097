"""Receipts as a hash chain that anybody with the file can verify: each link has the hashes of its parts and of the
previous link.

Each part is hashed with its own salt. Once it is erased only its hash is left, from which it can't be guessed. Pure: no
Flask, no SQL, no network, no clock.
"""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from msgspec import Struct

from rag_assistant.history.erasing import Receipt
from rag_assistant.records.errors import InvalidReceipts

# A part of a receipt: {"salt", "value"}, stored as {"salt"}; {"hash"} once erased.
Part = dict[str, Any]
LINK = frozenset({"conversation", "position", "turn", "version", "previous", "parts", "hash"})
SEAL = frozenset({"conversation", "links", "hash", "key", "signed_at", "signature"})
HEX = re.compile(r"(?:[0-9a-f]{2})+")


class Seal(Struct, frozen=True):
    """The last line of a file: what was signed, when, with which key, and the signature."""

    conversation: int
    links: int
    key: str
    signed_at: str
    signature: str
    signed: bytes
    erased: int


def canonical(value: Any) -> bytes:
    """Return canonical JSON: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def parts_of(receipt: Receipt, answer: str) -> dict[str, Any]:
    """Return a receipt and its answer as named parts that can be erased individually."""
    parts = {name: value for name, value in receipt.items() if name not in ("request", "earlier_requests")}
    for n, request in enumerate((*receipt.get("earlier_requests", ()), receipt["request"]), 1):
        parts[f"request {n}"] = {name: value for name, value in request.items() if name != "messages"}
        parts |= {f"request {n}, message {m}": message for m, message in enumerate(request["messages"], 1)}
    return parts | {"answer": answer}


def hash_of_part(part: Part) -> str:
    """Return a part's hash."""
    erased: str | None = part.get("hash")
    return erased or sha256(part["salt"].encode() + canonical(part["value"])).hexdigest()


def hash_of_link(link: Mapping[str, Any]) -> str:
    """Return a link's hash, over its position, the previous link, and its parts."""
    parts = {name: hash_of_part(part) for name, part in link["parts"].items()}
    hashed = {name: link[name] for name in LINK - {"hash"}} | {"parts": parts}
    return sha256(canonical(hashed)).hexdigest()


def check_chain(lines: Iterable[bytes]) -> Seal:
    """Return the seal of a receipts file whose links are consistent; its signature isn't verified here.

    Raises InvalidReceipts with the first altered line.
    """
    last: Mapping[str, Any] | None = None
    links = erased = 0
    seal: Mapping[str, Any] | None = None
    for n, line in enumerate(lines, 1):
        entry = _read(line, n)
        if seal is not None or set(entry) not in (LINK, SEAL):
            raise InvalidReceipts(f"Line {n} is neither a receipt nor the signature at the end.")
        if "signature" in entry:
            seal = entry
            continue
        try:
            is_whole = entry["hash"] == hash_of_link(entry)
        except (KeyError, TypeError, AttributeError):
            is_whole = False
        if not is_whole:
            raise InvalidReceipts(f"Line {n}, the receipt of turn {entry['turn']}, was changed: its hash is another.")
        expected = (last["position"] + 1, last["hash"], last["conversation"]) if last else None
        if expected and (entry["position"], entry["previous"], entry["conversation"]) != expected:
            raise InvalidReceipts(f"Line {n}, the receipt of turn {entry['turn']}, does not follow the line before it.")
        last, links = entry, links + 1
        erased += sum("hash" in part for part in entry["parts"].values())
    if seal is None:
        raise InvalidReceipts("The file has no signature at its end: it was cut off.")
    if (seal["links"], seal["hash"]) != (links, last["hash"] if last else ""):
        raise InvalidReceipts(f"The signature is of {seal['links']} other receipts; the file has {links}.")
    if last and seal["conversation"] != last["conversation"]:
        raise InvalidReceipts("The signature is of another conversation.")
    for name in ("key", "signature"):
        if not isinstance(seal[name], str) or not HEX.fullmatch(seal[name]):
            raise InvalidReceipts(f"The {name} at the end of the file is not as it was written.")
    own = {name: seal[name] for name in ("conversation", "links", "key", "signed_at", "signature")}
    return Seal(**own, signed=canonical(signed_part(seal)), erased=erased)


def signed_part(seal: Mapping[str, Any]) -> dict[str, Any]:
    """Return the signed part of the last line."""
    return {name: value for name, value in seal.items() if name != "signature"}


def _read(line: bytes, n: int) -> dict[str, Any]:
    """Return a line's object. Raises InvalidReceipts if it isn't canonical JSON."""
    try:
        entry = json.loads(line)
        if isinstance(entry, dict) and canonical(entry) + b"\n" == line:
            return entry
    except (ValueError, RecursionError):
        pass
    raise InvalidReceipts(f"Line {n} is not as it was written.")
