"""The words of a question and of a table's columns, as the rules for tables compare them. Pure.

What the words mean, in English, German and French, is in table_words.json.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from itertools import pairwise, repeat
from typing import Literal

from msgspec import Struct

from rag_assistant.retrieval.languages import COMMON_WORDS_OF, language_of
from rag_assistant.retrieval.table_query import DATA, MONTH, THOUSANDS, TIME, YEAR, date_of, figure, parsed, usable_rows
from rag_assistant.retrieval.tables import Table
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import STOP_WORDS

# Whole words of a question, in which ``.*?`` is any ending.
ASKS = {
    name: re.compile(rf"\b(?:{words.replace('.*?', '[^ |]*')})\b", re.IGNORECASE)
    for name, words in DATA["asks"].items()
}
# What asks for everything, whatever the subject, and for all rows of a table with a property.
ASKS_FOR_ALL = re.compile(DATA["needs_all"]["everything"], re.IGNORECASE)
ASKS_FOR_ROWS = re.compile(DATA["needs_all"]["rows"], re.IGNORECASE)
# Parts of the names of columns; those of a measure are what its words in a question mean.
NAMES = {name: re.compile(words, re.IGNORECASE) for name, words in DATA["names"].items()}
MEASURES = ("money", "weight", "duration", "quantity", "consumption", "size")
FIGURE = r"((?:[€$£] )?\d[\d.,']*)"
DATE = (
    rf"(?:(?:the|dem|der|den|zum|month of|year|jahr) )*(\d{{4}}-\d\d(?:-\d\d)?|\d{{1,2}}:\d\d|"
    rf"(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}})?(?: {YEAR.pattern}\b)?|{YEAR.pattern}\b|\d{{1,2}}\.\d{{1,2}}\.\d{{4}})"
)
# What is compared, by the signs of the comparison.
FIGURES = {
    signs: re.compile(rf"\b{words.replace('FIGURE', FIGURE)}(?! \d)") for signs, words in DATA["figures"].items()
}
DATES = {signs: re.compile(rf"\b{words.replace('DATE', DATE)}(?! [€$£%])\b") for signs, words in DATA["dates"].items()}
WORDS = {name: frozenset(words.split()) for name, words in DATA["words"].items()}
LANGUAGES = ("english", "german", "french")
# Words that join others; they name no column and no value by themselves.
JOINING = WORDS["joining"].union(STOP_WORDS, COMMON_WORDS_OF["german"])
# "En stock" is named by "stock" alone.
NAMING_NOTHING = JOINING.union(*(COMMON_WORDS_OF[language] for language in ("french", "spanish", "arabic")))
# A column's name has the one, a question the other.
UNITS = {word: words.split()[0] for words in DATA["units"] for word in words.split()}
# Cells that say that there is nothing.
ABSENT = WORDS["absent"] | WORDS["no"] | {""}

TOKEN = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?!\d)|\d{1,2}:\d\d(?!\d)|\d[\d.,'\u2019]*\d|\d|[^\W\d_]+|[%€$£]")
NOT = re.compile(r"n['\u2019]t\b|\bno longer\b|\bnicht mehr\b", re.IGNORECASE)
GENITIVE = re.compile(r"(?<=\w)['\u2019]s\b", re.IGNORECASE)
# "Unapproved" is "not approved", unless a table has the word.
UN = re.compile(r"\b(?:un|in|im|dis|non|ir)([^\W\d_]{4,})", re.IGNORECASE)
MIN_OF_KIND = 0.8
# A word of which others are made has at least so many letters.
MIN_ROOT = 5

Kind = Literal["text", "number", "date", "time", "flag"]
Cells = Mapping[tuple[str, ...], set[str]]


class Column(Struct, frozen=True, dict=True):
    """A column: its name, the words of that, its cells, and what these are; a ``flag`` says yes or no."""

    name: str
    words: frozenset[str]
    units: frozenset[str]
    cells: tuple[str, ...]
    kind: Kind
    language: str

    def is_named(self, form: str) -> bool:
        """Return whether a word, in its form, is one of its name, or made of the same one: "departure", "Departs"."""
        pairs = (sorted((form, one), key=len) for one in self.words if len(form) >= MIN_ROOT <= len(one))
        return form in self.words | self.units or any(longer.startswith(one) for one, longer in pairs)

    @cached_property
    def repeats(self) -> bool:
        """Whether it groups rows: several have the same value."""
        return self.kind == "text" and len(set(self.cells) - {""}) < len(list(filter(None, self.cells)))

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Its values that say that there is nothing."""
        return tuple(sorted({cell for cell in self.cells if cell.casefold() in ABSENT or figure(cell) == 0}))

    @cached_property
    def by_words(self) -> tuple[Cells, Cells]:
        """Its different cells, by all of their words, and by each of them."""
        whole, parts = defaultdict[tuple[str, ...], set[str]](set), defaultdict[tuple[str, ...], set[str]](set)
        for cell in set(self.cells):
            words = forms_of(cell, self.language)
            whole[tuple(words)].add(cell)
            for word in words:
                parts[(word,)].add(cell)
        return whole, parts


def tokens_of(text: str) -> list[str]:
    """Return the words, figures and dates of a text, in lower case."""
    return TOKEN.findall(GENITIVE.sub("", text).lower())


def forms_of(text: str, language: str, skipped: frozenset[str] = frozenset()) -> list[str]:
    """Return the words of a text without their endings, in order."""
    return [form_of(word, language) for word in tokens_of(text) if word not in skipped]


@lru_cache(maxsize=10_000)
def form_of(word: str, language: str) -> str:
    return UNITS.get(word) or stems([word], language)[0]


@cache
def fillers(language: str) -> frozenset[str]:
    """Return the words without meaning for a query, unless a table has them, without their endings."""
    return frozenset(form_of(word, one) for one in (*LANGUAGES, language) for word in WORDS["fillers"])


# The last tables asked about, so that each is only read once.
@lru_cache(maxsize=4)
def columns_of(text: str, table: Table, language: str) -> tuple[Column, ...]:
    """Return the columns of a table in a text, without rows of totals."""
    head, rows = parsed(text, table)
    usable = usable_rows(rows)
    return tuple(_column(name, tuple(rows[row][n] for row in usable), language) for n, name in enumerate(head))


def _column(name: str, cells: tuple[str, ...], language: str) -> Column:
    plain, _, unit = name.partition("(")
    units = {*forms_of(unit, language), *((WORDS["currencies"] | {"%"}) & set(forms_of(" ".join(cells[:3]), language)))}
    words = forms_of(plain, language, NAMING_NOTHING) or forms_of(name, language, JOINING)
    return Column(name, frozenset(words), frozenset(units), cells, _kind(name, cells), language)


def _kind(name: str, cells: Sequence[str]) -> Kind:
    filled = [cell.strip() for cell in cells if cell.strip()]
    low = {cell.casefold() for cell in filled}
    if low and low <= WORDS["yes"] | WORDS["no"] and (len(low) > 1 or not low <= WORDS["unclear alone"]):
        return "flag"

    def share(is_one: Callable[[str], object]) -> bool:
        return bool(filled) and sum(bool(is_one(cell)) for cell in filled) >= MIN_OF_KIND * len(filled)

    if share(TIME.fullmatch):
        return "time"
    if share(date_of) or (share(YEAR.fullmatch) and not NAMES["money"].search(name)):
        return "date"
    if any(map(THOUSANDS.fullmatch, filled)) and all(THOUSANDS.fullmatch(cell) or "." not in cell for cell in filled):
        return "text"  # Nobody knows whether 1.500 is one and a half.
    is_number = share(lambda cell: figure(cell) is not None) and not NAMES["numbering"].fullmatch(name.strip())
    return "number" if is_number else "text"


class Words:
    """The words of a question about columns, and which of them are explained so far."""

    def __init__(self, question: str, text: str, table: Table) -> None:
        words = tokens_of(question)
        language = language_of(words) or language_of(words, LANGUAGES, 1) or "english"
        self.language = language  # In which its words and those of a table are compared.
        self.columns = columns = columns_of(text, table, language)
        self.fillers = fillers(language)

        def plain(match: re.Match[str]) -> str:
            denied, whole = (form_of(word.lower(), language) for word in (match[1], match[0]))
            is_known = any(whole in one.words or (whole,) in one.by_words[1] for one in columns)
            return match[0] if is_known or not any(map(Column.is_named, columns, repeat(denied))) else f"not {match[1]}"

        self.originals: list[str] = TOKEN.findall(UN.sub(plain, GENITIVE.sub("", NOT.sub(" not", question))))
        self.tokens = [UNITS[word] if word in WORDS["numbers"] else word for word in map(str.lower, self.originals)]
        self.forms = [form_of(word, language) for word in self.tokens]
        self.explained: set[int] = set()
        # Those that stand in a column's name as they do here, "per year", which are no cell.
        pairs = {pair for one in columns for pair in pairwise(tokens_of(one.name)) if not table.is_list}
        self.in_names = {n + i for n, pair in enumerate(pairwise(self.tokens)) if pair in pairs for i in (0, 1)}
        # Those that are cells, which name no column.
        self.by_cells: set[int] = set()

    @property
    def text(self) -> str:
        """The words that aren't explained, with a bar in place of the others."""
        return " ".join("|" if n in self.explained else word for n, word in enumerate(self.tokens))

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], range]]:
        """Yield where a pattern matches unexplained words, with the positions of these."""
        text = self.text
        for match in pattern.finditer(text):
            yield match, range(text.count(" ", 0, match.start()), text.count(" ", 0, match.end()) + 1)

    def take(self, name: str) -> tuple[str, range] | None:
        """Return the first words that ask for something, and explain them."""
        match, where = next(self.find(ASKS[name]), ("", range(0)))
        self.explained.update(where)
        return (match[0], where) if match else None

    def explain(self, *patterns: re.Pattern[str]) -> None:
        """Explain all words that match one of some patterns."""
        for pattern in patterns:
            self.explained.update(n for _, where in self.find(pattern) for n in where)

    def left(self) -> list[int]:
        """Return the positions of words that aren't explained and don't just join others."""
        return [n for n, word in enumerate(self.tokens) if n not in self.explained and word not in JOINING]

    def named(self, positions: Iterable[int] | None = None) -> dict[int, set[int]]:
        """Return which columns are named at which positions, by their number; the best if several share a word."""
        among = range(len(self.forms)) if positions is None else positions
        at = {n for n in among if 0 <= n < len(self.forms)} - self.by_cells
        names = {number: {n for n in at if one.is_named(self.forms[n])} for number, one in enumerate(self.columns)}

        def rank(number: int, n: int) -> tuple[int, float]:
            named = {self.forms[one] for one in names[number]} & self.columns[number].words
            like = [SequenceMatcher(None, self.tokens[n], own).ratio() for own in tokens_of(self.columns[number].name)]
            return len(named), max(like)

        best = {n: max((rank(number, n) for number in names if n in names[number]), default=None) for n in at}
        chosen = {number: {n for n in where if rank(number, n) == best[n]} for number, where in names.items()}
        return {number: where for number, where in chosen.items() if where}

    def of_kind(self, kind: str) -> list[int]:
        return [n for n, column in enumerate(self.columns) if column.kind == kind]

    def measuring(self, measure: str) -> list[int]:
        """Return the columns of figures whose name or units say that they have a measure."""
        names = {n: " ".join([self.columns[n].name, *self.columns[n].units]) for n in self.of_kind("number")}
        return [n for n, name in names.items() if NAMES[measure].search(name)]

    def measured(self, superlative: str = "") -> list[int]:
        """Return the columns of the measure that a question is about; figures have a size only if one says so."""
        text = f"{superlative} {self.text}"
        by_measure = {one: self.measuring(one) for one in MEASURES if ASKS[one].search(text)}
        return next((some for one, some in by_measure.items() if some or one != "size"), self.of_kind("number"))
