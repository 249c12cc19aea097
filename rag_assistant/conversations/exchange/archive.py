"""Our own archive: JSON Lines, a line for the format, then one for each document, conversation and note. Pure."""

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any

from msgspec import ValidationError, convert, to_builtins

from rag_assistant.conversations.exchange.entries import MAX_ENTRIES, pieces_of
from rag_assistant.conversations.exchange.open_parts import OpenParts
from rag_assistant.records.archive import ArchivedDocument, ArchivedNote, Overrides, WholeConversation, WholeTurn
from rag_assistant.records.errors import InvalidRequest, MalformedBody
from rag_assistant.records.validation import storable_value, visible

MAX_HEAD_BYTES = 1000
FORMAT, VERSION = "rag-assistant", 1
MAX_INT64 = 2**63 - 1
KINDS: dict[str, type[Any]] = {"document": ArchivedDocument, "conversation": WholeConversation, "note": ArchivedNote}


def head() -> str:
    """Return the first line."""
    return json.dumps({"format": FORMAT, "version": VERSION}) + "\n"


def line_of(record: ArchivedDocument | WholeConversation | ArchivedNote) -> str:
    kind = next(name for name, of in KINDS.items() if isinstance(record, of))
    return json.dumps({kind: to_builtins(record)}, ensure_ascii=False) + "\n"


def is_archive(content: bytes) -> bool:
    """Return whether a text begins like an archive."""
    try:
        first = json.loads(content[:MAX_HEAD_BYTES].partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("format") == FORMAT


def read_archive(content: bytes) -> Iterator[ArchivedDocument | WholeConversation | ArchivedNote]:
    """Yield the records of an archive. Raises InvalidRequest, MalformedBody with the number of the line."""
    lines = content.split(b"\n")
    version = json.loads(lines[0]).get("version")
    if version != VERSION:
        raise InvalidRequest(f"The archive has version {version}; this program reads version {VERSION}. Upgrade it.")
    if len(lines) > MAX_ENTRIES:
        raise InvalidRequest(f"The archive has more than {MAX_ENTRIES:,} lines, the most allowed.")
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            for _ in pieces_of(line):
                pass  # Raises for one that is too large.
            yield _record(number, line)


def _record(number: int, encoded: bytes) -> Any:
    try:
        line = encoded.decode()
        content = storable_value(json.loads(line, parse_int=_int64, parse_float=_finite, parse_constant=_finite))
    except (ValueError, RecursionError) as error:
        raise MalformedBody(f"Line {number} of the archive is not JSON ({error}).") from error
    kind = next(iter(content), None) if isinstance(content, dict) and len(content) == 1 else None
    if kind not in KINDS:
        raise InvalidRequest(f"Line {number} of the archive must be an object with one of {', '.join(KINDS)} in it.")
    try:
        record = convert(content[kind], KINDS[kind], str_keys=True)
        if isinstance(record, WholeConversation):
            convert(content[kind], OpenParts, str_keys=True)
    except ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise _wrong(number, kind, where.rstrip("`") or "it", what) from error
    if unknown := content[kind].get("overrides", {}).keys() - Overrides.__annotations__.keys():
        raise InvalidRequest(f"Line {number} of the archive, {kind}: overrides.{min(unknown)} is not known.")
    for where, what in contradictions(record):
        raise _wrong(number, kind, where, what)
    return record


def _int64(digits: str) -> int:
    """Return a whole number. Raises ValueError for one that doesn't fit into 64 bits."""
    number = int(digits)
    if abs(number) > MAX_INT64:
        raise ValueError(f"the number {digits[:20]}... is too large")
    return number


def _finite(digits: str) -> float:
    """Return a number. Raises ValueError for one that isn't valid JSON, and for one that is too large."""
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits[:20]} is no number")
    return number


def _wrong(number: int, kind: Any, wrong: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"Line {number} of the archive, {kind}: {wrong} is wrong ({what}).")


# The path of a value, and what is wrong with it.
Contradiction = tuple[str, str]


def contradictions(record: ArchivedDocument | WholeConversation | ArchivedNote) -> Iterator[Contradiction]:
    """Yield what our own program never writes."""
    if isinstance(record, WholeConversation):
        yield from _of_conversation(record)
    elif isinstance(record, ArchivedNote):
        if record.proposed and record.active:
            yield "active", "a proposed note is not active before a person accepts it"
        try:
            visible(record.text)
        except ValueError as error:
            yield "text", str(error)


def _of_conversation(whole: WholeConversation) -> Iterator[Contradiction]:
    next_turn = len(whole.turns) + 1
    yield from _outside("context_start", whole.context_start, 1, next_turn)
    for n, start in enumerate(whole.earlier_starts):
        yield from _outside(f"earlier_starts[{n}]", start, 1, whole.context_start)
    yield from _outside("view_start", whole.view_start, whole.context_start, next_turn)
    if whole.summary is not None:
        begin, end = whole.context_start, whole.view_start - 1
        for n, (first, last) in enumerate(whole.summary.covered):
            if not begin <= first <= last <= end:
                yield f"summary.covered[{n}]", f"[{first}, {last}] is no run of turns between {begin} and {end}"
            begin = last + 1
    for n, turn in enumerate(whole.turns):
        yield from _among_versions(f"turns[{n}]", turn)
        if turn.pinned and turn.excluded:
            yield f"turns[{n}].excluded", "a pinned turn is not excluded"
        if (turn.erased_at is None) == (turn.answer.status == "erased"):
            yield f"turns[{n}].erased_at", f'its status is "{turn.answer.status}"'


def _among_versions(where: str, turn: WholeTurn) -> Iterator[Contradiction]:
    """Yield what is wrong with the numbers of a turn's answers, which count from 1."""
    answers = 1 + len(turn.others)
    yield from _outside(f"{where}.version", turn.version, 1, answers)
    missing = set(range(1, answers + 1)) - {turn.version, *turn.others}
    if missing:
        yield f"{where}.others", f"of {answers} answers, none has the version {min(missing)}"
    if turn.rating is not None:
        yield from _outside(f"{where}.rating.version", turn.rating.version, 1, answers)


def _outside(where: str, number: int, first: int, last: int) -> Iterator[Contradiction]:
    if not first <= number <= last:
        yield where, f"{number} is not from {first} to {last}"
