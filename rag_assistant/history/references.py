"""A receipt as it is kept: references in the place of what is kept elsewhere, and back again, byte for byte.

Among the messages of a request, ``[3, 7]`` are all messages of the turns 3 to 7, ``[8, 1, 2]`` the messages 1 and 2 of
turn 8, and ``["key"]`` is a list of more such entries. A text is ``{"~": [...]}``, in pieces: as it is, ``["key"]`` a
shared text, ``[8, 0]`` the text of message 0 of turn 8, both with a number behind where only so many characters of it.
A shared text is found by its hash; what was said in a turn never changes within one version of its answer.
Whatever is no reference stands for itself, so a receipt from before there were any is read as it is.

Pure: no Flask, no SQL, no network, no clock.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from rag_assistant.records import EXCHANGES, Message, PastTurn, Turn, runs_of, text_in

Receipt = dict[str, Any]

PIECES, AS_JSON = "~", "~json"
# What is shorter costs hardly more than a reference to it; a hash is.
MIN_SHARED_CHARS = 72
# The same for what is found in a turn.
MIN_FOUND_CHARS = 16
# What most receipts say is not kept with each of them.
UNSAID: Receipt = {
    "quotes": False,
    "local": False,
    "earlier_requests": [],
    "rewrite": None,
    "left_out": [],
    "explanation": None,
    "results_shortened": 0,
    "results_cut": 0,
    "iterations_kept": 0,
    "iterations_dropped": 0,
    "recalled_turns": [],
}
# A longer list of entries is cut behind those whose hash begins so: most of the pieces are the same as the last time.
MAX_ENTRIES = 16
ENDS_A_GROUP = tuple("ABCDEFGH")
QUESTION, ANSWER = 0, -1
# What no column for texts takes.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@lru_cache(maxsize=256)
def key_of(text: str) -> str:
    """Return the key of a shared text: 132 bits of its SHA-256. Each is asked for several times."""
    return urlsafe_b64encode(sha256(text.encode(errors="surrogatepass")).digest())[:22].decode()


class Packed(NamedTuple):
    """A receipt with references: to ``texts``, the shared ones by their keys, and to what was said in ``turns``."""

    body: Receipt
    texts: dict[str, str]
    turns: set[int]


def packed(
    receipt: Receipt,
    turn: Turn,
    past: Sequence[PastTurn] = (),
    recalled: Sequence[PastTurn] = (),
    versions: Mapping[int, int] | None = None,
) -> Packed:
    """Return the receipt of a turn with references.

    ``past`` are turns that it may have been sent whole, ``recalled`` others of which the question and the answer may be
    quoted in it. ``versions`` are those of their answers that are not the first.
    """
    packer = _Packer(turn, past, recalled)
    unsaid = UNSAID | {"prefix_sha256": receipt.get("prefix_sha256")}
    said = {name: value for name, value in receipt.items() if name not in unsaid or value != unsaid[name]}
    if receipt.get("search") is not None and receipt["search"] == turn.search:
        said["search"] = True
    body = {name: packer.value(name, value) for name, value in said.items()}
    others = {str(number): version for number, version in (versions or {}).items() if number in packer.past_turns}
    return Packed(body | ({"versions": others} if others else {}), packer.texts, packer.past_turns)


def unpacked(
    body: Receipt,
    search: Mapping[str, Any] | None,
    said_in: Callable[[int], Sequence[Message]],
    text_of: Callable[[str], str],
) -> Receipt:
    """Return a receipt as it was packed. ``search`` is how the documents were searched for its turn.

    ``prefix_sha256`` is that of the JSON of the messages before the question: where two requests have the same one, a
    provider can serve these messages from its cache. By a hash, what it was made of can be guessed: once something was
    erased from a receipt, it has none.
    """

    def entries(found: Sequence[Any]) -> Iterator[Message]:
        for entry in found:
            match entry:
                case [str(key)]:
                    yield from entries(json.loads(text_of(key)))
                case [first, last]:
                    for number in range(first, last + 1):
                        yield from said_in(number)
                case [number, first, last]:
                    yield from said_in(number)[first : last + 1]
                case _:
                    yield value("", entry)

    def piece(found: Any) -> str:
        match found:
            case [str(key), *length]:
                text = text_of(key)
            case [number, position, *length]:
                text = text_in(said_in(number)[position])
            case _:
                return str(found)
        return text[: length[0]] if length else text

    def value(name: str, found: Any) -> Any:
        if name == "messages" and isinstance(found, list):
            return list(entries(found))
        if name == "kept_turns":
            return _numbers(found)
        if isinstance(found, dict):
            if found.keys() == {PIECES}:
                return "".join(map(piece, found[PIECES]))
            if found.keys() == {AS_JSON}:
                return json.loads(text_of(found[AS_JSON]))
            return {inner: value(inner, one) for inner, one in found.items()}
        return [value("", one) for one in found] if isinstance(found, list) else found

    unsaid = UNSAID if "prefix_messages" in body else {}  # Older and shorter ones say all that they have to say.
    receipt = unsaid | {name: value(name, found) for name, found in body.items() if name != "versions"}
    if body.get("search") is True:
        receipt["search"] = search
    if "prefix_messages" in receipt and "erased_turns" not in receipt:
        prefix = receipt["request"]["messages"][: receipt["prefix_messages"]]
        receipt["prefix_sha256"] = sha256(orjson.dumps(prefix)).hexdigest()
    return receipt


def keeps(kept_turns: Iterable[Any], number: int) -> bool:
    """Tell whether a turn is among the ``kept_turns`` of a packed receipt."""
    return any(run[0] <= number <= run[1] if isinstance(run, list) else run == number for run in kept_turns)


def references_in(value: Any, text_of: Callable[[str], str], name: str = "") -> Iterator[str | int]:
    """Yield the keys of all shared texts, and the numbers of all turns, to which a packed receipt refers."""
    if isinstance(value, dict):
        for inner, one in value.items():
            if inner == AS_JSON:
                yield one
            elif inner != "kept_turns":
                yield from references_in(one, text_of, inner)
    elif isinstance(value, list):
        for one in value:
            if name not in ("messages", PIECES) or not isinstance(one, list):
                yield from references_in(one, text_of)
            elif name == "messages" and len(one) == 2:
                yield from range(one[0], one[1] + 1)
            else:
                yield one[0]
                if name == "messages" and isinstance(one[0], str):
                    yield from references_in(json.loads(text_of(one[0])), text_of, name)


def as_stored(message: Message) -> Message:
    """Return a message with its fields in the order in which they come back from storage."""
    return {"role": message["role"], "content": message.get("content")} | message


def _numbers(runs: Iterable[Any]) -> list[int]:
    whole = (run if isinstance(run, list) else [run, run] for run in runs)
    return [number for first, last in whole for number in range(first, last + 1)]


class _Packer:
    """Packs one receipt; ``texts`` and ``past_turns`` are what it refers to."""

    def __init__(self, turn: Turn, past: Sequence[PastTurn], recalled: Sequence[PastTurn]) -> None:
        self.texts: dict[str, str] = {}
        self.past_turns: set[int] = set()
        self._own = turn.number
        self._past = past
        self._steps = [as_stored(message) for message in turn.iterations]
        self._of_sources = {key_of(one.text): one.text for one in turn.sources}
        known: list[tuple[str | None, list[Any]]] = [(text, [key]) for key, text in self._of_sources.items()]
        known.append((turn.question, [turn.number, QUESTION]))
        known += [(step["content"], [turn.number, n]) for n, step in enumerate(self._steps, 1)]
        for one in (*recalled, *past[-EXCHANGES:]):
            known += [(text_in(one.messages[n]), [one.number, n]) for n in (QUESTION, ANSWER)]
        # Each with the beginning by which it is found.
        self._known = [
            (text, text[:least], place) for text, place in known if text and len(text) >= (least := _min_chars(place))
        ]

    def value(self, name: str, value: Any) -> Any:
        """Return a value of a receipt, or what stands below that name in it, with references."""
        if name == "messages" and isinstance(value, list | tuple):  # In a run of turns it is a number.
            return self._folded(self._entries(value))
        if name == "kept_turns":
            return runs_of(value)
        if name == "tools" and value:
            return {AS_JSON: self._share(_as_json(value))}
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {inner: self.value(inner, one) for inner, one in value.items()}
        return [self.value("", one) for one in value] if isinstance(value, list | tuple) else value

    def _entries(self, messages: Sequence[Message]) -> list[Any]:
        entries: list[Any] = []
        n = next_turn = next_step = 0
        while n < len(messages):
            turn = self._whole_turn(messages, n, next_turn)
            if turn is not None:
                self._append_turn(entries, self._past[turn].number)
                n, next_turn = n + len(self._past[turn].messages), turn + 1
                continue
            rest = range(next_step, len(self._steps))
            step = next((k for k in rest if _same(messages[n], self._steps[k])), None)
            if step is None:
                entries.append(self.value("", messages[n]))
            else:
                entries.append([self._own, step + 1, step + 1])
                next_step = step + 1
            n += 1
        return entries

    def _whole_turn(self, messages: Sequence[Message], n: int, first: int) -> int | None:
        """Return which past turn, from index ``first`` on, stands whole at ``n`` among the messages."""
        if messages[n]["role"] == "user":
            for index in range(first, len(self._past)):
                said = self._past[index].messages
                if len(messages) >= n + len(said) and all(map(_same, messages[n : n + len(said)], said)):
                    return index
        return None

    def _append_turn(self, entries: list[Any], number: int) -> None:
        self.past_turns.add(number)
        if entries and isinstance(entries[-1], list) and len(entries[-1]) == 2 and entries[-1][1] == number - 1:
            entries[-1][1] = number
        else:
            entries.append([number, number])

    def _folded(self, entries: list[Any]) -> list[Any]:
        while len(entries) > MAX_ENTRIES:
            ends = {n for n, entry in enumerate(entries, 1) if key_of(_as_json(entry)).startswith(ENDS_A_GROUP)}
            # Of neighbours only the first: each round leaves about half of the entries at most.
            cuts = sorted({0, len(entries), *(n for n in ends if n - 1 not in ends)})
            entries = [[self._share(_as_json(entries[start:end]))] for start, end in pairwise(cuts)]
        return entries

    def _text(self, text: str) -> Any:
        if len(text) < MIN_SHARED_CHARS or UNSTORABLE.search(text):
            return text
        pieces: list[Any] = [text]
        for known, beginning, place in self._known:
            if beginning in text:
                uncut, pieces = pieces, []
                for one in uncut:
                    pieces += _cut(one, known, beginning, place) if isinstance(one, str) else [one]
        return {PIECES: [self._piece(piece) for piece in pieces]}

    def _piece(self, piece: Any) -> Any:
        if isinstance(piece, str):
            return [self._share(piece)] if len(piece) >= MIN_SHARED_CHARS else piece
        if isinstance(piece[0], str):
            self.texts.setdefault(piece[0], self._of_sources[piece[0]])
        elif piece[0] != self._own:
            self.past_turns.add(piece[0])
        return piece

    def _share(self, text: str) -> str:
        key = key_of(text)
        self.texts[key] = text
        return key


def _same(sent: Message, stored: Message) -> bool:
    return sent is stored or (sent == stored and list(sent) == list(stored))


def _min_chars(place: list[Any]) -> int:
    return MIN_SHARED_CHARS if isinstance(place[0], str) else MIN_FOUND_CHARS


def _cut(piece: str, known: str, beginning: str, place: list[Any]) -> list[Any]:
    """Return a piece of a text, cut where a known text or its beginning stands in it."""
    pieces: list[Any] = []
    while (at := piece.find(beginning)) >= 0:
        length = _common_chars(piece[at : at + len(known)], known)
        pieces += [*([piece[:at]] if at else []), place if length == len(known) else [*place, length]]
        piece = piece[at + length :]
    return [*pieces, piece] if piece else pieces


def _common_chars(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
