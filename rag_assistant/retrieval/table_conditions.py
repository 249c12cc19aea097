"""Read a question's conditions on the rows of a table: cells, figures, dates, yes or no, and nothing. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from rag_assistant.retrieval.table_query import MONTH, THOUSANDS, Comparison, Condition, date_of
from rag_assistant.retrieval.table_words import AMOUNT, CURRENCIES, JOINING, YES, Column, Words, any_of, tokens_of
from rag_assistant.retrieval.tokenize import STOP_WORDS

FIGURE = r"((?:[€$£] )?\d[\d.,']*)"
YEAR = r"(?:18|19|20)\d\d\b"
DAY = (
    rf"(\d{{4}}-\d\d(?:-\d\d)?|(?:\d{{1,2}}(?: st| nd| rd| th)? )?{MONTH}(?: \d{{1,2}}(?: st| nd| rd| th)?)?"
    rf"(?: {YEAR})?|{YEAR}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}})"
)
THE = "(?:(?:the|dem|der|den|zum|month of|year|jahr) )*"
Compared = Sequence[tuple[re.Pattern[str], str]]
FIGURES: Compared = [
    (re.compile(rf"\b(?:{words}) {FIGURE}{more}(?! \d)"), signs)
    for words, more, signs in (
        ("between|zwischen", rf"(?: [€$£%]|(?: \w+)?) (?:and|und) {FIGURE}", ">= <="),
        ("at least|no less than|mindestens", "", ">="),
        ("at most|no more than|up to|höchstens", "", "<="),
        ("(?:more|greater|higher|longer) than|over|above|exceed(?:s|ing)?|mehr als|über", "", ">"),
        ("(?:less|fewer|lower|shorter|cheaper) than|under|below|weniger als|unter", "", "<"),
        ("exactly|genau", "", "="),
    )
]
DATES: Compared = [
    (re.compile(rf"\b{words}{THE}{DAY}{more}(?! [€$£%])\b"), signs)
    for words, more, signs in (
        ("(?:between|from|zwischen|von) ", rf" (?:and|to|until|und|bis) {THE}{DAY}", ">= <="),
        ("(?:before|earlier than|vor) ", "", "<"),
        ("(?:after|later than|nach) ", "", ">"),
        ("(?:since|from|seit|ab) ", "", ">="),
        ("(?:until|till|by|up to|bis) ", "", "<="),
        ("(?:in|during|on|of|for|im|am) ", "", "="),
    )
]
NEGATION = any_of(
    "not|no|never|without|except|nobody|none|nothing|out of|other than|apart from|free of|nicht|kein(?:e[nrm]?)?|ohne|"
    "niemand|außer"
)
# "January to March" is more than its two ends.
RANGE = frozenset("between from to through until zwischen von bis".split())
WITH = re.compile(r"\b(?:with|in|has|have|having|mit|hat|haben)(?: (?:an?|any|eine?n?))?$")
ASKS_FOR_ROWS = frozenset("which how list show name welche welcher wie nenne zeige".split())
MAX_BETWEEN = 4


class NotExplained(Exception):
    """A part of a question that a table doesn't explain."""


class Conditions(Words):
    """The conditions of a question on the rows of a table, each with the words that it explains."""

    def __init__(self, question: str, columns: Sequence[Column], language: str) -> None:
        super().__init__(question, columns, language)
        self.where: list[Condition] = []
        self._denials = {where[0] for _, where in self.find(NEGATION)}

    def of_kind(self, kind: str) -> list[int]:
        return [n for n, column in enumerate(self.columns) if column.kind == kind]

    def measuring(self, names: re.Pattern[str]) -> list[int]:
        """Return the columns of figures of whose name or units a pattern is a part."""
        return [
            n for n in self.of_kind("number") if names.search(" ".join([self.columns[n].name, *self.columns[n].units]))
        ]

    def read_cells(self) -> None:
        """Read the words that are all of a cell, the longest first; several of one column are alternatives."""
        columns = self.of_kind("text")
        by_column: dict[int, dict[str, range]] = {}
        for length in range(len(self.forms), 0, -1):
            for start in range(len(self.forms) - length + 1):
                where, phrase = range(start, start + length), tuple(self.forms[start : start + length])
                having = {n: cells for n in columns if (cells := self.columns[n].by_phrase.get(phrase))}
                if having and self.explained.isdisjoint(where) and self._is_value(where, having):
                    number = self._column_of(having, where)
                    by_column.setdefault(number, {}).update(dict.fromkeys(having[number], where))
                    self._explain_cell(where)
        for number, by_cell in by_column.items():
            places = set().union(*by_cell.values())
            if len(by_cell) > 1 and RANGE & set(self.tokens[max(0, min(places) - 1) : max(places)]):
                raise NotExplained
            self._add(number, "=", sorted(by_cell), places)

    def _is_value(self, where: range, columns: dict[int, set[str]]) -> bool:
        """Return whether words are meant as a cell: "IT" is a department, "it" nothing, and 12 no name."""
        tokens = [self.tokens[n] for n in where]
        if all(word.isdigit() for word in tokens):
            return not self.named([where[0] - 1]).keys().isdisjoint(columns)
        if len(where) == 1 and tokens[0] in JOINING:
            original = self.originals[where[0]]
            return where[0] > 0 and original.isupper() and any(original in cells for cells in columns.values())
        return any(word not in STOP_WORDS for word in tokens)

    def _column_of(self, columns: Collection[int], where: range) -> int:
        """Return which of several columns a value is in: the one whose name is beside it."""
        beside = self.named([where[0] - 2, where[0] - 1, where[-1] + 1])
        before = self.tokens[where[0] - 1 : where[0]]
        named = [n for n in columns if n in beside or tokens_of(self.columns[n].name) == before]
        return self._only(columns if len(columns) == 1 else named)

    def _only(self, *choices: Collection[int]) -> int:
        """Return the column of the first of several choices that has just one."""
        for some in choices:
            if len(some) == 1:
                return next(iter(some))
        raise NotExplained

    def _explain_cell(self, where: Iterable[int]) -> None:
        self.explained.update(where)
        self.by_cells.update(where)

    def read_compared(self, about: Collection[str]) -> None:
        """Read periods, "after May 2025", and comparisons with figures, "over 500 euros"."""
        if self.of_kind("date"):
            self._read(DATES, lambda _: self._only(self._named_of(self.of_kind("date")), self.of_kind("date")), about)
        self._read(FIGURES, self._of_figures, ())

    def _read(self, patterns: Compared, column_of: Callable[[range], int], skipped: Collection[str]) -> None:
        for pattern, signs in patterns:
            for match, where in list(self.find(pattern)):
                texts = [one for one in match.groups() if one]
                is_date = patterns is DATES
                if (self._is_counted(where) if is_date else date_of(texts[0])) or not set(texts).isdisjoint(skipped):
                    continue
                number = column_of(where)
                values = self._dates(texts, number) if is_date else list(map(self._figure, texts))
                for sign, value in zip(signs.split(), values, strict=True):
                    self._add(number, sign, [value], where)  # type: ignore[arg-type]

    def _figure(self, text: str) -> str:
        plain = text.strip("€$£ .,")
        return plain.replace(".", "") if self.language != "english" and THOUSANDS.fullmatch(plain) else plain

    def _named_of(self, columns: Collection[int], positions: Iterable[int] | None = None) -> list[int]:
        return [number for number in self.named(positions) if number in columns]

    def _of_figures(self, where: range) -> int:
        """Return the column that a figure is compared with: named behind it, or before, or the one of money, or all."""
        behind = range(where[-1] + 1, min(where[-1] + 4, len(self.forms)))
        currency = {n for n in (*where, *behind[:1]) if self.forms[n] in CURRENCIES}
        numbers = self.of_kind("number")
        of_money = self.measuring(AMOUNT)
        if currency:
            currencies = {self.forms[n] for n in currency}
            of_money = numbers = [
                n for n in of_money if currencies <= (CURRENCIES & self.columns[n].units or currencies)
            ]
            self.explained.update(currency)
        return self._only(*(self._named_of(numbers, some) for some in (behind, range(where[0]))), of_money, numbers)

    def _is_counted(self, where: range) -> bool:
        """Return whether figures that might be years are followed by what they count: "up to 2000 euros"."""
        unit = self.forms[where[-1] + 1] if where[-1] + 1 < len(self.forms) else ""
        return unit in CURRENCIES or any(self.columns[n].is_named(unit) for n in self.of_kind("number"))

    def _dates(self, texts: Sequence[str], number: int) -> list[str]:
        """Return dates as ISO 8601; months without a year must be in one year only."""
        dated = [date for cell in self.columns[number].cells if (date := date_of(cell))]
        plain = [re.sub(r"\b(\d{1,2}) ?(?:\.|st|nd|rd|th) ", r"\1 ", text) for text in texts]
        years = {date[:4] for text in plain if (date := date_of(text))} or {date[:4] for date in dated}
        year = min(years) if len(years) == 1 else ""
        dates = [text if re.fullmatch(YEAR, text) else date_of(text) or date_of(f"{text} {year}") for text in plain]
        complete = list(filter(None, dates))
        if len(complete) < len(dates) or (not dated and max(map(len, complete)) > len("2025")):
            raise NotExplained
        return complete

    def read_flags(self, skipped: Collection[int | None]) -> None:
        """Read columns that say yes or no, and those that are empty: "unpaid", "nobody assigned", "out of stock"."""
        for number, where in self.named().items():
            column, first = self.columns[number], min(where)
            denial = self._denial(first)
            if number in skipped or any(one.column == column.name for one in self.where):
                continue
            if column.kind == "flag":
                wanted = {cell for cell in column.cells if (cell.strip().casefold() in YES) is (denial is None)}
                self._add(number, "=", sorted(wanted), [], denial)
                self.explained.update(where)
            elif column.absent and denial is not None:
                self._add(number, "=", column.absent, where, denial)
            elif column.absent:
                asks = column.kind == "date" and self.tokens[0] in ASKS_FOR_ROWS
                if asks or WITH.search(" ".join(self.tokens[:first])):
                    self._add(number, "!=", column.absent, where)

    def _denial(self, first: int) -> int | None:
        """Return the position of the negation that a word follows, with nothing that counts between."""
        for n in range(first - 1, max(-1, first - 1 - MAX_BETWEEN), -1):
            if n in self._denials:
                return n
            if self.tokens[n] not in JOINING:
                return None
        return None

    def read_words(self, skipped: Collection[str]) -> None:
        """Read the remaining words as parts of cells: the rows that have all of them, in one column each."""
        left = [n for n in self.left() if self.tokens[n] not in skipped and self.forms[n] not in skipped]
        by_column: dict[int, dict[int, set[int]]] = {}
        for n in left:
            for number in self.of_kind("text"):
                if rows := self.columns[number].by_word.get(self.forms[n]):
                    by_column.setdefault(number, {})[n] = rows
        for n in left:
            sharing = [number for number, words in by_column.items() if n in words]
            most = max((len(by_column[number]) for number in sharing), default=0)
            best = [number for number in sharing if len(by_column[number]) == most]
            for number in sharing if len(sharing) > 1 else ():
                if number != self._column_of(best, range(n, n + 1)):
                    by_column[number].pop(n)
        for number, by_word in by_column.items():
            if by_word:
                self._add_parts(number, by_word)

    def _add_parts(self, number: int, by_word: dict[int, set[int]]) -> None:
        rows = set.intersection(*by_word.values())
        if not rows:
            if {"and", "or", "und", "oder"}.isdisjoint(self.tokens[min(by_word) : max(by_word) + 1]):
                raise NotExplained
            rows = set().union(*by_word.values())
        column = self.columns[number]
        cells = sorted({column.cells[row] for row in rows})
        self._explain_cell(by_word)
        parts = [self.originals[n] for n in sorted(by_word)]
        for part in (" ".join(parts), max(parts, key=len)):
            contained = {row for row, cell in enumerate(column.cells) if part.casefold() in cell.casefold()}
            if len(cells) > 2 and contained == rows:
                return self._add(number, "contains", [part], by_word)
        return self._add(number, "=", cells, by_word)

    def _add(
        self,
        number: int,
        comparison: Comparison,
        values: Sequence[str],
        where: Collection[int],
        denial: int | None = None,
    ) -> None:
        column = self.columns[number]
        self.explained.update(where)
        if comparison in ("=", "contains") and denial is None and where:
            denial = self._denial(min(where))
            if denial is not None:
                comparison = "!=" if comparison == "=" else "not contains"
        if denial is not None:
            self._denials.discard(denial)
            self.explained.add(denial)
        if not values:
            raise NotExplained
        self.where.append(Condition(column.name, comparison, values[0] if len(values) == 1 else tuple(values)))

    def finish(self) -> None:
        """Raise NotExplained if a negation belongs to no condition."""
        if self._denials - self.explained:
            raise NotExplained
