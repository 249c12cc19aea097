"""Turn a question into a query of a table or a list, by rules. Pure.

A query is only made if every content word of the question is a column's name, a cell, an operation, or the noun for the
rows. The same says of a model's query which words it leaves unexplained.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from rag_assistant.retrieval.table_conditions import COMPARED, Conditions, NotExplained
from rag_assistant.retrieval.table_query import (
    Operation,
    QueryTooLarge,
    TableAnswer,
    TableQuery,
    parsed,
    run,
    usable_rows,
)
from rag_assistant.retrieval.table_words import (
    FILLERS,
    JOINING,
    PEOPLE,
    PERSONS,
    PHRASES,
    PIECES,
    QUANTITY,
    STAFF,
    WORKERS,
    Speech,
    Words,
)
from rag_assistant.retrieval.tables import Table, headings_above

COUNT = re.compile(r"\b(?:how many|how often|number of|count(?: up)?|wie ?viele|wie oft|anzahl)\b", re.IGNORECASE)
SUM = re.compile(
    r"\b(?:(?:grand )?sum|total|totals|altogether|together|in all|in total|overall|add(?:ed|s)? up|combined|summe|"
    r"gesamt\w*|insgesamt|zusammen)\b",
    re.IGNORECASE,
)
AVERAGE = re.compile(r"\b(?:(?:on )?average|mean|(?:im )?(?:durch)?schnitt\w*)\b", re.IGNORECASE)
# "The first month" isn't one of several.
NOT_A_TIME = r"(?!\s+(?:day|week|month|quarter|year|time|tage?|woche|monat|quartal|jahr)s?\b)"
LARGEST = re.compile(
    r"\b(?:largest|highest|biggest|greatest|heaviest|maximum|max|most(?: (?:expensive|costly|recent))?|longest|latest|"
    rf"newest|last{NOT_A_TIME}|dearest|priciest|costliest|youngest|größte\w*|höchste\w*|schwerste\w*|längste\w*|teuerste\w*|"
    rf"meisten?|neueste\w*|jüngste\w*|letzte[mnrs]?{NOT_A_TIME})\b",
    re.IGNORECASE,
)
SMALLEST = re.compile(
    r"\b(?:smallest|lowest|lightest|minimum|min|least(?: expensive)?|fewest|cheapest|shortest|earliest|oldest|"
    rf"first{NOT_A_TIME}|kleinste\w*|niedrigste\w*|leichteste\w*|kürzeste\w*|billigste\w*|günstigste\w*|wenigsten|"
    rf"älteste\w*|früheste\w*|erste[mnrs]?{NOT_A_TIME})\b",
    re.IGNORECASE,
)
BY_DATE = re.compile(
    r"latest|newest|recent|last|earliest|oldest|first|youngest|neueste|jüngste|älteste|früheste|letzte|erste", re.I
)
BY_NUMBER_OF = re.compile(r"most|fewest|least|meisten?|wenigsten", re.IGNORECASE)
# Words for money, and those among them that mean a sum of several amounts.
MONEY = re.compile(
    r"\b(?:expensive|costly|cheap|dear|priced?|prices|costs?|worth|spend|spent|spends|pay|paid|pays|revenue|earn\w*|"
    r"money|come to|comes to|kosten|kostet\w*|gekostet|teuer|preis\w*|ausgegeben|bezahlt|umsatz|geld)\b",
    re.IGNORECASE,
)
MONEY_BY_SUPERLATIVE = re.compile(r"expensive|costl|dear|pric|cheap|teuer|billig|günstig")
SPENT = re.compile(r"\b(?:spen[dt]\w*|paid|pay|did|have|revenue|earn\w*|come to|ausgegeben|bezahlt|gekostet)\b")
# Which of them say no more: what was paid, or not, is another thing.
COSTS = re.compile(MONEY.pattern.replace("|paid", "").replace("|bezahlt", ""), re.IGNORECASE)
HOW_MUCH = re.compile(r"\b(?:how much|what|wie ?viel|was)\b")
ADJECTIVES = WEIGHT, LENGTH, AGE = tuple(
    (re.compile(asks), re.compile(name, re.IGNORECASE))
    for asks, name in (
        (r"\b(?:heav|light|weigh|schwer|leicht|wieg)", r"weight|gewicht|\bkg\b"),
        (r"\b(?:long|short|läng|kürz|lange?\b|took\b)", r"length|duration|hours|days|minutes|länge|dauer|stunden|tage"),
        (r"\b(?:old|young|ält|jüng)", r"\bage\b|\balter\b"),
    )
)
PER = re.compile(r"\b(?:per|(?:for |in |at |by |does )?(?:each|every)|by|pro|je|jede[rms]?|nach)\b")
ALL = re.compile(
    r"\b(?:list|all|every(?:one|thing)?|do (?:we|you|i) have|are there|exist|alle[sr]?|haben wir|gibt es|jede[rs]?)\b",
    re.I,
)
# What a list answers: "what is the default?" asks for one thing.
ASKS_FOR_LIST = re.compile(
    r"\W*(?:\w+ ){0,4}?(?:which|what(?! (?:is|was) (?:the|an?|my|our|your|its)\b)|who|list|show|name|give|how many|"
    r"welche\w*|wer|wie ?viele?|zeige?|nenne?)\b|.*\b(?:list|name|give|show|nenne|zeige?)\b.*\b(?:all|every\w*|alle)\b",
    re.IGNORECASE,
)
ASKED = re.compile(
    r"\b(?:which|what|whose|list|show|name|give me|welche\w*|nenne|zeige)"
    r"(?: (?:me|us|all|the|of|our|different|distinct|other|mir|alle|der|die|das))*\b"
)
DOCUMENT = re.compile(
    r"\b(?:list|register|table|file|document|page|report|statement|minutes|meeting|sheet|overview|tabelle|liste|datei)\b"
)
FOLLOWS = re.compile(r"\W*(?:and|or|what about|how about|und|oder|was ist mit|wie ist es mit)\b", re.IGNORECASE)
REFERS = frozenset("it they them these he she him one ones davon ihn ihnen".split())
WHY = re.compile(r"\W*(?:why|how (?:do|can|should|to|does)|warum|wieso|weshalb|wie (?:kann|soll|wird))\b", re.I)
HOW_MANY = re.compile(r"\bhow (?:much|many)\b|\bwie ?viele?\b")
BEFORE_A_NOUN = frozenset("of the our my different distinct all other total der die das unsere".split())
BY_AGE = re.compile(r"old|new|young|ält|neu|jüng")
UPCOMING = re.compile(r"next|due|until|end|expir|renew|deadline|nächst|fällig|frist|ablauf", re.IGNORECASE)
SINCE = re.compile(r"\b(?:been|ago|dabei)\b")
Match = tuple[re.Match[str], range]


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
    reader = _Reader(question, text, table, document)
    is_fragment = FOLLOWS.match(question) is not None or any(word in REFERS for word in re.findall(r"\w+", question))
    earlier = query_for(before, text, table, document) if before and is_fragment else None
    return reader.query(earlier) if not is_fragment or earlier else None


def unexplained(query: TableQuery, question: str, text: str, table: Table, document: str) -> list[str]:
    """Return the words of a question that a query of a table doesn't explain."""
    reader = _Reader(question, text, table, document)
    reader.explain_used(query)
    return reader.left(query)


def is_computed(question: str) -> bool:
    """Return whether a question asks for a computed figure: how many, how much in all, the largest."""
    return any(kind.search(question) for kind in (COUNT, SUM, AVERAGE, LARGEST, SMALLEST))


class _Reader:
    """Reads a question as a query of one table."""

    def __init__(self, question: str, text: str, table: Table, document: str) -> None:
        head, rows = parsed(text, table)
        speech = Speech(question)
        self._usable = sorted(usable_rows(rows))
        cells = zip(*(rows[n] for n in self._usable), strict=True) if self._usable else ([] for _ in head)
        self._columns = [speech.column(name, column) for name, column in zip(head, cells, strict=True)]
        self._usable = list(range(len(self._usable)))
        title, heading = headings_above(text, table.start)
        self._about = set(
            speech.telling(f"{document.rpartition('.')[0]} {title} {heading} {table.title}".replace("_", " "))
        )
        vocabulary = self._about.union(*(column.words for column in self._columns))
        for column in self._columns:
            if column.kind == "text":
                vocabulary.update(form for cell in set(column.cells) for form in speech.forms(cell))
        self._question, self._is_list = question, table.is_list
        self._words = Words(question, speech, vocabulary)
        self._conditions = Conditions(self._words, speech, self._columns, self._usable, self._about)

    def query(self, earlier: TableQuery | None) -> TableQuery | None:
        """Return the question as a query; as part of one, it keeps what the ``earlier`` one says besides."""
        if not self._usable or WHY.match(self._question) or (self._is_list and not ASKS_FOR_LIST.match(self._question)):
            return None
        try:
            return self._query(earlier)
        except NotExplained:
            return None

    def left(self, query: TableQuery) -> list[str]:
        """Return the content words that a query doesn't explain: the name of a column that it doesn't use, too.

        Rows that are only listed have all columns, and what has a date in each row has happened to each.
        """
        first = " ".join([self._columns[0].name, *self._about])
        persons = [PEOPLE, STAFF] if WORKERS.search(first) else [PEOPLE] if PERSONS.search(first) else []
        for kind in (*persons, DOCUMENT, PHRASES):
            self._words.explain(n for _, where in self._words.find(kind) for n in where)
        used = {query.column, query.group_by, self._columns[0].name, *(one.column for one in query.where)}
        self._explain_adjectives({one.column for one in query.where})
        columns = [
            one
            for one in self._columns
            if query.operation == "list" or one.name in used or (one.is_filled and not UPCOMING.search(one.name))
        ]
        explained = self._about.union(FILLERS, *(one.words | one.units for one in columns))
        return [
            word
            for n in self._words.left()
            if explained.isdisjoint((word := self._words.tokens[n], self._words.forms[n]))
        ]

    def explain_used(self, query: TableQuery) -> None:
        """Explain the words of an operation, and the cells that a query compares with."""
        for kind in (COUNT, SUM, AVERAGE, LARGEST, SMALLEST, COMPARED, MONEY):
            self._words.explain(n for _, where in self._words.find(kind) for n in where)
        used = {form for one in query.where for value in one.values for form in Speech(self._question).forms(value)}
        self._words.explain(n for n, form in enumerate(self._words.forms) if form in used)

    def _query(self, earlier: TableQuery | None) -> TableQuery:
        words, conditions = self._words, self._conditions
        conditions.read_cells()
        conditions.read_dates()
        conditions.read_figures()
        count, average = words.take(COUNT), words.take(AVERAGE)
        adds_up = words.take(SUM)
        extreme = None if average else words.take(LARGEST) or words.take(SMALLEST)
        named = conditions.named()
        group = self._group(named)
        column: int | None = None
        operation: Operation = "list"
        if average:
            operation, column = "average", self._figures(named)
        elif extreme:
            operation, column, group = self._compared(extreme, named)
        elif adds_up or self._asks_for_sum(count, named):
            operation, column = "sum", self._figures(named, count)
        elif count:
            operation = "count"
        if operation in ("list", "count") and group is None:
            column = self._distinct(named, count)
            operation = "values" if column is not None else operation
        if any(one.is_money for one in self._columns):
            is_paid = operation not in ("list", "count") or any(
                one.column == column.name for one in conditions.where for column in self._columns if column.is_money
            )
            matches = words.find(MONEY if is_paid else COSTS)
            words.explain(n for _, where in matches for n in where)
        conditions.read_flags([one for one in (group, column) if one is not None])
        conditions.read_words(FILLERS | self._about_words() | set(DOCUMENT.findall(words.text)))
        conditions.finish()
        if (group is not None and operation == "list") or (self._is_list and not named):
            raise NotExplained
        conditioned = tuple(conditions.where)
        if earlier is not None:
            own = {one.column for one in conditioned}
            conditioned = (*(one for one in earlier.where if one.column not in own), *conditioned)
        names = [None if n is None else self._columns[n].name for n in (column, group)]
        is_all = self._is_list or (ALL.search(self._question) and (set(named) or self._has_row_noun()))
        if operation == "list" and earlier is None and not conditioned and not is_all:
            raise NotExplained
        query = TableQuery(1, operation, names[0], conditioned, group_by=names[1])
        if self.left(query):
            raise NotExplained
        return replace(earlier, where=conditioned) if earlier is not None and operation == "list" else query

    def _about_words(self) -> set[str]:
        return {word for word, form in zip(self._words.tokens, self._words.forms, strict=True) if form in self._about}

    def _has_row_noun(self) -> bool:
        return not self._about.isdisjoint(self._words.forms)

    def _group(self, named: Mapping[int, set[int]]) -> int | None:
        """Return the column by whose values the rows are to be grouped: "per supplier"."""
        for _, where in self._words.find(PER):
            behind = [n for n in range(where[-1] + 1, where[-1] + 4) if n < len(self._words.tokens)]
            for number, positions in named.items():
                if self._columns[number].repeats and behind and not positions.isdisjoint(behind[:2]):
                    self._words.explain([*where, *positions])
                    return number
        return None

    def _figures(self, named: Mapping[int, set[int]], count: Match | None = None, superlative: str = "") -> int:
        """Return the column of figures that is meant: the named one, the one of money or quantity, or the only one."""
        numbers = [n for n, column in enumerate(self._columns) if column.kind == "number"]
        noun = self._behind(count) if count else None
        by_adjective: list[int] = []
        for asks, name in ADJECTIVES:
            if asks.search(f"{superlative} {self._words.text}"):
                by_adjective += [n for n in numbers if name.search(self._columns[n].name)]
        self._explain_adjectives({self._columns[n].name for n in by_adjective})
        of_money = [n for n in numbers if self._columns[n].is_money]
        quantities = [n for n in numbers if QUANTITY.search(self._columns[n].name) and n not in of_money]
        is_money, is_quantity = self._words.take(MONEY), self._words.take(PIECES) or HOW_MANY.search(self._words.text)
        usual = of_money if is_money else quantities if is_quantity else by_adjective or of_money or numbers
        for some in ([n for n in numbers if noun in named.get(n, ())], [n for n in named if n in numbers], usual):
            if len(some) == 1:
                return some[0]
            if len(some) > 1 and noun is None:
                break
        raise NotExplained

    def _explain_adjectives(self, names: Collection[str]) -> None:
        """Explain the adjectives and verbs of columns that are used: what weighs over 50 kg."""
        for asks, name in ADJECTIVES:
            if any(map(name.search, names)):
                self._words.explain(n for _, where in self._words.find(asks) for n in where)

    def _behind(self, match: Match) -> int | None:
        """Return the position of the first content word behind some others."""
        tokens, after = self._words.tokens, match[1][-1] + 1
        while after < len(tokens) and tokens[after] in BEFORE_A_NOUN:
            after += 1
        return after if after < len(tokens) and tokens[after] not in JOINING else None

    def _asks_for_sum(self, count: Match | None, named: Mapping[int, set[int]]) -> bool:
        """Return whether amounts are to be added up: "how many hours", "how much did we spend"."""
        if count:
            noun = self._behind(count)
            if self._words.take(PIECES):
                return any(QUANTITY.search(column.name) for column in self._columns)
            is_noun = noun is None or noun in named.get(0, ()) or self._words.forms[noun] in self._about
            return any(
                QUANTITY.search(one.name) and one.kind == "number" and n in named and not is_noun
                for n, one in enumerate(self._columns)
            ) or any(noun in where and self._columns[n].kind == "number" for n, where in named.items())
        text = self._words.text
        return bool(HOW_MUCH.search(text) and "how much" in text and SPENT.search(text) and MONEY.search(text))

    def _compared(self, extreme: Match, named: Mapping[int, set[int]]) -> tuple[Operation, int | None, int | None]:
        """Return how rows are compared, by which column, and the one by which they are grouped for that."""
        word = extreme[0][0]
        operation: Operation = "largest" if LARGEST.fullmatch(word) else "smallest"
        numbers, dates, of_money = (
            [n for n, one in enumerate(self._columns) if kind in (one.kind, one.is_money)]
            for kind in ("number", "date", True)
        )
        if LENGTH[0].search(word) and self._words.take(SINCE):
            return "smallest", self._only(dates, named), None
        if BY_DATE.search(word):
            if AGE[0].search(word) and any(AGE[1].search(one.name) for one in self._columns):
                raise NotExplained
            past = [n for n in dates if not UPCOMING.search(self._columns[n].name)] if BY_AGE.search(word) else []
            return operation, self._only(past or dates, named), None
        noun = self._asked(named)
        group = noun if BY_NUMBER_OF.fullmatch(word) and noun is not None and self._columns[noun].repeats else None
        counted = self._behind(extreme) if BY_NUMBER_OF.fullmatch(word) else None
        is_figure = any(counted in named.get(n, ()) for n in numbers)
        if counted is not None and not is_figure and not MONEY.search(self._words.tokens[counted]):
            is_of_rows = counted in self._conditions.by_cells or counted in named.get(0, ())
            if group is None or not (is_of_rows or self._words.forms[counted] in self._about):
                raise NotExplained
            return operation, None, group
        if MONEY_BY_SUPERLATIVE.search(word):
            return operation, self._only(of_money, named), group
        return operation, self._figures(named, superlative=word), group

    def _only(self, columns: Sequence[int], named: Mapping[int, set[int]]) -> int:
        """Return the named one of some columns, or the only one."""
        some = [n for n in columns if n in named] or columns
        if len(some) != 1:
            raise NotExplained
        return some[0]

    def _asked(self, named: Mapping[int, set[int]]) -> int | None:
        """Return the column whose values a question asks for: which X, how many X."""
        for _, where in self._words.find(ASKED):
            behind = where[-1] + 1
            for number, positions in named.items():
                if behind in positions:
                    return number
        return None

    def _distinct(self, named: Mapping[int, set[int]], count: Match | None) -> int | None:
        """Return the column whose different values are asked for: "which suppliers do we have"."""
        behind = self._behind(count) if count else None
        noun = self._asked(named) if count is None else next((n for n, where in named.items() if behind in where), None)
        if not noun or not self._columns[noun].repeats:
            return None
        self._words.explain(named[noun])
        return noun
