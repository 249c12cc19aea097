"""Find what passages of different documents say differently about what a question asks. Pure.

Two sentences disagree if they say the same in the same words, but for one figure with its unit, date, time, name or
"not". A number without a unit is no figure: chapter 3 and chapter 4 are no contradiction, nor are two telephone
numbers. Which is right isn't decided, and a false alarm is worse than silence (bench/retrieval/README.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import combinations, product
from math import ceil
from pkgutil import get_data
from typing import Any

from msgspec import Struct
from msgspec.json import decode as from_json

from rag_assistant.records.answers import Disagreement, Source
from rag_assistant.retrieval.claims import DIGITS, LINE, NEGATION
from rag_assistant.retrieval.dates import dates_in, is_called_old
from rag_assistant.retrieval.languages import COMMON_WORDS_OF, language_of, without_asking
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import STOP_WORDS, search_words, stem

# Words and patterns in English and German: numbers, what is no unit, labels of numbers.
WORDS = from_json(get_data(str(__package__), "values.json") or b"")
NUMBERS: dict[str, int] = WORDS["numbers"]
PARTS = {"NUMBERS": "|".join(NUMBERS), "NO_UNIT": "|".join([*NUMBERS, *WORDS["no_unit"].split()])}
# "28 vacation" is part of "28 vacation days". What stands alone has the key or the column before it as its unit.
PATTERNS = {
    name: re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], text), re.IGNORECASE)
    for name, text in WORDS["patterns"].items()
}
MAX_BEFORE_CHARS, UNIT_CHARS = 14, 4
ZEROS = re.compile(r"[.,]00?$|(?<=[.,][1-9])0$")  # 49 and 49.00 are one figure, and so are 4.5 and 4.50.

# A unit, "date" or "time"; and how much, or when.
Amount = tuple[str, Any]
# How many passages are compared, how much of each, and how many of its sentences.
MAX_PASSAGES, MAX_PASSAGE_CHARS, MAX_SENTENCES = 12, 3_000, 4
MAX_LEAD_CHARS, MAX_DISAGREEMENTS = 80, 3
# The share of the question's content words that both sentences must have, of two both; and the share of their own words
# in common.
MIN_ASKED, MIN_ALIKE, MIN_IN_COMMON = 0.5, 0.8, 2
# A key with its value is a line of its own.
BREAK = re.compile(rf"{LINE.pattern}|\n(?=[^\W\d_a-z][^\n:|]{{0,40}}:\s)")
# In the names of documents: years, other long numbers, and words for their kind or version.
YEAR, DATE, NUMBER = PATTERNS["year_in_name"], PATTERNS["date_in_name"], PATTERNS["number_in_name"]
GENERIC = frozenset(map(stem, WORDS["generic"].split()))


class _Sentence(Struct, frozen=True):
    """A sentence with its stems but for values, those of its document's name and section, and all it may be about."""

    source: Source
    text: str
    stems: frozenset[str]
    origin: frozenset[str]
    about: frozenset[str]
    values: dict[Amount, str]
    negations: int


@lru_cache(maxsize=8)  # A request is built several times.
def disagreements(question: str, sources: tuple[Source, ...], time: str = "") -> tuple[Disagreement, ...]:
    """Return what sources of different documents state differently about a question, best sources first.

    Which is newer is told of documents dated no later than ``time``, an ISO date or the beginning of one.
    """
    about = [one for one in sources[:MAX_PASSAGES] if one.turn is None]
    if len({one.document_id for one in about}) < 2:
        return ()
    asks = _Question(question)
    about = list(filter(asks.may_be_about, about))
    sentences = [sentence for source in about for sentence in asks.sentences_about(source)]
    groups: list[dict[str, set[int]]] = []
    for one, other in combinations(sentences, 2):
        values = asks.difference(one, other) if one.source.document_id != other.source.document_id else None
        if values is not None and not asks.are_apart(one, other):
            pair = dict(zip(values, (one.source.n, other.source.n), strict=True))
            group = next((some for some in groups if some.keys() & pair and _is_of(some, pair)), {})
            if not group:
                groups.append(group)
            for value, n in pair.items():
                group.setdefault(value, set()).add(n)
    # "~" comes after every digit: what is dated 2023-05 is of 2023.
    dates = {one.n: (one.own_date or "", one.date_from == "file") for one in about}
    dates = {n: date for n, date in dates.items() if not time or date[0] < f"{time}~"}
    old = {one.n for one in about if is_called_old(one.document, one.date_from)}
    return tuple(
        Disagreement(tuple(group), tuple(tuple(sorted(ns)) for ns in group.values()), _newer(group, dates, old))
        for group in groups[:MAX_DISAGREEMENTS]
    )


def _is_of(group: Mapping[str, Set[int]], pair: Mapping[str, int]) -> bool:
    """Return whether two values may be of a group: no passage states two for the same thing."""
    return all(other == value or n not in ns for value, n in pair.items() for other, ns in group.items())


def _newer(group: Mapping[str, Set[int]], dates: Mapping[int, tuple[str, bool]], old: Set[int]) -> str | None:
    """Return the value in the newest documents, ``None`` if that is unknown: May 2024 is not older than 3 May 2024.

    When a file was changed can't be compared with the date that another document gives itself, and what is called old
    isn't the newest.
    """
    dated = {value: [dates[n] for n in numbers if n in dates] for value, numbers in group.items()}
    latest = sorted((max(date for date, _ in some), value) for value, some in dated.items() if some)
    if len(latest) < 2:
        return None
    (date, _), (newest, value) = latest[-2:]
    is_known = latest[0][0] and len({is_file for some in dated.values() for _, is_file in some}) == 1
    return value if is_known and not newest.startswith(date) and not group[value] <= old else None


class _Question:
    """What a question asks about, and which kinds of values would answer it."""

    def __init__(self, question: str) -> None:
        words = search_words(question)
        self._common = STOP_WORDS.union(COMMON_WORDS_OF.get(language_of(words), ()))
        self._words = self._stems(without_asking(words))
        self._min_words = max(min(2, len(self._words)), ceil(MIN_ASKED * len(self._words)), 1)
        self._asks_whether = PATTERNS["asks_whether"].match(question)
        self._asks_who = PATTERNS["asks_who"].search(question)

    def _stems(self, words: Sequence[str]) -> frozenset[str]:
        return frozenset(stem(word) for word in words if word not in self._common)

    def may_be_about(self, source: Source) -> bool:
        """Return whether enough of the question's words are anywhere in a source: most have too few."""
        return len(self._words & (self._stems(search_words(source.text)) | self._origin(source))) >= self._min_words

    def _origin(self, source: Source) -> frozenset[str]:
        """Return the words that a source's document and section are called by."""
        name = search_words(f"{source.document.rpartition('.')[0] or source.document} {source.section or ''}")
        return self._stems(list(filter(str.isalpha, name)))

    def sentences_about(self, source: Source) -> Iterator[_Sentence]:
        """Yield the sentences of a source that are the most about the question."""
        origin = self._origin(source)
        paragraphs = [" ".join(piece.split()) for piece in BREAK.split(source.text[:MAX_PASSAGE_CHARS])]
        pieces = [(self._stems(search_words(text)), text) for piece in paragraphs for text in split_text(piece)]
        # What introduces the others is about the question, but says nothing by itself.
        lead = [pieces[0][0]] if len(pieces) > 1 and len(pieces[0][1]) <= MAX_LEAD_CHARS else []
        best = max((len(self._words & stems) for stems, _ in pieces[len(lead) :]), default=0)
        for stems, text in [one for one in pieces if len(self._words & one[0]) >= best][:MAX_SENTENCES]:
            if len(self._words & (about := stems.union(origin, *lead))) >= self._min_words:
                values, rest = values_in(text)
                rest, negations = NEGATION.subn(" ", rest)
                own = self._stems(search_words(rest))
                yield _Sentence(source, text, own, origin, about, values, negations)

    def difference(self, one: _Sentence, other: _Sentence) -> tuple[str, str] | None:
        """Return the two values in which two sentences differ; ``None`` if they don't, or differ in anything else."""
        first, second, common = one.stems - other.stems, other.stems - one.stems, one.stems & other.stems
        if len(self._words & one.about & other.about) < self._min_words or self._words & (first | second):
            return None
        if bool(PATTERNS["past"].search(one.text)) != bool(PATTERNS["past"].search(other.text)):
            return None  # What was is not what is.
        left, right = one.values.keys() - other.values.keys(), other.values.keys() - one.values.keys()
        denies = one.negations != other.negations
        if first and second:
            names = _names(one, first), _names(other, second)
            return names if self._asks_who and common and not (left or right or denies) and all(names) else None
        is_alike = len(common) >= max(MIN_IN_COMMON, MIN_ALIKE * len(one.stems | other.stems))
        if len(left) == len(right) == 1 and not (denies or self._asks_who) and (is_alike or not (first or second)):
            (amount,), (another,) = left, right
            is_comparable = amount[0] == another[0] and not (amount[0] == "date" and PATTERNS["dated"].search(one.text))
            is_another = is_comparable and not may_be_one(amount, another)
            return (one.values[amount], other.values[another]) if is_another else None
        is_denial = {one.negations, other.negations} == {0, 1} and not (first or second or left or right)
        return (one.text, other.text) if self._asks_whether and is_denial else None

    def are_apart(self, one: _Sentence, other: _Sentence) -> bool:
        """Return whether the names of two documents may be those of two branches, products or years."""
        years = [set(YEAR.findall(f"{each.source.document} {each.source.section}")) for each in (one, other)]
        if all(years) and years[0] != years[1] and PATTERNS["past"].search(one.text):
            return True
        names = [each.source.document.rpartition(".")[0] or each.source.document for each in (one, other)]
        dates = [set(DATE.findall(name)) for name in names]
        if all(map(PATTERNS["of_a_time"].search, names)) and dates[0] - dates[1] and dates[1] - dates[0]:
            return True  # The minutes of two meetings.
        numbers = [set(NUMBER.findall(DATE.sub(" ", name.lower()))) for name in names]
        if numbers[0] - numbers[1] and numbers[1] - numbers[0]:  # Two invoices, flats, or cables.
            return True
        left, right = one.origin - other.origin - GENERIC, other.origin - one.origin - GENERIC
        return bool(left and right) or not self._words.isdisjoint(left | right)


def _names(sentence: _Sentence, stems: frozenset[str]) -> str:
    """Return the names of which some stems of a sentence are all, ``""`` if others are among them."""
    runs = [(match, set(map(stem, search_words(match)))) for match in PATTERNS["capitalised"].findall(sentence.text)]
    names = [(match, words) for match, words in runs if words & stems]
    return " ".join(match for match, _ in names) if stems <= {word for _, words in names for word in words} else ""


def values_in(text: str) -> tuple[dict[Amount, str], str]:
    """Return the values of a sentence as written, each by what it means, and the sentence without them."""
    values: dict[Amount, str] = {}
    for find in (_moments, _figures):
        for match, amount in find(text):
            parts, written = match.groupdict(), match[0]
            if parts.get("currency"):  # What follows an amount with its currency is no unit.
                written = written[: match.end("number") - match.start()]
            else:
                written += parts.get("behind") or ""
            values.setdefault(amount, written.strip(" .,"))
            text = text[: match.start()] + ";" * len(match[0]) + text[match.end() :]
    return values, text


def may_be_one(one: Amount, other: Amount) -> bool:
    """Return whether two dates or times may be the same, one of them less exact: "May 2024", "3/4/2024", "5:00"."""
    if one[0] == "time":
        (hour, minute), (another, minutes) = one[1], other[1]
        return bool(minute == minutes and (hour - another) % 12 == 0)
    if one[0] != "date":
        return False
    (days, year), (others, another_year) = one[1], other[1]
    pairs = product(days, others) if days and others else [((1, None), (1, None))]
    may_be_day = any(a[0] == b[0] and (a[1] == b[1] or None in (a[1], b[1])) for a, b in pairs)
    return may_be_day and (year == another_year or None in (year, another_year))


def _moments(text: str) -> Iterator[tuple[re.Match[str], Amount]]:
    for match, days in dates_in(text):
        yield match, ("date", (days, match["year"]))
    for match in PATTERNS["year"].finditer(text):
        if PATTERNS["before_year"].search(text, max(0, match.start() - MAX_BEFORE_CHARS), match.start()):
            yield match, ("date", (frozenset(), match[0]))
    for match in PATTERNS["time"].finditer(text):
        hour = int(match[1] or match[4])
        hour = hour % 12 + 12 * (match[3] in ("p", "P")) if match[3] else hour
        yield match, ("time", (hour, int(match[2] or match[5] or 0)))


def _figures(text: str) -> Iterator[tuple[re.Match[str], Amount]]:
    for match in PATTERNS["figure"].finditer(text):
        before = text[max(0, match.start("number") - MAX_BEFORE_CHARS) : match.start("number")]
        unit = match["currency"] or match["unit"] or (":" if PATTERNS["key"].search(before) else "")
        if unit and not PATTERNS["label"].search(before):
            number = match["number"].lower()
            digits = str(NUMBERS.get(number) or DIGITS.sub("", ZEROS.sub("", number)))
            yield match, (stem(unit.lower())[:UNIT_CHARS], digits)
