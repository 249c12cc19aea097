"""Read a question's conditions on the rows of a table: cells, figures, dates, yes or no, and nothing. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import filterfalse

from rag_assistant.retrieval.table_query import DENIED, NO_YEAR, THOUSANDS, YEAR, Comparison, Condition, date_of
from rag_assistant.retrieval.table_words import ASKS, DATES, FIGURES, JOINING, WORDS, Words, form_of, tokens_of
from rag_assistant.retrieval.tables import Table
from rag_assistant.retrieval.tokenize import STOP_WORDS

WITH = re.compile(r"\b(?:with|in|has|have|having|mit|hat|haben)(?: (?:an?|any|eine?n?))?$")
MAX_BETWEEN = 4
# A word and the next one, if that has a small letter and no comma before it.
MODIFIER = re.compile(r"(?<![^\W\d_])([^\W\d_]++) (?=([a-zà-ÿ]++))")


class NotExplained(Exception):
    """A part of a question that a table doesn't explain."""


class Conditions(Words):
    """The conditions of a question on the rows of a table, each with the words that it explains."""

    def __init__(self, question: str, text: str, table: Table) -> None:
        super().__init__(question, text, table)
        self.where: list[Condition] = []
        self.denials = {where[0] for _, where in self.find(ASKS["negation"])}
        self.things = self._things()

    def _things(self) -> range:
        """Return the positions of the things that a question asks for: "which coffee machines"."""
        match, where = next(self.find(ASKS["rows"]), ("", range(0)))
        start = where[-1] + 1 if match and match[0].split()[0] not in WORDS["people"] else len(self.tokens)
        return range(start, next((n for n in range(start, len(self.tokens)) if self.tokens[n] in JOINING), start))

    def read_cells(self, skipped: Set[str] | None = None) -> None:
        """Read the words that are all of a cell, the longest first; with words to skip, the rest as parts of cells.

        Several cells of one column are alternatives; parts must be in one of its cells together.
        """
        size, is_part = len(self.forms), skipped is not None
        left = {n for n in self.left() if skipped and skipped.isdisjoint((self.tokens[n], self.forms[n]))}
        by_column: dict[int, list[tuple[range, set[str]]]] = {}
        for where in (
            range(n, n + words) for words in range(1 if is_part else size, 0, -1) for n in range(size - words + 1)
        ):
            phrase = tuple(self.forms[where[0] : where[-1] + 1])
            having = {
                n: cells for n in self.of_kind("text") if (cells := self.columns[n].by_words[is_part].get(phrase))
            }
            if is_part:  # A column's name is no part of its cells: "which rooms" are not only the "Kiln room".
                having = {n: cells for n, cells in having.items() if not self.columns[n].is_named(*phrase)}
            if is_part and where[0] in self.things:
                having = {n: some for n, cells in having.items() if (some := set(filterfalse(self._mentions, cells)))}
            is_free = where[0] in left if is_part else self.explained.isdisjoint(where)
            is_free = is_free and self.in_names.isdisjoint(where)
            if having and is_free and (is_part or self._is_value(where, having)):
                number = self._column_of(having, where)
                by_column.setdefault(number, []).append((where, having[number]))
                self.explained.update(where)
                self.by_cells.update(where)
        for number, values in by_column.items():
            places = sorted({n for where, _ in values for n in where})
            between = set(self.tokens[max(0, places[0] - 1) : places[-1]])
            combined: Callable[..., set[str]] = set.intersection if is_part else set.union
            cells = combined(*(cells for _, cells in values))
            # "January to March" is more than its two ends.
            if not is_part and len(cells) > 1 and WORDS["range"] & between:
                raise NotExplained
            self._add_cells(number, cells, places)

    def _mentions(self, cell: str) -> bool:
        """Return whether a cell only mentions the things asked for: "Repaint the rooms", "Coffee machine service"."""
        last = self.forms[self.things[-1]]
        behind = (match[1] for match in MODIFIER.finditer(cell) if match[2] not in JOINING)
        is_part = any(form_of(word.lower(), self.language) == last for word in behind)
        return is_part or not WORDS["articles"].isdisjoint(tokens_of(cell))

    def _add_cells(self, number: int, cells: Set[str], places: Sequence[int]) -> None:
        """Add a condition that a cell is one of some, or that it contains what the question says, if many do."""
        part = " ".join(self.originals[n] for n in places)
        containing = {cell for cell in self.columns[number].cells if part.casefold() in cell.casefold()}
        is_short = len(cells) > 2 and containing == cells
        self._add(number, "contains" if is_short else "=", [part] if is_short else sorted(cells), places)

    def _is_value(self, where: range, columns: Mapping[int, set[str]]) -> bool:
        """Return whether words are meant as a cell: "IT" is a department, "it" nothing, and 12 no name."""
        tokens = [self.tokens[n] for n in where]
        if len(where) == 1 and tokens[0] in JOINING:
            original = self.originals[where[0]]
            return where[0] > 0 and original.isupper() and any(original in cells for cells in columns.values())
        return any(word not in STOP_WORDS and not word.isdigit() for word in tokens)

    def _column_of(self, columns: Collection[int], where: range) -> int:
        """Return which of several columns a value is in: the one whose name is beside it."""
        beside = self.named([where[0] - 2, where[0] - 1, where[-1] + 1])
        before = [one for one in self.tokens[: where[0]] if one not in WORDS["articles"]][-1:]
        named = [n for n in columns if n in beside or tokens_of(self.columns[n].name) == before]
        return self._only(columns if len(columns) == 1 else named)

    def _only(self, *choices: Collection[int]) -> int:
        """Return the column of the first of several choices that has just one."""
        for some in choices:
            if len(some) == 1:
                return next(iter(some))
        raise NotExplained

    def read_compared(self, about: Set[str]) -> None:
        """Read "after May 2025" and "over 500 euros", of the column named behind it, or before it, or the only one."""
        for signs, pattern in DATES.items():
            for match, where in list(self.find(pattern)):
                texts = list(filter(None, match.groups()))
                dates = self.of_kind("time" if ":" in texts[0] else "date")
                if dates and not self._is_counted(where) and about.isdisjoint(texts):
                    number = self._only(self._named_of(dates), dates)
                    self._compare(number, signs, self._dates(texts, number), where)
        for signs, pattern in FIGURES.items():
            for match, where in list(self.find(pattern)):
                figures = list(map(self._figure, filter(None, match.groups())))
                numbers, behind = self.of_kind("number"), range(where[-1] + 1, where[-1] + 4)
                named = (self._named_of(numbers, some) for some in (behind, range(where[0])))
                self._compare(self._only(*named, self.measured(), numbers), signs, figures, where)

        # "Room 2"
        for n in range(1, len(self.tokens)):
            beside = self._named_of(self.of_kind("number"), [n - 1]) if self.tokens[n].isdigit() else []
            if beside and self.explained.isdisjoint((n - 1, n)) and n not in self.in_names:
                self._compare(self._only(beside), "=", [self.tokens[n]], range(n - 1, n + 1))

    def _compare(self, number: int, signs: str, values: Sequence[str], where: range) -> None:
        for sign, value in zip(signs.split(), values, strict=True):
            self._add(number, sign, [value], where)  # type: ignore[arg-type]  # The signs are in table_words.json.

    def _figure(self, text: str) -> str:
        plain = text.strip("€$£ .,")
        return plain.replace(".", "") if self.language != "english" and THOUSANDS.fullmatch(plain) else plain

    def _named_of(self, columns: Collection[int], positions: Iterable[int] | None = None) -> list[int]:
        return [number for number in self.named(positions) if number in columns]

    def _is_counted(self, where: range) -> bool:
        """Return whether figures that might be years are followed by what they count: "up to 2000 euros"."""
        unit = self.forms[where[-1] + 1] if where[-1] + 1 < len(self.forms) else ""
        return unit in WORDS["currencies"] or any(self.columns[n].is_named(unit) for n in self.of_kind("number"))

    def _dates(self, texts: Sequence[str], number: int) -> list[str]:
        """Return dates as ISO 8601; months without a year must be in one year only."""
        dated = [date for cell in self.columns[number].cells if (date := date_of(cell))]
        years = {match[0] for text in texts if (match := YEAR.search(text))} or {date[:4] for date in dated}
        year = min(years) if len(years) == 1 else ""
        dates = [date_of(f"{one} {year}") or date_of(one) or (one if YEAR.fullmatch(one) else NO_YEAR) for one in texts]
        if year == NO_YEAR:
            return [text.title() for text in texts]
        # Of a column of years, no months are known.
        if any(date.startswith(NO_YEAR) for date in dates) or (not dated and not all(map(YEAR.fullmatch, dates))):
            raise NotExplained
        return dates

    def read_flags(self, skipped: Collection[int | None]) -> None:
        """Read columns that say yes or no, and those that are empty: "unpaid", "nobody assigned", "out of stock"."""
        for number, where in self.named().items():
            column, first = self.columns[number], min(where)
            is_read = number in skipped or any(one.column == column.name for one in self.where)
            if is_read or not (column.kind == "flag" or column.absent):
                continue
            is_denied = self._is_denied(first)
            if column.kind == "flag":
                cells = {cell for cell in column.cells if (cell.strip().casefold() in WORDS["yes"]) is not is_denied}
                self._append(number, "=", sorted(cells), where)
            elif is_denied:
                self._append(number, "=", column.absent, where)
            else:
                is_done = column.kind == "date" and self.tokens[0] in WORDS["ask for rows"]
                is_done = is_done or column.name.lower().split()[-1] in WORDS["after what was done"]
                if is_done or WITH.search(" ".join(self.tokens[:first])):
                    self._append(number, "!=", column.absent, where)

    def _is_denied(self, first: int) -> bool:
        """Return whether a word follows a negation, with nothing that counts between, and explain that."""
        for n in range(first - 1, max(-1, first - 1 - MAX_BETWEEN), -1):
            if n in self.denials:
                self.denials.discard(n)
                self.explained.add(n)
                return True
            if self.tokens[n] not in JOINING:
                return False
        return False

    def _add(self, number: int, comparison: Comparison, values: Sequence[str], where: Collection[int]) -> None:
        """Add a condition that the words before it may deny."""
        is_denied = comparison in DENIED and self._is_denied(min(where))
        self._append(number, DENIED[comparison] if is_denied else comparison, values, where)

    def _append(self, number: int, comparison: Comparison, values: Sequence[str], where: Collection[int]) -> None:
        if not values:
            raise NotExplained
        # A currency is explained by a column that has it.
        self.explained.update(n for n in where if self.forms[n] not in WORDS["currencies"])
        value = values[0] if len(values) == 1 else tuple(values)
        self.where.append(Condition(self.columns[number].name, comparison, value))
