"""The bill of a summary: what it may lose of the turns it replaces, and what is kept word for word. Pure.

Kept lines are at the end of the summary, and stay unchanged when it is extended or shortened.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pkgutil import get_data
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from rag_assistant.conversations.summary_lines import LED, sentences_in
from rag_assistant.history import estimate_tokens
from rag_assistant.records import PastTurn
from rag_assistant.records.errors import InvalidRequest
from rag_assistant.retrieval.claims import NAME
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import OPTIONAL, STOP_WORDS, search_words

HEADING = "Kept word for word:"
# Kept lines may take this share of a summary's limit.
KEPT_SHARE = 0.5
TICKED_KINDS = frozenset({"number", "date", "file"})
Speaker = Literal["user", "assistant"]
Keep = Literal["always", "ticked", "offered"]
RANKS: tuple[Keep, ...] = ("always", "ticked", "offered")


class BillItem(Struct, frozen=True):
    """A sentence that a summary may lose, with the facts in it that can't be paraphrased.

    What a person forbids or asks for (``is_instruction``) is kept ``always``, as far as there is room; other sentences
    if they are ``ticked``.
    """

    id: str
    turn: int
    speaker: Speaker
    text: str
    facts: tuple[str, ...]
    is_instruction: bool
    keep: Keep

    @property
    def line(self) -> str:
        """The item as a line of a summary."""
        return f"Turn {self.turn}, {self.speaker.capitalize()}: {self.text}"


class Wishes(Struct, frozen=True):
    """Options for a summary: the ids to keep, ``None`` for those ticked by default; the focus."""

    keep: Sequence[str] | None = None
    hint: str = ""


AS_TICKED = Wishes()


class Bill(Struct, frozen=True):
    """What a summary of some turns may lose, in order; ``max_tokens`` of it can be kept."""

    turns: tuple[int, ...]
    items: tuple[BillItem, ...]
    max_tokens: int

    def lines_to_keep(self, ids: Sequence[str] | None) -> list[str]:
        """Return the lines to keep: those always kept, and the given ids or those ticked. Raises InvalidRequest."""
        item_ids = {one.id for one in self.items}
        if unknown := [one for one in ids or () if one not in item_ids]:
            raise InvalidRequest(f'keep has "{unknown[0]}", which is not on the bill of this conversation.')
        wanted = {one.id for one in self.items if one.keep == "ticked"} if ids is None else set(ids)
        lines = [one.line for one in self.items if one.keep == "always" or one.id in wanted]
        if ids is not None and (tokens := _tokens(lines)) > self.max_tokens:
            raise InvalidRequest(
                f"Your selection has about {tokens:,} tokens; a summary has room for {self.max_tokens:,}. Select less."
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the bill as in the API."""
        return {
            "first_turn": self.turns[0],
            "last_turn": self.turns[-1],
            "max_tokens": self.max_tokens,
            "items": [asdict(one) | {"tokens": _tokens([one.line])} for one in self.items],
        }


def bill_of(turns: Sequence[PastTurn], record: str, max_tokens: float, more: str = "") -> Bill:
    """Return the bill of a summary of some turns that extends a ``record`` of earlier turns.

    Each fact is on it once, unless the record or what will be added to it (``more``) has it. People's statements come
    before answers; the newest of each are ticked first.
    """
    there = f"{record}\n{more}"
    seen = {text.casefold() for line in there.split("\n") for _, text in facts_in(line)}
    seen |= {_said_in(line) for line in divided(record)[1]}
    items: list[BillItem] = []
    spoken = [(turn.number, nth, one) for turn in turns for nth, one in enumerate(sentences_in(turn), 1)]
    for number, nth, one in sorted(spoken, key=lambda each: not each[2].by_person):
        facts = {text: kind for kind, text in facts_in(one.text)}
        # The same number may be about two things.
        new = {
            text: kind
            for text, kind in facts.items()
            if text.casefold() not in seen or (one.by_person and kind in TICKED_KINDS)
        }
        asks = one.by_person and is_instruction(one.text)
        if one.text.casefold() in seen or not (asks or (new and one.text not in there)):
            continue
        seen |= {text.casefold() for text in (one.text, *facts)}
        is_ticked = one.by_person and not TICKED_KINDS.isdisjoint(new.values())
        keep: Keep = "always" if asks else "ticked" if is_ticked else "offered"
        speaker: Speaker = "user" if one.by_person else "assistant"
        items.append(BillItem(f"{number}-{nth}", number, speaker, one.text, tuple(facts), asks, keep))
    room = left = int(KEPT_SHARE * max_tokens) - _tokens(divided(record)[1])
    fitting: list[BillItem] = []
    for item in sorted(items, key=lambda item: (RANKS.index(item.keep), -item.turn)):
        tokens = 0 if item.keep == "offered" else _tokens([item.line])
        # The oldest that exceed the room are only offered.
        fitting.append(item if tokens <= left else replace(item, keep="offered"))
        left -= tokens if tokens <= left else 0
    in_order = sorted(fitting, key=lambda item: [int(part) for part in item.id.split("-")])
    return Bill(tuple(turn.number for turn in turns), tuple(in_order), max(0, room))


def divided(record: str) -> tuple[str, list[str]]:
    """Return a summary in two parts: the record, and the lines kept word for word."""
    text, _, verbatim = f"\n{record}".partition(f"\n{HEADING}\n")
    return text.strip("\n"), verbatim.split("\n") if verbatim else []


def joined(text: str, verbatim: Iterable[str]) -> str:
    """Return a summary made of a record and the lines kept word for word, without duplicate sentences."""
    lines: dict[str, str] = {}
    for line in verbatim:
        lines.setdefault(_said_in(line), line)
    own = filter(None, (_without(line, lines) for line in text.split("\n"))) if lines else [text]
    return "\n".join([*own, *([HEADING, *lines.values()] if lines else [])])


def _without(line: str, verbatim: Collection[str]) -> str:
    """Return a line of a record without the sentences that are kept anyway."""
    if line.casefold() in verbatim:
        return ""
    lead = LED.match(line)
    sentences = split_text(line[lead.end() :] if lead else line)
    left = [one for one in sentences if one.casefold() not in verbatim]
    return line if len(left) == len(sentences) else f"{lead[0] if lead else ''}{' '.join(left)}" if left else ""


def _said_in(line: str) -> str:
    return LED.sub("", line).casefold()


def _tokens(lines: Iterable[str]) -> int:
    return sum(map(estimate_tokens, lines))


FactKind = Literal["number", "date", "name", "file"]

_DATA = tomllib.loads((get_data(str(__package__), "facts.toml") or b"").decode())
MONTHS, DAYS = "|".join(_DATA["months"]), "|".join(_DATA["days"])
FORMS = {
    name: re.compile(
        "|".join(some).replace("MONTHS", MONTHS).replace("DAYS", DAYS).replace("SURNAMES", _DATA["surnames"])
    )
    for name, some in _DATA["forms"].items()
}
FIRST_NAME = re.compile(_DATA["first_name"])
REQUEST = re.compile("|".join(_DATA["request"]), re.IGNORECASE)
BY_FORM: tuple[FactKind, ...] = ("file", "date", "number")
# One of each language: one of all would be tried in all its parts at each letter.
INSTRUCTIONS = [
    re.compile("|".join(some).replace("CLAUSE", _DATA["clause"]), re.IGNORECASE)
    for some in _DATA["instructions"].values()
]


def is_instruction(sentence: str) -> bool:
    """Return whether a person forbids something or sets a rule; a question counts if it is a request."""
    if sentence.rstrip().endswith(("?", "？", "؟")) and not REQUEST.search(sentence):  # noqa: RUF001
        return False
    plain = OPTIONAL.sub("", sentence)
    return any(pattern.search(plain) for pattern in INSTRUCTIONS)


def facts_in(sentence: str) -> Iterator[tuple[FactKind, str]]:
    """Yield the facts in a sentence that are recognisable by their form, each with its kind."""
    for kind in BY_FORM:
        yield from ((kind, match[0].strip()) for match in FORMS[kind].finditer(sentence))
        sentence = FORMS[kind].sub("\u2026", sentence)
    yield from (("name", name) for name in _names(sentence))


def _names(sentence: str) -> Iterator[str]:
    words = search_words(sentence)
    is_german = language_of(words, min_common=1) == "german"
    yield from () if is_german else NAME.findall(sentence)
    for form in ("name_in_chinese", "name_in_arabic", "name_in_german" if is_german else "name_with_title"):
        yield from (match[0] for match in FORMS[form].finditer(sentence))
    first = FIRST_NAME.match(sentence)
    if first and words and words[0] not in STOP_WORDS:
        yield first[1]
