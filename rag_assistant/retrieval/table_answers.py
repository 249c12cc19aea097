"""Turn a question into a query of a table or a list, by rules. Pure.

A query is only made if every content word of the question is a column's name, a cell, an operation, or the noun for the
rows. The same says of a model's query which words it leaves unexplained.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from rag_assistant.retrieval import table_words
from rag_assistant.retrieval.table_conditions import Conditions, NotExplained
from rag_assistant.retrieval.table_query import Operation, QueryTooLarge, TableAnswer, TableQuery, run
from rag_assistant.retrieval.tables import LIST, Table, Tables, headings_above

COMPUTED = ("count", "sum", "average", "largest", "smallest")
# Each word is compared with all cells.
MAX_QUESTION_WORDS = 60

# What is done, with which column, and by which the rows are grouped for it.
Work = tuple[Operation, int | None, int | None]


def answer_from(question: str, text: str, table: Table, document: str, before: str = "") -> TableAnswer | None:
    """Return the answer of a table or list in a text, ``None`` if the question isn't entirely about it.

    The names of its ``document`` and of its sections also describe it. ``before`` is the question that a follow-up
    refers to.
    """
    query = query_for(question, text, table, document, before)
    try:
        return run(query, text, table) if query else None
    except QueryTooLarge:
        return None


def query_for(question: str, text: str, table: Table, document: str, before: str = "") -> TableQuery | None:
    """Return a question as a query of a table or list, ``None`` if it leaves a word of the question unexplained."""
    is_fragment = table_words.ASKS["follow-up"].match(question) or table_words.ASKS["referring"].search(question)
    earlier = query_for(before, text, table, document) if before and is_fragment else None
    is_unlike_list = table.is_list and not table_words.ASKS["rows"].search(question)
    is_long = len(question.split()) > MAX_QUESTION_WORDS
    if (is_fragment and not earlier) or table_words.ASKS["reason"].match(question) or is_unlike_list or is_long:
        return None
    try:
        return _Reader(question, text, table, document).query(earlier)
    except NotExplained:
        return None


def unexplained(query: TableQuery, question: str, text: str, table: Table, document: str) -> list[str]:
    """Return the words of a question that a query of a table doesn't explain."""
    reader = _Reader(question, text, table, document)
    reader.explain(*(table_words.ASKS[name] for name in (*COMPUTED, "money")), *table_words.FIGURES.values())
    used = {
        form for one in query.where for value in one.values for form in table_words.forms_of(value, reader.language)
    }
    reader.explained.update(n for n, form in enumerate(reader.forms) if form in used)
    return reader.unexplained(query)


def is_computed(question: str) -> bool:
    """Return whether a question asks for a computed figure: how many, how much in all, the largest."""
    return any(table_words.ASKS[name].search(question) for name in (*COMPUTED, "how much"))


def asks_for_rows(question: str) -> bool:
    """Return whether a question asks for rows, or for a figure of them: all, some, or each."""
    some = (*COMPUTED, "per", "all")
    return (
        any(table_words.ASKS[name].search(question) for name in some)
        or table_words.ASKS_FOR_ROWS.match(question) is not None
    )


def asks_for_everything(question: str) -> bool:
    """Return whether a question asks for all of a document, whatever that contains."""
    return table_words.ASKS_FOR_ALL.search(question) is not None


def needs_everything(question: str, texts: Sequence[str]) -> bool:
    """Return whether a question needs all of something, such as of a table or list in the first of ``texts``."""
    needs_rows = is_computed(question) or table_words.ASKS_FOR_ROWS.match(question)
    has_rows = needs_rows and any(LIST.search(text) or Tables(text).all for text in texts[:1])
    return asks_for_everything(question) or bool(has_rows)


class _Reader(Conditions):
    """Reads a question as a query of one table."""

    def __init__(self, question: str, text: str, table: Table, document: str) -> None:
        super().__init__(question, text, table)
        names = (document.rpartition(".")[0], *headings_above(text, table.start), table.title)
        self.about = set(table_words.forms_of(" ".join(names).replace("_", " "), self.language, table_words.JOINING))
        self.is_list, self.asks_for_all = table.is_list, table_words.ASKS["all"].search(question) is not None

    def query(self, earlier: TableQuery | None) -> TableQuery:
        """Return the question as a query; as part of one, it keeps what the ``earlier`` one says besides."""
        self.read_cells()
        self.read_compared(self.about)
        operation, column, group = self._work()
        self.read_flags((group, column))
        # Where there is no tenant, no tenant owes rent.
        for number in self.named(self.things):
            of_text = self.columns[number] if self.columns[number].kind == "text" else None
            if of_text and of_text.absent and all(one.column != of_text.name for one in self.where):
                self._append(number, "!=", of_text.absent, ())
        names = [None if n is None else self.columns[n].name for n in (column, group)]
        query = TableQuery(1, operation, names[0], tuple(self.where), group_by=names[1])
        self.unexplained(query)
        self.read_cells(self.fillers | self.about)
        own, named = {one.column for one in self.where}, self.named()
        others = [one for one in earlier.where if one.column not in own] if earlier else []
        query = replace(query, where=(*others, *self.where))
        is_all = self.is_list or (self.asks_for_all and (named or not self.about.isdisjoint(self.forms)))
        has_what = is_all or self.where or earlier or operation != "list"
        is_empty = not has_what or (self.is_list and not named) or (group is not None and operation == "list")
        # Each negation belongs to a condition.
        if is_empty or self.denials - self.explained or self.unexplained(query):
            raise NotExplained
        return replace(earlier, where=query.where) if earlier and operation == "list" else query

    def unexplained(self, query: TableQuery) -> list[str]:
        """Return the content words that a query doesn't explain: the name of a column that it doesn't use, too.

        Rows that are only listed have all columns, and what has a date in each row has happened to each.
        """
        self.explain(table_words.ASKS["document"])
        for name in ("people", "employees", "meeting"):
            if table_words.NAMES[name].search(" ".join([self.columns[0].name, *self.about])):
                self.explain(table_words.ASKS[name])
        own = {query.column, query.group_by, self.columns[0].name, *(one.column for one in query.where)}
        used = [one for one in self.columns if one.name in own]
        for measure in table_words.MEASURES:
            is_told = measure == "money" and query.operation in ("list", "count")
            if any(is_told or self.columns[n] in used for n in self.measuring(measure)):
                self.explain(table_words.ASKS[measure])
        past = [
            one
            for one in self.columns
            if one.kind in ("text", "date") and all(one.cells) and not table_words.NAMES["ahead"].search(one.name)
        ]
        columns = self.columns if query.operation == "list" else [*used, *past]
        # What is done says nothing of the rows, and what was done may not have been in all.
        explained = self.about | self.fillers
        verbs = table_words.WORDS["verbs"] if "did" not in self.tokens else ()
        left = [n for n in self.left() if explained.isdisjoint((self.tokens[n], self.forms[n]))]
        left = [n for n in left if not any(one.is_named(self.forms[n]) for one in columns)]
        return [self.tokens[n] for n in left if self.tokens[n] not in verbs]

    def _work(self) -> Work:
        """Return what is asked to be done, with which column, and by which the rows are grouped for it."""
        count, average, total = self.take("count"), self.take("average"), self.take("sum")
        extreme = None if average else self.take("largest") or self.take("smallest")
        noun = self._behind(count[1]) if count else None
        group, numbers = self._group(), self.of_kind("number")
        if average:
            return "average", self._figures(), group or None
        if extreme:
            return self._compared(extreme[0], self._behind(extreme[1]))
        if total or self._asks_for_sum(noun) or (group is not None and not count and self._named_of(numbers)):
            return "sum", self._figures(noun), group
        if group is None:
            named = self.named()
            nouns = self._asked() if count is None else [n for n, where in named.items() if noun in where]
            if nouns and nouns[0] and self.columns[nouns[0]].repeats:
                self.explained.update(named[nouns[0]])
                return "values", nouns[0], None
        return ("count", None, group) if count else ("list", None, group or None)

    def _group(self) -> int | None:
        """Return the column by whose values rows are to be grouped: "per supplier"; "per room booking", the first."""
        for _, where in self.find(table_words.ASKS["per"]):
            named = self.named(range(where[-1] + 1, where[-1] + 3))
            groups = {max(at): n for n, at in named.items() if n == 0 or self.columns[n].repeats}
            if groups:
                self.explained.update(where, *named.values())
                return groups[max(groups)]
        return None

    def _figures(self, noun: int | None = None, superlative: str = "") -> int:
        """Return the column of figures that is meant: the named one, the one of its kind, or the only one."""
        numbers = self.of_kind("number")
        of_noun = self._named_of(numbers, [] if noun is None else [noun])
        return self._only(of_noun, self._named_most(numbers), self.measured(superlative), self._named_of(numbers))

    def _named_most(self, columns: Sequence[int]) -> list[int]:
        """Return the columns of which most words are named, besides those that the document is about."""
        positions = [n for n, form in enumerate(self.forms) if form not in self.about]
        named = {number: len(where) for number, where in self.named(positions).items() if number in columns}
        return [number for number, words in named.items() if words == max(named.values())]

    def _behind(self, where: range) -> int | None:
        """Return the position of the first content word behind some others."""
        behind = range(where[-1] + 1, len(self.tokens))
        after = next((n for n in behind if self.tokens[n] not in table_words.WORDS["before a noun"]), None)
        return after if after is not None and self.tokens[after] not in table_words.JOINING else None

    def _is_of_rows(self, noun: int) -> bool:
        return 0 in self.named([noun]) or self.forms[noun] in self.about

    def _asks_for_sum(self, noun: int | None) -> bool:
        """Return whether amounts are to be added up: "how many hours", "how much did we spend"."""
        if noun is None:
            has_figures = table_words.ASKS["money"].search(self.text) or self._named_of(self.of_kind("number"))
            return bool(table_words.ASKS["how much"].search(self.text) and has_figures)
        quantities = self.measuring("quantity")
        is_quantity = table_words.ASKS["quantity"].match(self.tokens[noun]) or (
            self._named_of(quantities) and not self._is_of_rows(noun)
        )
        return bool(self._named_of(self.of_kind("number"), [noun]) or (quantities and is_quantity))

    def _compared(self, word: str, noun: int | None) -> Work:
        """Return how rows are compared, by which column, and the one by which they are grouped for that."""
        operation: Operation = "largest" if table_words.ASKS["largest"].fullmatch(word) else "smallest"
        is_since = word in ("longest", "längsten") and self.take("since")
        if is_since or table_words.ASKS["by date"].search(word):
            dates = self.of_kind("date") or self.of_kind("time")
            past = [n for n in dates if not table_words.NAMES["ahead"].search(self.columns[n].name)]
            origin = [n for n in dates if table_words.NAMES["origin"].search(self.columns[n].name)]
            if any(table_words.NAMES["age"].search(one.name) for one in self.columns):
                raise NotExplained
            column = self._only(self._named_most(dates), origin, past, dates)
            return "smallest" if is_since else operation, column, None
        is_number_of = table_words.ASKS["number of"].fullmatch(word) is not None
        group = next((n for n in self._asked() if is_number_of and self.columns[n].repeats), None)
        is_figure = noun is None or self._named_of(self.of_kind("number"), [noun])
        if is_number_of and noun is not None and not is_figure:
            if group is None or not (noun in self.by_cells or self._is_of_rows(noun)):
                raise NotExplained
            return operation, None, group
        return operation, self._figures(superlative=word), group

    def _asked(self) -> list[int]:
        """Return the column whose values a question asks for: which X, or which Y X where the document is about Y."""
        start = next((where[-1] + 1 for _, where in self.find(table_words.ASKS["rows"])), len(self.forms))
        noun = next((n for n in range(start, len(self.forms)) if self.forms[n] not in self.about), start)
        return [number for n in (noun, start) for number in self.named([n])][:1]
