"""Read a question's conditions on the rows of a table: cells, figures, dates, yes or no, and nothing. Pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher

from rag_assistant.retrieval.table_query import MONTH, THOUSANDS, Comparison, Condition, date_of
from rag_assistant.retrieval.table_words import CURRENCIES, JOINING, YES, Column, Speech, Words, tokens_of
from rag_assistant.retrieval.tokenize import STOP_WORDS

FIGURE = r"(?:[€$£] )?\d[\d.,']*"
COMPARED = re.compile(
    r"\b(?:(?P<least>at least|no less than|mindestens)|(?P<most>at most|no more than|up to|höchstens)|"
    r"(?P<more>(?:more|greater|higher|longer) than|over|above|exceed(?:s|ing)?|mehr als|über)|"
    r"(?P<less>(?:less|fewer|lower|shorter|cheaper) than|under|below|weniger als|unter)|"
    r"(?P<same>exactly|genau))"
    rf" (?P<figure>{FIGURE})(?! \d)"
)
BETWEEN = re.compile(rf"\b(?:between|zwischen) (?P<low>{FIGURE})(?: [€$£%]|(?: \w+)?) (?:and|und) (?P<high>{FIGURE})")
COMPARISONS: dict[str, Comparison] = {"least": ">=", "most": "<=", "more": ">", "less": "<", "same": "="}
YEAR = r"(?:18|19|20)\d\d\b"
DAY = (
    rf"(?:\d{{4}}-\d\d(?:-\d\d)?|(?:\d{{1,2}}(?: st| nd| rd| th)? )?{MONTH}(?: \d{{1,2}}(?: st| nd| rd| th)?)?"
    rf"(?: {YEAR})?|{YEAR}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}})"
)
DATED = re.compile(
    r"\b(?P<how>before|earlier than|after|later than|since|from|until|till|by|up to|in|during|on|of|for|vor|nach|seit|"
    rf"ab|bis|im|am)(?: (?:the|dem|der|den|zum|month of|year|jahr))* (?P<date>{DAY})(?! [€$£%])\b"
)
DATES_BETWEEN = re.compile(
    rf"\b(?:between|from|zwischen|von) (?:the |dem )?(?P<low>{DAY}) "
    rf"(?:and|to|until|und|bis) (?:the |dem )?(?P<high>{DAY})\b"
)
BARE_DATE = re.compile(rf"(?P<date>\d{{4}}-\d\d(?:-\d\d)?|(?:\d{{1,2}} )?{MONTH} {YEAR})\b")
HOW_DATED: dict[str, Comparison] = {
    **dict.fromkeys(("before", "earlier than", "vor"), "<"),
    **dict.fromkeys(("after", "later than", "nach"), ">"),
    **dict.fromkeys(("since", "from", "seit", "ab"), ">="),
    **dict.fromkeys(("until", "till", "by", "up to", "bis"), "<="),
}
NEGATIONS = frozenset(
    "not no never without except nobody none nothing nicht kein keine keinen keiner keinem ohne niemand außer".split()
)
OTHER_NEGATION = re.compile(r"\b(?:out of|other than|apart from|free of|außer)\b")
# "January to March" is more than its two ends.
RANGE = frozenset("between from to through until zwischen von bis".split())
ARTICLES = frozenset("a an any ein eine einen".split())
WITH = frozenset("with has have having mit hat haben".split())
AFFIRMED = frozenset("in on under mit with".split())
# A question for one row rather than for those where something is so.
WHETHER = re.compile(r"(?:is|are|was|were|does|do|did|has|have|can|ist|sind|hat|haben|war|wird|kann)\b")
# Yes and no in words that a question may have.
STATES = frozenset("open pending done offen erledigt".split())
ASKS_FOR_ROWS = re.compile(r"(?:which|how many|list|show|name|welche\w*|wie ?viele|nenne|zeige)\b")
MAX_CELL_WORDS = 12
MAX_BETWEEN = 3


class NotExplained(Exception):
    """A part of a question that a table doesn't explain."""


class Conditions:
    """The conditions of a question on the rows of a table, each with the words that it explains."""

    def __init__(
        self, words: Words, speech: Speech, columns: Sequence[Column], usable: Collection[int], about: Collection[str]
    ) -> None:
        self._about = about
        self._words, self._speech, self._columns, self._usable = words, speech, columns, usable
        self._denials = {n for n, word in enumerate(words.tokens) if word in NEGATIONS}
        for _, where in words.find(OTHER_NEGATION):
            self._denials.add(where[-1])
            words.explain(where[:-1])
        self.where: list[Condition] = []
        self.by_cells: set[int] = set()

    def named(self, positions: Iterable[int] | None = None) -> dict[int, set[int]]:
        """Return which columns are named at which positions, by their number; the best if several share a word."""
        at = {n for n in (range(len(self._words.forms)) if positions is None else positions) if n not in self.by_cells}
        names = {
            number: {n for n in at if column.is_named(self._words.forms[n])}
            for number, column in enumerate(self._columns)
        }
        scores = {(number, n): self._likeness(number, n, where) for number, where in names.items() for n in where}
        best = {n: max((score for (_, at), score in scores.items() if at == n), default=(0, 0.0)) for n in at}
        chosen = {number: {n for n in where if scores[number, n] == best[n]} for number, where in names.items()}
        return {number: where for number, where in chosen.items() if where}

    def _likeness(self, number: int, n: int, where: Iterable[int]) -> tuple[int, float]:
        """Return how many words of a column's name a question has, and how like one of them a word is."""
        token, column = self._words.tokens[n], self._columns[number]
        like = max(SequenceMatcher(None, token, own).ratio() for own in [*tokens_of(column.name), "-"])
        return len({self._words.forms[one] for one in where} & column.words), like

    def read_cells(self) -> None:
        """Read the words that are all of a cell, the longest first; several of one column are alternatives."""
        phrases: dict[tuple[str, ...], dict[int, set[str]]] = {}
        for number, column in enumerate(self._columns):
            if column.kind in ("text", "flag"):
                for cell in {one for one in column.cells if column.kind == "text" or one.lower() in STATES}:
                    phrase = tuple(self._speech.forms(cell)[: MAX_CELL_WORDS + 1])
                    phrases.setdefault(phrase, {}).setdefault(number, set()).add(cell)
        longest = min(MAX_CELL_WORDS, max(map(len, phrases), default=0))
        by_column: dict[int, dict[str, set[int]]] = {}
        forms = self._words.forms
        for length in range(longest, 0, -1):
            for start in range(len(forms) - length + 1):
                where = range(start, start + length)
                columns = phrases.get(tuple(forms[start : start + length]))
                if columns and self._words.explained.isdisjoint(where) and self._is_value(where, columns):
                    number = self._column_of(columns, where)
                    for cell in columns[number]:
                        by_column.setdefault(number, {})[cell] = set(where)
                    self._explain_cell(where)
        for number, cells in by_column.items():
            places = set().union(*cells.values())
            if len(cells) > 1 and RANGE & set(self._words.tokens[max(0, min(places) - 1) : max(places)]):
                raise NotExplained
            self._add(number, "=", sorted(cells), places)

    def _is_value(self, where: range, columns: dict[int, set[str]]) -> bool:
        """Return whether words are meant as a cell: "IT" is a department, "it" nothing, and 12 no name."""
        tokens = [self._words.tokens[n] for n in where]
        if tokens[0] in STATES and self._words.tokens[where[0] - 1] == "be":
            raise NotExplained
        if all(word.isdigit() for word in tokens):
            return bool(set(columns) & set(self.named([where[0] - 1])))
        if len(where) == 1 and tokens[0] in JOINING:
            original = self._words.originals[where[0]]
            return where[0] > 0 and original.isupper() and any(original in cells for cells in columns.values())
        return any(word not in STOP_WORDS for word in tokens)

    def _column_of(self, columns: Collection[int], where: range) -> int:
        """Return which of several columns a value is in: the one whose name is beside it."""
        if len(columns) == 1:
            return next(iter(columns))
        around = (where[0] - 2, where[0] - 1, where[-1] + 1)
        beside = set(self.named([n for n in around if 0 <= n < len(self._words.forms)]))
        before = self._words.tokens[where[0] - 1] if where[0] else ""
        beside |= {number for number in columns if tokens_of(self._columns[number].name) == [before]}
        if len(beside & set(columns)) != 1:
            raise NotExplained
        return next(iter(beside & set(columns)))

    def _explain_cell(self, where: Iterable[int]) -> None:
        self._words.explain(where)
        self.by_cells.update(where)

    def read_figures(self) -> None:
        """Read comparisons with figures: "over 500 euros"."""
        while span := self._words.take(BETWEEN):
            match, where = span
            number = self._of_figures(where)
            for comparison, figure in ((">=", match["low"]), ("<=", match["high"])):
                self._add(number, comparison, [self._figure(figure)], where)  # type: ignore[arg-type]
        for match, where in list(self._words.find(COMPARED)):
            if date_of(match["figure"]):
                continue
            name = next(name for name in COMPARISONS if match[name])
            self._words.explain(where)
            self._add(self._of_figures(where), COMPARISONS[name], [self._figure(match["figure"])], where)

    def _figure(self, text: str) -> str:
        plain = text.strip("€$£ .,")
        return plain if self._speech.is_english or not THOUSANDS.fullmatch(plain) else plain.replace(".", "")

    def _units_after(self, where: range) -> dict[int, set[int]]:
        return self.named([n for n in range(where[-1] + 1, where[-1] + 4) if n < len(self._words.forms)])

    def _of_figures(self, where: range) -> int:
        """Return the column that a figure is compared with: named behind it, or before, or the one of money, or all."""
        numbers = {number for number, column in enumerate(self._columns) if column.kind == "number"}
        unit = [self._words.forms[n] for n in (where[-2], where[-1], where[-1] + 1) if -1 < n < len(self._words.forms)]
        currency = CURRENCIES.intersection(unit)
        after = self._units_after(where)
        of_money = {number for number in numbers if self._columns[number].is_money}
        if currency:
            stated = {number for number in of_money if self._columns[number].units & CURRENCIES}
            of_money = {n for n in of_money if currency <= self._columns[n].units or n not in stated}
            self._words.explain(n for n in where if self._words.forms[n] in CURRENCIES)
            if where[-1] + 1 < len(self._words.forms) and self._words.forms[where[-1] + 1] in CURRENCIES:
                self._words.explain([where[-1] + 1])
            after = {number: some for number, some in after.items() if number in of_money} or {}
            numbers &= of_money
        named = self.named(range(where[0]))
        for some in (set(after) & numbers, set(named) & numbers, of_money, numbers):
            if len(some) == 1:
                return next(iter(some))
        raise NotExplained

    def read_dates(self) -> None:
        """Read periods: "after May 2025"."""
        if not any(column.kind == "date" for column in self._columns):
            return
        span = next(self._words.find(DATES_BETWEEN), None)
        if span and not self._is_counted(span[1]):
            match, where = span
            column = self._of_dates()
            high = self._date(match["high"], column, "")
            for comparison, text in ((">=", self._date(match["low"], column, high[:4])), ("<=", high)):
                self._add(column, comparison, [text], where)  # type: ignore[arg-type]
        for match, where in [*self._words.find(DATED), *self._words.find(BARE_DATE)]:
            if not self._words.explained.isdisjoint(where) or match["date"] in self._about or self._is_counted(where):
                continue
            self._words.explain(where)
            column = self._of_dates()
            how = match.groupdict().get("how") or "on"
            self._add(column, HOW_DATED.get(how, "="), [self._date(match["date"], column, "")], where)

    def _is_counted(self, where: range) -> bool:
        """Return whether figures that might be years are followed by what they count: "up to 2000 euros"."""
        after = where[-1] + 1
        unit = self._words.forms[after] if after < len(self._words.forms) else ""
        numbers = (column for column in self._columns if column.kind == "number")
        return unit in CURRENCIES or any(column.is_named(unit) for column in numbers)

    def _of_dates(self) -> int:
        dates = {number for number, column in enumerate(self._columns) if column.kind == "date"}
        named = dates & set(self.named())
        some = named if len(named) == 1 else dates
        if len(some) != 1:
            raise NotExplained
        return next(iter(some))

    def _date(self, text: str, number: int, year: str) -> str:
        """Return a date as ISO 8601; a month without a year must be in one year only."""
        cells = [self._columns[number].cells[n] for n in self._usable]
        plain = re.sub(r"\b(\d{1,2}) ?(?:\.|st|nd|rd|th) ", r"\1 ", text)
        if re.fullmatch(r"\d{4}", plain) or date_of(plain):
            date = date_of(plain) or plain
            if all(re.fullmatch(r"\d{4}", cell) for cell in cells if cell) and len(date) > 4:
                raise NotExplained
            return date
        years = {year} if year else {dated[:4] for cell in cells if (dated := date_of(cell))}
        completed = date_of(f"{plain} {min(years, default='')}")
        if len(years) != 1 or completed is None:
            raise NotExplained
        return completed

    def read_flags(self, is_group: Collection[int] = ()) -> None:
        """Read columns that say yes or no, and those that are empty: "unpaid", "nobody assigned", "out of stock"."""
        is_whether = bool(self.where) and WHETHER.match(self._words.tokens[0]) is not None
        for number, where in self.named().items():
            column = self._columns[number]
            first = min(where)
            denial = self._denial(first)
            if number in is_group or any(one.column == column.name for one in self.where):
                continue
            if column.kind == "flag":
                if not is_whether:
                    wanted = {cell for cell in column.cells if (cell.strip().casefold() in YES) is (denial is None)}
                    self._add(number, "=", sorted(wanted), [], denial)
                self._words.explain(where)
            elif column.absent and denial is not None:
                self._add(number, "=", column.absent, where, denial)
            elif column.absent and (self._is_present(first, column) or (column.kind == "date" and self._asks_for_rows)):
                self._add(number, "!=", column.absent, where)
        self._words.explain(n for n, word in enumerate(self._words.tokens) if word in AFFIRMED)

    @property
    def _asks_for_rows(self) -> bool:
        return ASKS_FOR_ROWS.match(" ".join(self._words.tokens)) is not None

    def _is_present(self, first: int, column: Column) -> bool:
        """Return whether a column is named as something that a row has: "with a discount", "in stock"."""
        before = [word for word in self._words.tokens[max(0, first - 2) : first] if word not in ARTICLES]
        own = tokens_of(column.name)[0]
        return bool(before) and (before[-1] in WITH or (before[-1] == "in" and own in ("in", "stock")))

    def _denial(self, first: int) -> int | None:
        """Return the position of the negation that a word follows, with nothing that counts between."""
        for n in range(first - 1, max(-1, first - 2 - MAX_BETWEEN), -1):
            if n in self._denials:
                return n
            word = self._words.tokens[n]
            if word not in JOINING and word not in ("fully", "completely", "assigned", "paid"):
                return None
        return None

    def read_words(self, skipped: Collection[str]) -> None:
        """Read the remaining words as parts of cells: the rows that have all of them, in one column each."""
        left = [n for n in self._words.left() if self._words.tokens[n] not in skipped]
        in_columns: dict[int, dict[int, set[int]]] = {}
        for number, column in enumerate(self._columns):
            if column.kind not in ("text", "number"):
                continue
            cells = {row: frozenset(self._speech.forms(column.cells[row])) for row in self._usable}
            for n in left:
                rows = {row for row, cell in cells.items() if self._words.forms[n] in cell}
                is_figure = self._words.tokens[n][0].isdigit()
                is_beside = number in self._units_after(range(n, n + 1)) or number in self.named([max(0, n - 1)])
                if rows and (column.kind == "text" or (is_figure and is_beside)):
                    in_columns.setdefault(number, {})[n] = rows
        for n in left:
            sharing = [number for number, words in in_columns.items() if n in words]
            if len(sharing) > 1:
                most = max(len(in_columns[number]) for number in sharing)
                best = [number for number in sharing if len(in_columns[number]) == most]
                chosen = best[0] if len(best) == 1 else self._column_of(best, range(n, n + 1))
                for number in sharing:
                    if number != chosen:
                        in_columns[number].pop(n)
        for number, by_word in in_columns.items():
            if by_word:
                self._add_parts(number, by_word)

    def _add_parts(self, number: int, by_word: dict[int, set[int]]) -> None:
        rows = set.intersection(*by_word.values())
        if not rows:
            tokens = self._words.tokens[min(by_word) : max(by_word) + 1]
            if not {"and", "or", "und", "oder"} & set(tokens):
                raise NotExplained
            rows = set().union(*by_word.values())
        column = self._columns[number]
        cells = sorted({column.cells[row] for row in rows})
        self._explain_cell(by_word)
        longest = max((self._words.originals[n] for n in by_word), key=len)
        for part in (" ".join(self._words.originals[n] for n in sorted(by_word)), longest):
            contained = {row for row in self._usable if part.casefold() in column.cells[row].casefold()}
            if len(cells) > 2 and contained == rows:
                return self._add(number, "contains", [part], by_word)
        return self._add(number, "=", cells, by_word)

    def _add(
        self,
        number: int,
        comparison: Comparison,
        values: Sequence[str],
        where: Iterable[int],
        denial: int | None = None,
    ) -> None:
        column = self._columns[number]
        self._words.explain(where)
        if comparison in ("=", "contains") and denial is None and where and column.kind not in ("flag",):
            denied = self._denial(min(where))
            if denied is not None and values != column.absent:
                comparison, denial = ("!=" if comparison == "=" else "not contains"), denied
        if denial is not None:
            self._denials.discard(denial)
            self._words.explain([denial])
        if not values:
            raise NotExplained
        self.where.append(Condition(column.name, comparison, values[0] if len(values) == 1 else tuple(values)))

    def finish(self) -> None:
        """Raise NotExplained if a negation belongs to no condition."""
        if self._denials - self._words.explained:
            raise NotExplained
