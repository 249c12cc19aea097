"""Turn a question into a query of a table or a list, by rules. Pure.

A query is only made if every content word of the question is the name of a column that it uses, a cell, an operation
or the noun for the rows. The same says of a model's query which words it leaves unexplained.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from rag_assistant.retrieval import table_words
from rag_assistant.retrieval.dates import CHANGES, REVISIONS
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.table_query import DENIED, TOTAL, YEAR, Comparison, Condition, Operation, TableQuery
from rag_assistant.retrieval.table_words import ASKS, COMPARED, JOINING, WORDS, Column, Kind, forms_of, tokens_of
from rag_assistant.retrieval.tables import Table, headings_above

# Each word is compared with all cells.
MAX_QUESTION_WORDS = 60
NOT = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
UN = re.compile(r"\bun(?=([^\W\d_]+))", re.IGNORECASE)
THOUSANDS_DOT = re.compile(r"(?<=\d)\.(?=\d{3}\b)")


class NotExplained(Exception):
    """A part of a question that a table doesn't explain."""


def query_for(question: str, text: str, table: Table, document: str) -> tuple[TableQuery | None, int]:
    """Return a question as a query of a table or list, ``None`` if it leaves a word of the question unexplained.

    With it comes how many words of the question name the table: its ``document``, the headings above it, or its title.
    """
    is_unlike_list = table.is_list and not ASKS["rows"].search(question)
    names = "\n".join([headings_above(text, table.start)[1], table.title, table.head])
    # A table of revisions answers only what asks for them.
    is_beyond = all(one.search(names) and not one.search(question) for one in (REVISIONS, CHANGES))
    if is_beyond or is_unlike_list or ASKS["beyond"].search(question) or len(question.split()) > MAX_QUESTION_WORDS:
        return None, 0
    reader = _Reader(question, text, table, document)
    try:
        return reader.query(), sum(form in reader.about for form in reader.forms)
    except NotExplained:
        return None, 0


def unexplained(query: TableQuery, question: str, text: str, table: Table, document: str) -> list[str]:
    """Return the words of a question that a query of a table doesn't explain."""
    reader = _Reader(question, text, table, document)
    asks = [words for name, words in ASKS.items() if name not in ("rows", "beyond")]
    for pattern in (*asks, *(words for _, _, words in COMPARED)):
        reader.explained.update(n for _, where in reader.find(pattern) for n in where)
    return reader.unexplained(query)


class _Reader:
    """Reads a question as a query of one table: which of its words are explained so far, and the conditions."""

    def __init__(self, question: str, text: str, table: Table, document: str) -> None:
        self.language = language = language_of(tokens_of(question), table_words.LANGUAGES, 1) or "english"
        self.columns, self.is_list = table_words.columns_of(text, table, language), table.is_list
        names = " ".join([document.rpartition(".")[0], *headings_above(text, table.start), table.title])
        self.about = set(forms_of(names.replace("_", " "), language)) - JOINING
        self.fillers = {table_words.form_of(word, one) for one in table_words.LANGUAGES for word in WORDS["fillers"]}
        question = NOT.sub(" not", question if language == "english" else THOUSANDS_DOT.sub("", question))
        flags = tuple(word for one in self.columns if one.kind == "flag" for word in one.words)
        question = UN.sub(lambda match: "not " if match[1].lower().startswith(flags) else match[0], question)
        self.originals = table_words.TOKEN.findall(question)
        self.tokens = [word.lower() for word in self.originals]
        # Revenue is money, unless something is called that.
        revenue = WORDS["revenue"].difference(self.about, *(one.words for one in self.columns))
        self.forms = ["money" if form in revenue else form for form in forms_of(question, language)]
        # The positions of words that are explained, of those that are cells, and so name no column, and of negations.
        self.explained, self.by_cells = set[int](), set[int]()
        self.denials = {where[0] for _, where in self.find(ASKS["negation"])}
        self.where: list[Condition] = []
        # The things that are asked for: "which coffee machines".
        starts = (where[-1] + 1 for match, where in self.find(ASKS["rows"]) if match[0] not in WORDS["people"])
        start, end = next(starts, len(self.tokens)), len(self.tokens)
        self.things = range(start, next((n for n in range(start, end) if self.tokens[n] in JOINING), end))

    def query(self) -> TableQuery:
        """Return the question as a query. Raises NotExplained."""
        self._read_compared()
        self._read_cells()
        operation, column, group = self._operation()
        self._read_parts()
        self._read_flags((column, group))
        names = [one.name if one else None for one in (column, group)]
        query = TableQuery(1, operation, names[0], tuple(self.where), group_by=names[1])
        has_rows = self.where or self.is_list or ASKS["all"].search(" ".join(self.tokens))
        is_empty = operation == "list" and (group or not has_rows)
        # Each negation belongs to a condition, and some word is the table's: that of cells which rows don't have isn't.
        left = self.denials - self.explained or self.unexplained(query)
        absent = " ".join(value for one in self.where if one.comparison not in DENIED for value in one.values)
        is_nameless = self.is_list and not self.named()
        if is_empty or left or is_nameless or self.own.issubset(forms_of(absent, self.language)):
            raise NotExplained
        return query

    def unexplained(self, query: TableQuery) -> list[str]:
        """Return the content words that a query doesn't explain: the name of a column that it doesn't use, too."""
        used = {query.column, query.group_by, self.columns[0].name, *(one.column for one in query.where)}
        # Rows that are only listed have all columns.
        columns = [one for one in self.columns if query.operation == "list" or one.kind == "key" or one.name in used]
        values = " ".join(value for one in query.where for value in one.values)
        own = self.about.union(forms_of(values, self.language), *(one.words for one in columns))
        words = [n for n, word in enumerate(self.tokens) if word not in JOINING]
        self.own = own.intersection(self.forms[n] for n in words)
        # What is done says nothing of the rows, but what was done may not have been in all.
        explaining = own.union(self.fillers, WORDS["verbs"] if "did" not in self.tokens else ())
        left = [n for n in words if n not in self.explained and explaining.isdisjoint((self.tokens[n], self.forms[n]))]
        return [self.tokens[n] for n in left]

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], range]]:
        """Yield where a pattern matches unexplained words, with the positions of these."""
        text = " ".join("|" if n in self.explained else word for n, word in enumerate(self.tokens))
        for match in pattern.finditer(text):
            yield match, range(text.count(" ", 0, match.start()), text.count(" ", 0, match.end()) + 1)

    def _take(self, name: str) -> tuple[str, range] | None:
        """Return the first words that ask for something, and explain them."""
        match, where = next(self.find(ASKS[name]), ("", range(0)))
        self.explained.update(where)
        return (match[0], where) if match else None

    def named(self, positions: Iterable[int] | None = None) -> dict[Column, set[int]]:
        """Return which columns are named at which positions; of several that share a word, those with most words."""
        free = {n for n, word in enumerate(self.tokens) if n not in self.by_cells and word not in JOINING}
        among = free.intersection(range(len(self.forms)) if positions is None else positions)
        at = {one: {n for n in free if self.forms[n] in one.words} for one in self.columns}
        rank = {one: len({self.forms[n] for n in where}) for one, where in at.items()}
        best = {n: max((rank[one] for one in at if n in at[one]), default=None) for n in among}
        chosen = {one: {n for n in where & among if rank[one] == best[n]} for one, where in at.items()}
        return {one: where for one, where in chosen.items() if where}

    def _only(self, kind: Kind, *places: Iterable[int]) -> Column:
        """Return the only column of a kind that is named in the first of some places with one, or else that exists."""
        for some in (*map(self.named, (*places, None)), self.columns):
            if len(of_kind := [one for one in some if one.kind == kind]) == 1:
                return of_kind[0]
        raise NotExplained

    def _read_compared(self) -> None:
        """Read "after May 2025" and "over 500 euros", of the column named behind it, or before it, or the only one."""
        for kind, signs, pattern in COMPARED:
            for match, where in list(self.find(pattern)):
                values = [one.strip("€$£ .,") for one in match.groups() if one]
                if signs == ("=",) and not any(one.kind == kind for one in self.columns):
                    continue  # A month may be a cell, and the name of a document have the year.
                column = self._only(kind, range(where[-1] + 1, where[-1] + 4), range(where[0]))
                if kind == "date" and not all(map(YEAR.search, values)):  # It is that of the other, or of all cells.
                    years = set(YEAR.findall(match[0]) or YEAR.findall(" ".join(column.cells)))
                    if len(years) > 1:
                        raise NotExplained
                    values = [one if YEAR.search(one) else " ".join([one, *years]) for one in values]
                for sign, value in zip(signs, values, strict=True):
                    self._add(column, sign, [value.title()], where)

    def _read_cells(self) -> None:
        """Read the words that are all of a cell, the longest first."""
        for words in range(len(self.forms), 0, -1):
            for where in (range(n, n + words) for n in range(len(self.forms) - words + 1)):
                for column, cells in self._value_at(where, tuple(self.forms[where[0] : where[-1] + 1])):
                    self._add(column, "=", sorted(cells), where)

    def _read_parts(self) -> None:
        """Read the words that are left as parts of cells. "Which meeting rooms" are no "Repaint the rooms"."""
        for n, form in enumerate(self.forms):
            is_free = form not in self.about | self.fillers and n not in self.things[-1:]
            for column, cells in self._value_at(range(n, n + 1), ("", form)) if is_free else ():
                words = self.originals[n], self.tokens[n].removesuffix("s")
                parts = [one for one in words if column.with_part(one) == cells]
                self._add(column, "contains", parts[:1], [n])

    def _value_at(self, where: range, phrase: tuple[str, ...]) -> list[tuple[Column, set[str]]]:
        """Return the column and its cells that words mean, if they do, and explain the words.

        "IT" is a department, "it" nothing, 12 no name, and a column's name none of its cells.
        """
        having = {one: cells for one in self.columns if (cells := one.by_words.get(phrase))}
        original = self.originals[where[0]]
        is_capital = where[0] > 0 and original.isupper() and any(original in cells for cells in having.values())
        is_name = any(self.tokens[n] not in JOINING and not self.tokens[n].isdigit() for n in where)
        is_value = is_capital or (is_name and (len(where) > 1 or not self.named(where)))
        if not having or not is_value or not self.explained.isdisjoint(where):
            return []
        # Of several columns, it is the one that is named beside it.
        beside = having.keys() & self.named((where[0] - 2, where[0] - 1, where[-1] + 1))
        is_total = any(TOTAL.fullmatch(cell) for cells in having.values() for cell in cells)
        if is_total or (len(having) > 1 and len(beside) != 1):
            raise NotExplained
        self.explained.update(where)
        self.by_cells.update(where)
        return [(one, cells) for one, cells in having.items() if len(having) == 1 or one in beside]

    def _read_flags(self, used: Collection[Column | None]) -> None:
        """Read columns that say yes or no, and those that are empty: "unpaid", "nobody assigned", "out of stock"."""
        keys = {one.name for one in self.columns if one.kind == "key"}
        is_lookup = any(one.column in keys for one in self.where)
        for column, where in self.named(n for n, form in enumerate(self.forms) if form not in self.about).items():
            if column not in used and all(one.column != column.name for one in self.where):
                yes, no, absent = map(column.saying, ("yes", "no", "absent"))
                if (column.kind == "flag" or absent) and self._is_denied(min(where)):
                    self._add(column, "=", no or absent, where)  # What is empty is only a no where nothing else is one.
                elif column.kind == "flag":
                    self._add(column, "=", yes, where)
                elif absent and not is_lookup:  # Perhaps only the others are meant: "all vans with a driver".
                    raise NotExplained

    def _is_denied(self, first: int) -> bool:
        """Return whether a word follows a negation, with nothing that counts between, and explain that."""
        left = self.denials - self.explained
        before = [n for n in left if n < first and JOINING.issuperset(self.tokens[n + 1 : first])]
        self.explained.update(before)
        return len(before) == 1

    def _add(self, column: Column, comparison: Comparison, values: Sequence[str], where: Collection[int]) -> None:
        """Add a condition, which the words before it may deny."""
        if comparison in DENIED and self._is_denied(min(where)):
            comparison = DENIED[comparison]
        opposed = (one.comparison for one in self.where if one.column == column.name)
        if not values or any((one in DENIED) is not (comparison in DENIED) for one in opposed):
            raise NotExplained
        # A unit is explained by a column that has it.
        self.explained.update(n for n in where if self.forms[n] not in WORDS["units"])
        condition = Condition(column.name, comparison, values[0] if len(values) == 1 else tuple(values))
        self.where.append(condition)

    def _operation(self) -> tuple[Operation, Column | None, Column | None]:
        """Return what is asked to be done, with which column, and by which the rows are grouped for it."""
        noun = [n for n in self.things if self.forms[n] not in self.about][:1]
        requested = next((one for one in self.named(noun) if one.kind == "text"), None)
        others = [n for n, form in enumerate(self.forms) if form not in self.about]
        group, has_figures = self._group(), any(one.kind == "number" for one in self.named())
        count, average, total = self._take("count"), self._take("average"), self._take("sum")
        if average:
            return "average", self._only("number", others), group if group and group.kind == "text" else None
        extremes: tuple[Operation, Operation] = ("largest", "smallest")
        for operation in extremes:
            if extreme := self._take(operation):
                # The cheapest has a price.
                if extreme[0] in table_words.UNITS and not self.named(extreme[1]):
                    raise NotExplained
                if ASKS["by date"].search(extreme[0]):
                    # The oldest work is a thing, not what is done.
                    if self.fillers.intersection(self.forms[extreme[1][-1] + 1 : extreme[1][-1] + 2]):
                        raise NotExplained
                    return operation, self._only("date"), None
                group = requested if ASKS["number of"].fullmatch(extreme[0]) else None
                return operation, self._only("number", others) if has_figures or not group else None, group
        behind = range(count[1][-1] + 1, count[1][-1] + 3) if count else ()
        counted = {n for n in behind if self.fillers.isdisjoint(self.forms[n : n + 1])}
        compared = {one.column for one in self.where}
        has_counted = any(one.kind == "number" and one.name not in compared for one in self.named(counted))
        is_ungrouped = WORDS["each"].intersection(self.tokens) and not group and (count or total or has_figures)
        # Of a cell's thing, a row may have several.
        has_several = any(one.kind == "number" and "quantity" in one.words for one in self.columns)
        is_thing = count and not (total or has_counted) and self.things and self.by_cells.issuperset(self.things)
        if is_ungrouped or (is_thing and has_several):
            raise NotExplained
        if total or has_counted or (has_figures and not count and (group or self._take("how much"))):
            return "sum", self._only("number", counted, others), group
        if requested and not group:
            return "values", requested, None
        return "count" if count else "list", None, group

    def _group(self) -> Column | None:
        """Return the column by whose values rows are to be grouped: "per supplier", but not "per supplier order"."""
        for _, where in self.find(ASKS["per"]):
            behind, after = range(where[-1] + 1, where[-1] + 2), self.forms[where[-1] + 2 : where[-1] + 3]
            groups = [one for one in self.named(behind) if one.kind in ("text", "key")]
            if len(groups) == 1 and not (self.about | self.columns[0].words).intersection(after):
                self.explained.update(where, behind)
                return groups[0]
        return None
