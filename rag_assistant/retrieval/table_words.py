"""The words of questions about tables, and the columns of a table as such a question may name them. Pure.

What the words mean, in English, German and French, is in table_words.json.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.retrieval.languages import COMMON_WORDS_OF
from rag_assistant.retrieval.table_query import DATA, MONTH, THOUSANDS, YEAR, date_of, figure, parsed, usable_rows
from rag_assistant.retrieval.tables import LIST, Table, Tables
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import STOP_WORDS

Kind = Literal["text", "key", "number", "date", "flag"]
# Whole words of a question, in which ``.*?`` is any ending.
ASKS = {
    name: re.compile(rf"\b(?:{words.replace('.*?', '[^ |]*')})\b", re.IGNORECASE)
    for name, words in DATA["asks"].items()
}
# What asks for everything, whatever the subject, and for all rows of a table with a property.
NEEDS_ALL = {name: re.compile(words, re.IGNORECASE) for name, words in DATA["needs_all"].items()}
# What doesn't say itself of what it asks.
POINTS_BACK = re.compile(DATA["points_back"], re.IGNORECASE)
# Parts of the names of columns.
NAMES = {name: re.compile(words, re.IGNORECASE) for name, words in DATA["names"].items()}
# A column's name has the one, a question the other.
UNITS = {word: words.split()[0] for words in DATA["units"] for word in words.split()}
FIGURE = r"((?:[€$£] )?\d[\d.,']*)(?! \d)"
DATE = (
    rf"(?:(?:the|dem|der|den|zum|le|year|jahr) )*(\d{{4}}-\d\d(?:-\d\d)?|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}|"
    rf"(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}})?(?: {YEAR.pattern}\b)?|{YEAR.pattern})\b"
    rf"(?! (?:{'|'.join(map(re.escape, UNITS))}))"
)
# What is compared: "date" or "number", the signs, and the words.
COMPARED: list[tuple[Kind, tuple[Any, ...], re.Pattern[str]]] = [
    (kind, tuple(signs.split()), re.compile(rf"\b{words.replace('DATE', DATE).replace('FIGURE', FIGURE)}"))
    for kind in ("date", "number")
    for signs, words in DATA[kind].items()
]
WORDS = {name: frozenset(words.split()) for name, words in DATA["words"].items()}
# Words that join others; they name no column and no value by themselves.
JOINING = WORDS["joining"].union(STOP_WORDS, COMMON_WORDS_OF["german"])
TOKEN = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?!\d)|\d{1,2}:\d\d(?!\d)|\d[\d.,'\u2019]*\d|\d|[^\W\d_]+|[%€$£]")
LANGUAGES = ("english", "german", "french")
MIN_OF_KIND = 0.8


def asks_for_rows(question: str) -> bool:
    """Return whether a question asks for rows, or for a figure of them: all, some, or each."""
    asks = ("count", "sum", "average", "largest", "smallest", "how much", "per", "all")
    return bool(NEEDS_ALL["rows"].match(question)) or any(ASKS[name].search(question) for name in asks)


def asks_for_everything(question: str) -> bool:
    """Return whether a question asks for all of a document, whatever that contains."""
    return NEEDS_ALL["everything"].search(question) is not None


def needs_everything(question: str, texts: Sequence[str]) -> bool:
    """Return whether a question needs all of something, such as of a table or list in the first of ``texts``."""
    has_rows = asks_for_rows(question) and any(LIST.search(text) or Tables(text).all for text in texts[:1])
    return asks_for_everything(question) or has_rows


class Column(Struct, frozen=True, eq=False):
    """A column of a table: the words of its name, of its units and of what it measures, its cells, and their kind.

    Those of a ``key`` are texts that are all different, which name the rows; those of a ``flag`` say yes or no.
    ``by_words`` are its different texts, by all of their words, and by each of them behind an empty one.
    """

    name: str
    words: frozenset[str]
    cells: tuple[str, ...]
    kind: Kind
    by_words: Mapping[tuple[str, ...], set[str]]

    def with_part(self, part: str) -> set[str]:
        return {one for one in self.cells if part.lower() in one.lower()}

    def saying(self, what: str) -> list[str]:
        """Return its different cells that say yes, no, or that there is nothing."""
        nothing = [one for one in self.cells if what == "absent" and (not one or figure(one) == 0)]
        return sorted({*nothing, *(one for one in self.cells if one.casefold() in WORDS[what])})


def tokens_of(text: str) -> list[str]:
    """Return the words, figures and dates of a text, in lower case."""
    return TOKEN.findall(text.lower())


def forms_of(text: str, language: str) -> list[str]:
    """Return the words of a text without their endings, in order."""
    return [form_of(word, language) for word in tokens_of(text)]


@lru_cache(maxsize=10_000)
def form_of(word: str, language: str) -> str:
    return UNITS.get(word) or stems([word], language)[0]


# The last tables asked about, so that each is only read once.
@lru_cache(maxsize=4)
def columns_of(text: str, table: Table, language: str) -> list[Column]:
    """Return the columns of a table in a text, without rows of totals."""
    head, rows = parsed(text, table)
    usable = usable_rows(rows)
    return [_column(name, tuple(rows[row][n].strip() for row in usable), language) for n, name in enumerate(head)]


def _column(name: str, cells: tuple[str, ...], language: str) -> Column:
    kind, by_words = _kind(name, list(filter(None, cells))), defaultdict[tuple[str, ...], set[str]](set)
    for cell in set(cells) if kind in ("text", "key") else ():
        words = forms_of(cell, language)
        for phrase in (tuple(words), *(("", word) for word in words)):
            by_words[phrase].add(cell)
    units = WORDS["units"].intersection(forms_of(" ".join(cells[:3]), language))
    measures = ("money", "duration", "quantity") if kind == "number" else ("people",)
    named = {one for one in measures if NAMES[one].search(" ".join([name, *units]))}
    return Column(name, units.union(named, forms_of(name, language)), cells, kind, by_words)


def _kind(name: str, cells: Sequence[str]) -> Kind:
    low = {one.casefold() for one in cells}
    if low and low <= WORDS["yes"] | WORDS["no"] and (len(low) > 1 or not low <= WORDS["unclear alone"]):
        return "flag"
    thousands = [bool(THOUSANDS.fullmatch(one)) for one in cells if "." in one]
    # What numbers the rows is no figure, and nobody knows whether 1.500 is one and a half.
    is_text = NAMES["numbering"].fullmatch(name.strip()) or (thousands and all(thousands))
    dates = [one for one in cells if YEAR.search(one) and (YEAR.fullmatch(one) or date_of(one))]
    figures = [one for one in cells if not is_text and figure(one) is not None]
    least = max(1, MIN_OF_KIND * len(cells))
    text: Kind = "key" if len(low) == len(cells) else "text"
    return "date" if len(dates) >= least else "number" if len(figures) >= least else text
