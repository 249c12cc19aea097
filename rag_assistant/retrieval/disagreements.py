"""Find what passages of different documents say differently about what a question asks. Pure.

Two sentences disagree if they say the same in the same words, but for one figure with its unit, date, time, name or
"not". Which is right isn't decided, and a false alarm is worse than silence (bench/retrieval/README.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import combinations
from math import ceil

from msgspec import Struct

from rag_assistant.records.answers import Disagreement, Source
from rag_assistant.retrieval.claims import LINE, NEGATION
from rag_assistant.retrieval.languages import COMMON_WORDS_OF, language_of, without_asking
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import STOP_WORDS, search_words, stem
from rag_assistant.retrieval.values import PATTERNS, WORDS, Amount, may_be_one, values_in

# How many passages are compared, how much of each, and how many of its sentences.
MAX_PASSAGES, MAX_PASSAGE_CHARS, MAX_SENTENCES = 12, 3_000, 4
MAX_LEAD_CHARS, MAX_DISAGREEMENTS = 80, 3
# The share of the question's content words that both sentences must have, and the share of their own words in common.
MIN_ASKED, MIN_ALIKE, MIN_IN_COMMON = 0.5, 0.8, 2
# A key with its value is a line of its own.
BREAK = re.compile(rf"{LINE.pattern}|\n(?=[^\W\d_a-z][^\n:|]{{0,40}}:\s)")
# In the names of documents: years, other long numbers, and words for their kind or version.
YEAR, NUMBER = PATTERNS["year_in_name"], PATTERNS["number_in_name"]
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
def disagreements(question: str, sources: tuple[Source, ...]) -> tuple[Disagreement, ...]:
    """Return what sources of different documents state differently about a question, best sources first."""
    sources = tuple(one for one in sources[:MAX_PASSAGES] if one.turn is None)
    if len({one.document_id for one in sources}) < 2:
        return ()
    asks = _Question(question)
    sentences = [sentence for source in sources for sentence in asks.sentences_about(source)]
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
    dates = {one.n: (one.own_date or "", one.date_from == "file") for one in sources}
    return tuple(
        Disagreement(tuple(group), tuple(tuple(sorted(ns)) for ns in group.values()), _newer(group, dates))
        for group in groups[:MAX_DISAGREEMENTS]
    )


def _is_of(group: Mapping[str, Set[int]], pair: Mapping[str, int]) -> bool:
    """Return whether two values may be of a group: no passage states two for the same thing."""
    return all(other == value or n not in ns for value, n in pair.items() for other, ns in group.items())


def _newer(group: Mapping[str, Set[int]], dates: Mapping[int, tuple[str, bool]]) -> str | None:
    """Return the value in the newest documents, ``None`` if that is unknown: May 2024 is not older than 3 May 2024.

    When a file was changed can't be compared with the date that another document gives itself.
    """
    latest = sorted((max(dates[n][0] for n in numbers), value) for value, numbers in group.items())
    (date, _), (newest, value) = latest[-2:]
    is_known = latest[0][0] and len({dates[n][1] for numbers in group.values() for n in numbers}) == 1
    return value if is_known and not newest.startswith(date) else None


class _Question:
    """What a question asks about, and which kinds of values would answer it."""

    def __init__(self, question: str) -> None:
        words = search_words(question)
        self._common = STOP_WORDS.union(COMMON_WORDS_OF.get(language_of(words), ()))
        self._words = self._stems(without_asking(words))
        self._min_words = max(1, ceil(MIN_ASKED * len(self._words)))
        self._asks_whether = PATTERNS["asks_whether"].match(question)
        self._asks_who = PATTERNS["asks_who"].search(question)

    def _stems(self, words: Sequence[str]) -> frozenset[str]:
        return frozenset(stem(word) for word in words if word not in self._common)

    def sentences_about(self, source: Source) -> Iterator[_Sentence]:
        """Yield the sentences of a source that are the most about the question."""
        name = search_words(f"{source.document.rpartition('.')[0] or source.document} {source.section or ''}")
        origin = self._stems(list(filter(str.isalpha, name)))
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
        numbers = [set(NUMBER.findall(each.source.document)) for each in (one, other)]
        if all(numbers) and numbers[0] != numbers[1]:  # Two invoices.
            return True
        left, right = one.origin - other.origin - GENERIC, other.origin - one.origin - GENERIC
        return bool(left and right) or not self._words.isdisjoint(left | right)


def _names(sentence: _Sentence, stems: frozenset[str]) -> str:
    """Return the names of which some stems of a sentence are all, ``""`` if others are among them."""
    runs = [(match, set(map(stem, search_words(match)))) for match in PATTERNS["capitalised"].findall(sentence.text)]
    names = [(match, words) for match, words in runs if words & stems]
    return " ".join(match for match, _ in names) if stems <= {word for _, words in names for word in words} else ""
