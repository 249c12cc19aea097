"""The kinds of values that questions ask for, in English and German; value_kinds.json has their patterns. Pure."""

import re
from collections.abc import Sequence
from pkgutil import get_data

from msgspec.json import decode as from_json

from rag_assistant.retrieval.terms import PART_NUMBER
from rag_assistant.retrieval.tokenize import search_words

_DATA = from_json(get_data(str(__package__), "value_kinds.json") or b"")
# What asks for a kind, and what a value of it looks like: a date, a figure, a name, a permission ...
BY_QUESTION_WORD, BY_NAME = (
    [(re.compile(asks, re.IGNORECASE), re.compile(value, re.IGNORECASE)) for asks, value in _DATA[key]]
    for key in ("by_question_word", "by_name")
)
# A code is a few letters and then figures, such as E-04.
CODE = re.compile(r"(?a:\b[a-z]{1,3}-?\d{2,}\b)")
SEPARATORS = re.compile("[-\u2011/\\s]")


def asked_kind(question: str) -> re.Pattern[str] | None:
    """Return the pattern for the kind of answer a question asks for, ``None`` if there is none."""
    return next((value for asks, value in BY_QUESTION_WORD if asks.match(question)), None)


def has_value(kind: re.Pattern[str], text: str, question: str) -> bool:
    """Return whether a text has a value of a kind that the question doesn't mention."""
    words = set(search_words(question))
    return any(not words.issuperset(search_words(match[0])) for match in kind.finditer(text))


def has_named_kind(question: str, texts: Sequence[str]) -> bool:
    """Return whether some texts have what a question asks for by its name: a telephone number, the code E-04."""
    values = [value for asks, value in BY_NAME if asks.search(question)]
    codes = [SEPARATORS.sub("", one) for some in (CODE, PART_NUMBER) for one in some.findall(question.lower())]
    letters = SEPARATORS.sub("", " ".join(texts).lower()) if codes else ""
    return all(one in letters for one in codes) and all(any(map(value.search, texts)) for value in values)
