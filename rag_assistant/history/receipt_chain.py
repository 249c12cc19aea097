"""Receipts as a hash chain that anybody with the file can verify: each link has the hashes of its parts and of the
previous link.

Each part is hashed with its own salt. Once it is erased only its hash is left, from which it can't be guessed. Pure: no
Flask, no SQL, no network, no clock.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from rag_assistant.history.erasing import Receipt
from rag_assistant.records.errors import InvalidReceipts

Number = Annotated[int, Meta(ge=1)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
HashBefore = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?\Z")]
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\Z")]
# A part of a receipt in one of the two shapes below; the value of the first is not stored here.
Part = dict[str, Any]


class _Kept(Struct, forbid_unknown_fields=True):
    """A part with its value. Every salt is as long as the next, so no text can move from the value into it."""

    salt: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
    value: Any


class _Erased(Struct, forbid_unknown_fields=True):
    """What is left of an erased part. Release 1.0 did not record when."""

    hash: Hash
    erased_at: Time = ""


class Link(Struct, forbid_unknown_fields=True):
    """A line of a file: one receipt."""

    conversation: Number
    position: Number
    turn: Number
    version: Number
    previous: HashBefore
    parts: dict[str, Part]
    hash: Hash


class Seal(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The last line of a file: what was signed, when, with which key, and the signature."""

    conversation: Number
    links: Annotated[int, Meta(ge=0)]
    hash: HashBefore
    key: Hash
    signed_at: Time
    signature: Annotated[str, Meta(pattern=r"^[0-9a-f]{128}\Z")]
    # The hash of all lines before. In files of release 1.0 it is missing, so anybody can erase parts of those.
    lines: Hash = ""

    @property
    def signed(self) -> bytes:
        """The signed part of the line."""
        return canonical({name: value for name, value in to_builtins(self).items() if name != "signature"})


Line = TypeVar("Line", Link, Seal)


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
    """Return a part's hash. Raises ValidationError if it has neither shape."""
    if "hash" in part:
        return convert(part, _Erased).hash
    return sha256(convert(part, _Kept).salt.encode() + canonical(part["value"])).hexdigest()


def hash_of_link(link: Mapping[str, Any]) -> str:
    """Return a link's hash, over its position, the previous link, and its parts."""
    parts = {name: hash_of_part(part) for name, part in link["parts"].items()}
    return sha256(canonical({name: link[name] for name in link if name != "hash"} | {"parts": parts})).hexdigest()


def check_chain(lines: Iterable[bytes]) -> tuple[Seal, Counter[str]]:
    """Return the seal of a consistent receipts file, and how many parts were erased at which time ("" is unknown).

    The seal's signature isn't verified here. Raises InvalidReceipts with the first altered line.
    """
    last: Link | None = None
    seal: Seal | None = None
    erased: Counter[str] = Counter()
    links, digest = 0, sha256()
    for n, line in enumerate(lines, 1):
        entry = _read(line, n)
        if seal is not None:
            raise InvalidReceipts(f"Line {n} comes after the signature at the end.")
        if "signature" in entry:
            seal = _shaped(entry, Seal, n)
            continue
        link = _checked_link(entry, n)
        expected = (last.position + 1, last.hash, last.conversation) if last else (1, "", link.conversation)
        if (link.position, link.previous, link.conversation) != expected:
            raise InvalidReceipts(f"Line {n}, the receipt of turn {link.turn}, does not follow the line before it.")
        last, links = link, links + 1
        erased.update(part.get("erased_at", "") for part in link.parts.values() if "hash" in part)
        digest.update(line)
    if seal is None:
        raise InvalidReceipts("The file has no signature at its end: it was cut off.")
    if (seal.links, seal.hash) != (links, last.hash if last else ""):
        raise InvalidReceipts(f"The signature is of {seal.links} other receipts; the file has {links}.")
    if last and seal.conversation != last.conversation:
        raise InvalidReceipts("The signature is of another conversation.")
    if seal.lines != digest.hexdigest() and (seal.lines or any(erased)):
        raise InvalidReceipts("Parts of the file were erased or put back after it was signed.")
    return seal, erased


def _checked_link(entry: dict[str, Any], n: int) -> Link:
    """Return a line whose hash is that of its content."""
    link = _shaped(entry, Link, n)
    try:
        is_whole = link.hash == hash_of_link(entry)
    except ValidationError as error:
        raise InvalidReceipts(f"Line {n} has a part of another shape than was written.") from error
    if not is_whole:
        raise InvalidReceipts(f"Line {n}, the receipt of turn {link.turn}, was changed: its hash is another.")
    return link


def _shaped(entry: dict[str, Any], shape: type[Line], n: int) -> Line:
    try:
        return convert(entry, shape)
    except ValidationError as error:
        raise InvalidReceipts(f"Line {n} is neither a receipt nor the signature at the end.") from error


def _read(line: bytes, n: int) -> dict[str, Any]:
    """Return a line's object. Raises InvalidReceipts if it isn't canonical JSON of whole characters."""
    try:
        entry = json.loads(line)
        json.dumps(entry, ensure_ascii=False).encode()
        if isinstance(entry, dict) and canonical(entry) + b"\n" == line:
            return entry
    except (ValueError, RecursionError):
        pass
    raise InvalidReceipts(f"Line {n} is not as it was written.")
