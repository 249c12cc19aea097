"""Our own archive: JSON Lines, a line for the format, then one for each document, conversation and note. Pure.

Each entry of an exported JSON text is measured before it is parsed. Untyped parts of a conversation are checked for
what they must contain to be displayed, and stored unchanged.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins

from rag_assistant.records.answers import Doubt, HistoryFigures, SearchData, Usage
from rag_assistant.records.archive import ArchivedDocument, ArchivedNote, Overrides, WholeConversation
from rag_assistant.records.base import Number
from rag_assistant.records.errors import InvalidRequest, MalformedBody
from rag_assistant.records.questions import AnswerOptions
from rag_assistant.records.validation import storable_value, visible


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    function: _Function
    id: str | None = None


class _Said(Struct):
    role: Literal["assistant", "tool"]
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    # Pictures attached to questions.
    images: Annotated[list[str], Meta(max_length=0)] = field(default_factory=list)


class _Source(Struct):
    doubts: list[Doubt] = field(default_factory=list)


class _Answer(Struct):
    messages: list[_Said] = field(default_factory=list)
    sources: list[_Source] = field(default_factory=list)
    history: HistoryFigures | None = None
    search: SearchData | None = None
    usage: Usage | None = None


class _Request(Struct):
    max_history_turns: Number | None = None
    document_ids: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    after: str | None = None
    before: str | None = None
    on_overflow: str | None = None
    options: AnswerOptions | None = None


class _Turn(Struct):
    answer: _Answer
    request: _Request = field(default_factory=_Request)
    others: dict[Any, _Answer] = field(default_factory=dict)


class OpenParts(Struct):
    """Those of a conversation. Anything not named here is unchecked."""

    turns: list[_Turn]


# A conversation of 25,000 messages has about a million values.
MAX_ENTRIES, MAX_VALUES, MAX_DEPTH = 100_000, 1_000_000, 500
# A string, possibly unterminated, or punctuation.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)
QUOTE, COMMA, END, OPENING, CLOSING = ord('"'), ord(","), ord("]"), frozenset(b"[{"), frozenset(b"]}")
ALLOWED = (
    "It must be conversations.json of ChatGPT or the zip file it came in, an export of Open WebUI's chats, or an "
    'archive made by "rag-assistant export".'
)


def pieces_of(content: bytes) -> Iterator[bytes]:
    """Yield the text of each entry of a list, or of a single other value.

    Raises MalformedBody, or InvalidRequest before yielding one that is too large.
    """
    text = content.strip()
    is_list = text[:1] == b"["
    depth = values = entries = begin = 0
    for token in TOKEN.finditer(text):
        at = token.start()
        sign = text[at]
        if sign == QUOTE:
            continue
        if sign in OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise MalformedBody("The file is nested too deeply.")
        elif sign in CLOSING:
            depth -= 1
        values += sign not in CLOSING
        if values > MAX_VALUES:
            raise InvalidRequest(f"A conversation in the file has more than {MAX_VALUES:,} values, the most allowed.")
        if is_list and depth == 1 and sign == COMMA:
            entries += 1
            if entries > MAX_ENTRIES:
                raise InvalidRequest(f"The file has more than {MAX_ENTRIES:,} entries, the most allowed.")
            yield text[begin + 1 : at]
            begin, values = at, 0
        elif is_list and depth == 0:
            if at + 1 < len(text) or sign != END:
                break
            if entries or text[begin + 1 : at].strip():
                yield text[begin + 1 : at]
            return
    yield text  # An unterminated list.


def parsed(content: bytes) -> Any:
    """Parse a value. Raises MalformedBody."""
    try:
        return json.loads(content.decode())
    except RecursionError as error:
        raise MalformedBody("The file is nested too deeply.") from error
    except UnicodeDecodeError as error:
        raise MalformedBody(f"The file is not UTF-8 text. {ALLOWED}") from error
    except ValueError as error:
        raise MalformedBody(f"The file is not JSON ({error}). {ALLOWED}") from error


MAX_HEAD_BYTES = 1000
FORMAT, VERSION = "rag-assistant", 1
FIRST_LINE = json.dumps({"format": FORMAT, "version": VERSION}) + "\n"
MAX_INT64 = 2**63 - 1
KINDS: dict[str, type[Any]] = {"document": ArchivedDocument, "conversation": WholeConversation, "note": ArchivedNote}


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
    if isinstance(record, ArchivedNote):
        if record.proposed and record.active:
            yield "active", "a proposed note is not active before a person accepts it"
        try:
            visible(record.text)
        except ValueError as error:
            yield "text", str(error)
    if not isinstance(record, WholeConversation):
        return
    whole, next_turn = record, len(record.turns) + 1
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
        answers = 1 + len(turn.others)  # Their versions count from 1.
        yield from _outside(f"turns[{n}].version", turn.version, 1, answers)
        if missing := set(range(1, answers + 1)) - {turn.version, *turn.others}:
            yield f"turns[{n}].others", f"of {answers} answers, none has the version {min(missing)}"
        if turn.rating is not None:
            yield from _outside(f"turns[{n}].rating.version", turn.rating.version, 1, answers)
        if turn.pinned and turn.excluded:
            yield f"turns[{n}].excluded", "a pinned turn is not excluded"
        if (turn.erased_at is None) == (turn.answer.status == "erased"):
            yield f"turns[{n}].erased_at", f'its status is "{turn.answer.status}"'


def _outside(where: str, number: int, first: int, last: int) -> Iterator[Contradiction]:
    if not first <= number <= last:
        yield where, f"{number} is not from {first} to {last}"
