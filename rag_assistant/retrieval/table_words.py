"""The words of a question and of a table's columns, as the rules for tables compare them. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from itertools import accumulate, repeat
from typing import Literal

from msgspec import Struct

from rag_assistant.retrieval.languages import COMMON_WORDS_OF, language_of
from rag_assistant.retrieval.table_query import MONEY, THOUSANDS, YEAR, date_of, figure, parsed, usable_rows
from rag_assistant.retrieval.tables import Table
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import STOP_WORDS

TOKEN = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?!\d)|\d[\d.,'\u2019]*\d|\d|[^\W\d_]+|[%€$£]")
NOT = re.compile(r"n['\u2019]t\b|\bno longer\b|\bnicht mehr\b", re.IGNORECASE)
GENITIVE = re.compile(r"(?<=\w)['\u2019]s\b", re.IGNORECASE)
# "Unapproved" is "not approved", unless a table has the word.
UN = re.compile(r"\b(?:un|in|im|dis|non|ir)([^\W\d_]{4,})", re.IGNORECASE)
# A column's name has the one, a question the other.
UNITS = {
    word: words.split()[0]
    for words in (
        *("km kilometre kilometres kilometer kilometers", "kg kilo kilos kilogram kilograms", "% percent prozent"),
        *("eur euro euros €", "usd dollar dollars $", "gbp pound pounds £", "chf franc francs franken"),
    )
    for word in words.split()
}
CURRENCIES = frozenset({"eur", "usd", "gbp", "chf"})
AMOUNT = re.compile(rf"{MONEY.pattern}|\b(?:{'|'.join(CURRENCIES)})\b", re.IGNORECASE)
# Words that join others; they name no column and no value by themselves.
JOINING = frozenset(
    """
    being under over above before after between within without against per off via since until till during each every
    both either only other than else yet still already currently now no never again anyone anybody einen oder vom vor
    seit bis ab waren wurden haben hatte hatten gibt wir ich ihr uns unser unsere unseren noch schon bereits nur wem wen
    welcher welches welchen welchem so kein keine keinen keiner ohne davon
    """.split()
).union(STOP_WORDS, COMMON_WORDS_OF["german"])
# Words without meaning for a query, unless a table has them; their other forms are like them.
FILLERS = """
    list show give given name tell many much get got make made row record entry item table value thing step everyone
    everything different distinct overall often time put able exist according once right actually mention say said must
    need take took taken go went come came carry belong own hit work live base locate place hold held keep kept use
    bring agree teach taught run lead led manage handle offer provide store stock contain include cover serve sit stay
    study play attend supply drive nenne zeige liste viele oft hoch alle allen insgesamt eintrag zeile arbeiten gehören
    wohnen leiten kommen liegen stehen
"""
NUMBERING = re.compile(r"(?:no|nr|number|id|pos|item|#|inventory no)\.?", re.IGNORECASE)
MIN_OF_KIND = 0.8
YES = frozenset("yes y true x ✓ ✔ ja j wahr".split())
NO = frozenset("no n false - – ✗ nein falsch".split())  # noqa: RUF001
# Cells that say that there is nothing.
ABSENT = frozenset("none n/a nil nobody keine keiner niemand".split()) | NO | {""}

Kind = Literal["text", "number", "date", "flag"]


def any_of(words: str) -> re.Pattern[str]:
    """Return a pattern of some words, in which ``.*?`` is any ending."""
    return re.compile(rf"\b(?:{words.replace('.*?', '[^ |]*')})\b", re.IGNORECASE)


class Column(Struct, frozen=True, dict=True):
    """A column: its name, the words of that, its cells, and what these are; a ``flag`` says yes or no."""

    name: str
    words: frozenset[str]
    units: frozenset[str]
    cells: tuple[str, ...]
    kind: Kind
    language: str

    def is_named(self, form: str) -> bool:
        """Return whether a word, in its form, is one of its name."""
        return form in self.words or form in self.units

    @cached_property
    def repeats(self) -> bool:
        """Whether it groups rows: several have the same value."""
        return self.kind == "text" and len(set(self.cells) - {""}) < len(list(filter(None, self.cells)))

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Its values that say that there is nothing."""
        return tuple(sorted({cell for cell in self.cells if cell.casefold() in ABSENT or figure(cell) == 0}))

    @cached_property
    def by_phrase(self) -> dict[tuple[str, ...], set[str]]:
        """Its different cells by their words."""
        cells: dict[tuple[str, ...], set[str]] = {}
        for cell in set(self.cells):
            cells.setdefault(tuple(forms_of(cell, self.language)), set()).add(cell)
        return cells

    @cached_property
    def by_word(self) -> dict[str, set[int]]:
        """The numbers of its rows by the words in them."""
        rows: dict[str, set[int]] = {}
        for row, cell in enumerate(self.cells):
            for form in forms_of(cell, self.language):
                rows.setdefault(form, set()).add(row)
        return rows


def language_in(question: str) -> str:
    """Return the language of a question, in which its words and those of a table are compared."""
    words = tokens_of(question)
    return language_of(words) or language_of(words, ("english", "german"), 1) or "english"


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
    """Return the words without meaning for a query, without their endings."""
    return frozenset(form for one in ("english", "german", language) for form in forms_of(FILLERS, one))


# The last tables asked about, so that each is only read once.
@lru_cache(maxsize=4)
def columns_of(text: str, table: Table, language: str) -> tuple[Column, ...]:
    """Return the columns of a table in a text, without rows of totals."""
    head, rows = parsed(text, table)
    usable = usable_rows(rows)
    return tuple(_column(name, tuple(rows[row][n] for row in usable), language) for n, name in enumerate(head))


def _column(name: str, cells: tuple[str, ...], language: str) -> Column:
    plain, _, unit = name.partition("(")
    units = {*forms_of(unit, language), *((CURRENCIES | {"%"}) & set(forms_of(" ".join(cells[:3]), language)))}
    words = forms_of(plain, language, JOINING) or forms_of(name, language, JOINING)
    return Column(name, frozenset(words), frozenset(units), cells, _kind(name, cells), language)


def _kind(name: str, cells: Sequence[str]) -> Kind:
    filled = [cell.strip() for cell in cells if cell.strip()]
    low = {cell.casefold() for cell in filled}
    if low and low <= YES | NO and (len(low) > 1 or not low <= {"-", "–", "x", "y", "n", "j"}):  # noqa: RUF001
        return "flag"

    def share(is_one: Callable[[str], object]) -> bool:
        return bool(filled) and sum(bool(is_one(cell)) for cell in filled) >= MIN_OF_KIND * len(filled)

    if share(date_of) or (share(YEAR.fullmatch) and not MONEY.search(name)):
        return "date"
    if any(map(THOUSANDS.fullmatch, filled)) and all(THOUSANDS.fullmatch(cell) or "." not in cell for cell in filled):
        return "text"  # Nobody knows whether 1.500 is one and a half.
    is_number = share(lambda cell: figure(cell) is not None) and not NUMBERING.fullmatch(name.strip())
    return "number" if is_number else "text"


class Words:
    """The words of a question about columns, and which of them are explained so far."""

    def __init__(self, question: str, columns: Sequence[Column], language: str) -> None:
        def plain(match: re.Match[str]) -> str:
            denied, whole = (form_of(word.lower(), language) for word in (match[1], match[0]))
            is_known = any(whole in one.words or whole in one.by_word for one in columns)
            return match[0] if is_known or not any(map(Column.is_named, columns, repeat(denied))) else f"not {match[1]}"

        self.originals: list[str] = TOKEN.findall(UN.sub(plain, GENITIVE.sub("", NOT.sub(" not", question))))
        self.tokens = [word.lower() for word in self.originals]
        self.forms = [form_of(word, language) for word in self.tokens]
        self.columns, self.language = columns, language
        self.explained: set[int] = set()
        # Those that are cells, which name no column.
        self.by_cells: set[int] = set()

    @property
    def text(self) -> str:
        """The words that aren't explained, with a bar in place of the others."""
        return " ".join("|" if n in self.explained else word for n, word in enumerate(self.tokens))

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], range]]:
        """Yield where a pattern matches unexplained words, with the positions of these."""
        text = self.text
        starts = list(accumulate((len(word) + 1 for word in text.split(" ")), initial=0))
        for match in pattern.finditer(text):
            inside = [n for n, start in enumerate(starts[:-1]) if match.start() <= start < match.end()]
            if inside:
                yield match, range(inside[0], inside[-1] + 1)

    def take(self, pattern: re.Pattern[str]) -> tuple[re.Match[str], range] | None:
        """Return the first such match, and explain its words."""
        span = next(self.find(pattern), None)
        self.explained.update(span[1] if span else ())
        return span

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
