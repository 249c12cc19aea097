"""Find what passages of a document's versions say differently about what a question asks. Pure.

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
from typing import Any

from msgspec import Struct

from rag_assistant.records.answers import Disagreement, Source
from rag_assistant.retrieval.claims import NEGATION, WORDS, lines_of, plain_number
from rag_assistant.retrieval.dates import YEAR, dates_in, iso_dates
from rag_assistant.retrieval.languages import COMMON_WORDS_OF, language_of, without_asking
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import STOP_WORDS, search_words, stem
from rag_assistant.retrieval.versions import OLD, OWN_DATES, are_versions, is_called_old, name_words, without_times

# Numbers, articles beside "no", what is no unit, labels of numbers.
NUMBERS: dict[str, int] = WORDS["numbers"]
NO_UNIT = "|".join([*NUMBERS, *WORDS["no_unit"].split()])
PARTS = {"NUMBERS": "|".join(NUMBERS), "NO_UNIT": NO_UNIT, **WORDS["units"]}
# "28 vacation" is part of "28 vacation days". What stands alone has the key or the column before it as its unit.
PATTERNS = {
    name: re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], text), re.IGNORECASE)
    for name, text in WORDS["patterns"].items()
}
# What a question asks, and what a value of the kind that it asks for looks like, behind its unit or its kind.
ASKS = {name: pattern for name, pattern in PATTERNS.items() if name.startswith("asks_")}
KINDS = {f"asks_{name}": PATTERNS[f"is_{name}"] for name in ("price", "amount", "when")}
MAX_BEFORE_CHARS, UNIT_CHARS = 14, 4

# A unit, "date" or "time"; and how much, or when.
Amount = tuple[str, Any]
# How many passages are read, how much of each, how many of its sentences, and how many of these are compared.
MAX_PASSAGES, MAX_PASSAGE_CHARS, MAX_SENTENCES, MAX_BEST = 12, 3_000, 12, 4
MAX_DISAGREEMENTS, MAX_ABOUT_CHARS = 3, 160
# The share of the question's content words that both sentences must have, of two both; and the share of their own words
# in common.
MIN_ASKED, MIN_ALIKE, MIN_IN_COMMON = 0.5, 0.8, 2


class _Sentence(Struct, frozen=True):
    """A sentence with its stems but for values, and all it may be about; the best are compared."""

    source: Source
    text: str
    stems: frozenset[str]
    about: frozenset[str]
    is_best: bool
    values: dict[Amount, str]
    negations: int


@lru_cache(maxsize=8)  # A request is built several times.
def disagreements(
    question: str, sources: tuple[Source, ...], time: str | None = None, today: str = ""
) -> tuple[Disagreement, ...]:
    """Return what sources of a document's versions state differently about a question, best sources first.

    ``time``, an ISO date or the beginning of one, is the time that the question is about.
    """
    passages = [one for one in sources[:MAX_PASSAGES] if one.turn is None]
    about = [one for one in passages if any(are_versions(one, other) for other in passages)]
    if not about:  # Most documents have one version, of which nothing is read.
        return ()
    asks = _Question(question)
    sentences = [sentence for source in about if asks.may_be_about(source) for sentence in asks.sentences_about(source)]
    groups: list[tuple[list[Source], str, dict[str, set[int]]]] = []
    for one, other in combinations([sentence for sentence in sentences if sentence.is_best], 2):
        values = {} if _are_apart(one, other) else asks.difference(one, other)
        if values and not any(_states(each.source.document_id, values, sentences) for each in (one, other)):
            pair = dict(zip(values, (one.source.n, other.source.n), strict=True))
            name = name_words(one.source.document)
            # What says it in other words may be the newest, too, and so may a copy.
            named = [each for each in passages if name_words(each.document) == name]
            alike = (some for of, _, some in groups if of == named and some.keys() & pair and _is_of(some, pair))
            group = next(alike, {})
            if not group:
                groups.append((named, _around(next(iter(pair)), one.text), group))
            for value, n in pair.items():
                group.setdefault(value, set()).add(n)
    return tuple(
        Disagreement(
            tuple(group), tuple(map(tuple, map(sorted, group.values()))), *_newest(group, named, time, today), about
        )
        for named, about, group in groups[:MAX_DISAGREEMENTS]
    )


def _around(value: str, sentence: str) -> str:
    """Return what a sentence says around a value, ``""`` if the value is all of it."""
    start = max(0, sentence.find(value) - MAX_ABOUT_CHARS // 2)
    part = sentence[start : start + MAX_ABOUT_CHARS]
    about = f"{'…' if start else ''}{part}{'…' if start + len(part) < len(sentence) else ''}"
    return "" if value == sentence else about


def _are_apart(one: _Sentence, other: _Sentence) -> bool:
    """Return whether two sentences aren't of two versions of a document, or are below other headings."""
    both = one.source, other.source
    if not are_versions(*both):
        return True
    years = [set(YEAR.findall(f"{each.document} {each.section}")) for each in both]
    paths = [[*map(name_words, each.section.split(" > "))] if each.section else [] for each in both]
    is_of_year = all(years) and years[0] != years[1] and PATTERNS["past"].search(one.text)
    return bool(is_of_year) or any(heading != another for heading, another in zip(*paths, strict=False))


def _states(document_id: int, values: Mapping[str, Amount | None], sentences: Sequence[_Sentence]) -> bool:
    """Return whether a document states all of some values, and so means two things by them."""
    own = [one for one in sentences if one.source.document_id == document_id]
    return all(
        any(amount in one.values if amount else value in one.text for one in own) for value, amount in values.items()
    )


def _is_of(group: Mapping[str, Set[int]], pair: Mapping[str, int]) -> bool:
    """Return whether two values may be of a group: no passage states two for the same thing."""
    return all(other == value or n not in ns for value, n in pair.items() for other, ns in group.items())


def _newest(
    group: Mapping[str, Set[int]], versions: Sequence[Source], time: str | None, today: str
) -> tuple[str | None, str | None]:
    """Return the value in the newest version, ``None`` if that is unknown: May 2024 is not older than 3 May 2024.

    If a time is asked about, or a version is for the future, that is the newest dated no later, with the time.
    When a file was changed can't be compared with the date that another document gives itself. What is called old isn't
    the newest, which needs no date to be known if it is the only other one.
    """
    values = {one.document_id: value for value, ns in group.items() for one in versions if one.n in ns}
    versions = [one for one in versions if one.date_from in OWN_DATES or not OLD.search(one.document)]
    is_only = len({one.document_id for one in versions}) == 1 and time in (None, today)
    is_known = all(one.own_date for one in versions) and len({one.date_from == "file" for one in versions}) == 1
    # "~" comes after every digit: what is dated 2023-05 is of 2023.
    dated = [(one.own_date or "", one.n, one) for one in versions if is_known or is_only]
    then = sorted(one for one in dated if one[0] < f"{time or today}~")
    iso, _, newest = then[-1] if then else ("", 0, None)
    value = values.get(newest.document_id) if newest else None
    if newest is None or value is None:
        return None, None
    when = time or (today if len(then) < len(versions) else None)
    others = [date for date, _, one in then if values.get(one.document_id) != value]
    # What came into force in the course of 2023 isn't all that was in force in 2023.
    is_unclear = bool(when) and iso.removeprefix(when or "").replace("-01", "").startswith("-")
    is_unclear |= is_called_old(newest) or any(map(iso.startswith, others))
    return (None, None) if others and is_unclear else (value, when if iso else None)


class _Question:
    """What a question asks about, and which kinds of values would answer it."""

    def __init__(self, question: str) -> None:
        # A time chooses among versions, and is nowhere in their sentences.
        timeless = without_times(PATTERNS["past"].sub(" ", question))
        words = [word for word in search_words(timeless) if not YEAR.fullmatch(word)]
        self._common = STOP_WORDS.union(WORDS["articles"].split(), COMMON_WORDS_OF.get(language_of(words), ()))
        self._words = self._stems(without_asking(words)) - set(map(stem, WORDS["no_unit"].split()))
        self._min_words = max(min(2, len(self._words)), ceil(MIN_ASKED * len(self._words)), 1)
        self._asks = {name for name, asking in ASKS.items() if asking.search(question)}
        self._kinds = self._asks & KINDS.keys()

    def _stems(self, words: Sequence[str]) -> frozenset[str]:
        return frozenset(stem(word) for word in words if word not in self._common)

    def may_be_about(self, source: Source) -> bool:
        """Return whether enough of the question's words are anywhere in a source: most have too few."""
        return len(self._words & (self._stems(search_words(source.text)) | self._origin(source))) >= self._min_words

    def _origin(self, source: Source) -> frozenset[str]:
        """Return the words that a source's document and section are called by."""
        return self._stems([*name_words(source.document), *name_words(source.section or "")])

    def sentences_about(self, source: Source) -> Iterator[_Sentence]:
        """Yield the sentences of a source that have words of the question, those with the most first."""
        origin = self._origin(source)
        lines = lines_of(source.text[:MAX_PASSAGE_CHARS])
        pieces = [(self._stems(search_words(text)), text) for line in lines for text in split_text(line)]
        # What introduces the others is about the question, but says nothing by itself.
        lead = [stems for stems, text in pieces[:1] if len(pieces) > 1 and not text.endswith((".", "!", "?"))]
        best = max((len(self._words & stems) for stems, _ in pieces[len(lead) :]), default=0)
        pieces = sorted(pieces, key=lambda one: -len(self._words & one[0]))
        for n, (stems, text) in enumerate(pieces[:MAX_SENTENCES]):
            shared, about = len(self._words & stems), stems.union(origin, *lead)
            if shared >= min(best, 1):
                values, rest = values_in(text)
                rest, negations = NEGATION.subn(" ", rest)
                is_best = shared >= best and n < MAX_BEST and len(self._words & about) >= self._min_words
                own = self._stems(search_words(rest))
                yield _Sentence(source, text.rstrip(" ."), own, about, is_best, values, negations)

    def difference(self, one: _Sentence, other: _Sentence) -> dict[str, Amount | None]:
        """Return the two values in which two sentences differ; none if they don't, or differ in anything else."""
        first, second, common = one.stems - other.stems, other.stems - one.stems, one.stems & other.stems
        if len(self._words & one.about & other.about) < self._min_words or self._words & (first | second):
            return {}
        if bool(PATTERNS["past"].search(one.text)) != bool(PATTERNS["past"].search(other.text)):
            return {}  # What was is not what is.
        left, right = one.values.keys() - other.values.keys(), other.values.keys() - one.values.keys()
        denies, asks_who = one.negations != other.negations, "asks_who" in self._asks
        if first and second:
            names = _names(one, first), _names(other, second)
            is_named = asks_who and common and not (left or right or denies) and all(names)
            return dict.fromkeys(names) if is_named else {}
        is_alike = len(common) >= max(MIN_IN_COMMON, MIN_ALIKE * len(one.stems | other.stems))
        if len(left) == len(right) == 1 and not (denies or asks_who) and (is_alike or not (first or second)):
            (amount,), (another,) = left, right
            values: dict[str, Amount | None] = {one.values[amount]: amount, other.values[another]: another}
            is_asked = all(KINDS[name].search(f"{amount[0]} {value}") for name in self._kinds for value in values)
            is_another = amount[0] == another[0] and is_asked and not may_be_one(amount, another)
            is_own = amount[0] == "date" and (_is_dated(one, amount) or _is_dated(other, another))
            return values if is_another and not is_own else {}
        is_denial = {one.negations, other.negations} == {0, 1} and not (first or second or left or right)
        return dict.fromkeys((one.text, other.text)) if "asks_whether" in self._asks and is_denial else {}


def _is_dated(sentence: _Sentence, amount: Amount) -> bool:
    """Return whether a date in a sentence is its document's own, such as that of a contract, or of its print."""
    value = sentence.values[amount]
    iso = next((iso for _, iso in iso_dates(value, "")), value)
    return iso.startswith(sentence.source.own_date or "-") or PATTERNS["dated"].search(sentence.text) is not None


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
            elif not PATTERNS["whole"].fullmatch(parts.get("unit") or ""):
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
        before = text[max(0, match.start("number") - MAX_BEFORE_CHARS) : match.start("number")].rstrip("-")
        unit = match["currency"] or match["unit"] or (":" if PATTERNS["key"].search(before) else "")
        if unit and not PATTERNS["label"].search(before):
            number = match["number"].lower()
            digits = str(NUMBERS.get(number) or plain_number(number))
            yield match, (stem(unit.lower())[:UNIT_CHARS], "-" * match[0].split(match["number"])[0].count("-") + digits)
