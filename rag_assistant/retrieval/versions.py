"""Prefer, among passages that say the same in several versions, the one valid at the time a question is about. Pure.

A question without a word for a time ("current", "in 2023") changes nothing.
"""

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache, reduce
from itertools import islice
from pkgutil import get_data
from typing import TypeVar

from msgspec.structs import replace

from rag_assistant.records import Passage, Source
from rag_assistant.retrieval.dates import MONTH_NAME, YEAR, iso_dates
from rag_assistant.retrieval.tokenize import search_words

Dated = TypeVar("Dated", Passage, Source)

WORDS = json.loads(get_data(str(__package__), "versions.json") or b"")
# Chinese has no blanks, and Arabic writes short words together with the next one. The last two precede a date.
CURRENT, LAST_YEAR, NEXT_YEAR, FROM_YEAR_TO_YEAR, OLD, DRAFT, SINCE, BEFORE = (
    re.compile(rf"(?<![A-Za-zÀ-ÿ])(?:{'|'.join(WORDS[name])})(?![A-Za-zÀ-ÿ]){end}", re.IGNORECASE)
    for names, end in (("current last_year next_year from_year_to_year old draft", ""), ("since before", r"\Z"))
    for name in names.split()
)
# In the names of documents: dates, then versions, then numbers and letters. They tell minutes and invoices apart.
EXTENSION, LETTER = re.compile(r"(?<=.)\.[^\W\d]\w{0,4}\Z"), "A-Za-zÀ-ÿء-ي"
DATE = re.compile(rf"{WORDS['date_in_name']}|(?:(?<!\d)\d{{1,2}}(?:st|nd|rd|th|\.)?[ -])?{MONTH_NAME}", re.IGNORECASE)
VERSION = re.compile(
    rf"(?<![{LETTER}])(?:(?:{OLD.pattern}|{DRAFT.pattern}|{WORDS['version_word']})(?![{LETTER}])"
    rf"(?:{WORDS['version_number']})?|v{WORDS['version_number']})",
    re.IGNORECASE,
)
COPY = re.compile(rf"(?<![{LETTER}])(?:{WORDS['copy']})(?![{LETTER}])|\(\d{{1,3}}\)", re.IGNORECASE)
NUMBER = re.compile(WORDS["number_in_name"])
# A "Training policy" is a policy.
OF_A_TIME = re.compile(rf"\A(?!.*(?:{WORDS['rules']})\b).*(?:{WORDS['of_a_time']})\b")
# Dates that a document itself has can be compared with each other; others only with those of one kind.
OWN_DATES = ("person", "text", "name", "properties")
# Two passages are versions of one text if the shorter one shares this much of its words. Found on one half of the pairs
# of bench/retrieval/versions.py, measured on the other.
MIN_SHARED = 0.6
# And copies if they differ by at most this share of their words.
MAX_CHANGED = 0.1
MAX_COMPARED = 20


def time_of(question: str, today: date) -> str | None:
    """Return the time that a question is about, in ISO 8601: today for "current", ``None`` without such a word."""
    dates = [(match.start(), iso) for match, iso in iso_dates(question, "")]
    dates = dates or [(match.start(), match[1]) for match in YEAR.finditer(question)]
    if not dates:
        years = (LAST_YEAR, -1), (NEXT_YEAR, 1)
        year = next((str(today.year + n) for pattern, n in years if pattern.search(question)), None)
        if year and not FROM_YEAR_TO_YEAR.search(question):
            return year
        return today.isoformat() if CURRENT.search(question) else None
    start, iso = dates[-1]
    before = question[:start].rstrip()
    if SINCE.search(before):
        return max(today.isoformat(), iso)
    if BEFORE.search(before):
        return (date.fromisoformat(f"{iso}-01-01"[:10]) - timedelta(days=1)).isoformat()
    return iso


def without_times(question: str) -> str:
    """Return a question without its words for a time that is near."""
    return reduce(lambda rest, pattern: pattern.sub(" ", rest), (CURRENT, LAST_YEAR, NEXT_YEAR), question)


def versions_in(passages: Sequence[Dated], time: str | None) -> list[tuple[Dated, list[Dated]]]:
    """Return the passages that are valid at a time, each with all versions of its text, best passage first.

    That is the newest dated no later that isn't called old, the better of equal ones.
    """
    groups: list[list[Dated]] = []
    for one in islice(passages, MAX_COMPARED) if time else ():
        group = next((group for group in groups if all(_is_version(one, other) for other in group)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    # "~" comes after every digit: what is dated 2023-05 is of 2023.
    then = [(group, [one for one in group if (one.date or "") < f"{time}~"]) for group in groups if len(group) > 1]
    return [
        (max(valid, key=lambda one: (not is_called_old(one), one.date or "")), group) for group, valid in then if valid
    ]


def preferred(passages: Sequence[Passage], time: str | None) -> list[Passage]:
    """Return the passages with those valid at a time in front of their other versions; none is left out."""
    ranked = list(passages)
    for valid, group in versions_in(passages, time):
        if valid is not group[0]:
            ranked.remove(valid)
            ranked.insert(ranked.index(group[0]), replace(valid, score=max(valid.score, group[0].score)))
    return ranked


def without_other_versions(sources: Sequence[Source], time: str | None) -> list[Source]:
    """Return the sources without versions of a text that weren't valid at a time."""
    others = {one.n for valid, group in versions_in(sources, time) for one in group if one is not valid}
    return [one for one in sources if one.n not in others]


def _is_version(one: Dated, other: Dated) -> bool:
    """Return whether two passages are of versions of one document and say the same, and it is known which is newer."""
    is_comparable = one.date_from == other.date_from == "file" or {one.date_from, other.date_from} <= set(OWN_DATES)
    is_known = (is_comparable and one.date and other.date) or is_called_old(one) != is_called_old(other)
    if not is_known or not are_versions(one, other):
        return False
    words, others = (set(search_words(each.text)) for each in (one, other))
    return len(words & others) >= MIN_SHARED * max(1, min(len(words), len(others)))


def is_called_old(one: Dated) -> bool:
    """Return whether a document's name says that it isn't in force; a person's date for it counts more."""
    return one.date_from != "person" and bool(OLD.search(one.document) or DRAFT.search(one.document))


def are_versions(one: Dated, other: Dated) -> bool:
    """Return whether two passages are of documents that are called like versions of one: by other dates or versions.

    Files of one name, and "copy (1)", may be of two folders or persons. Theirs differ by a figure or few small words.
    """
    (named, *times), (other_named, *other_times) = map(_parts_of, (one.document, other.document))
    is_of_a_time = OF_A_TIME.search(named[0]) is not None
    if one.document_id == other.document_id or named != other_named or not any(named):
        return False
    if times != other_times:
        return not (is_of_a_time and times[0] != other_times[0])
    words, others = (set(re.findall(r"\w+", each.text)) for each in (one, other))
    is_changed = len(words ^ others) <= max(2, MAX_CHANGED * len(words | others))
    return is_changed and not is_of_a_time and not any(map(str.istitle, words ^ others))


def name_words(name: str) -> Sequence[str]:
    """Return the words in a document's name, or a heading, that say what it is about."""
    return search_words(_parts_of(name)[0][0])


@lru_cache(maxsize=1024)
def _parts_of(name: str) -> tuple[tuple[str, frozenset[str]], frozenset[str], frozenset[str]]:
    """Return the words and numbers in a document's name, the dates, and the versions."""
    name = COPY.sub(" ", EXTENSION.sub("", name).replace("_", " ")).title()
    without_dates = DATE.sub(" ", name)
    rest = VERSION.sub(" ", without_dates).lower()
    words = " ".join(re.findall(r"[^\W\d_]+", NUMBER.sub(" ", rest)))
    numbers, versions = NUMBER.findall(rest), VERSION.findall(without_dates)
    return (words, frozenset(numbers)), frozenset(DATE.findall(name)), frozenset(versions)
