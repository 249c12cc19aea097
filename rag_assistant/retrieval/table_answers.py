"""Turn a question into a query of a table or a list, by rules. Pure.

A query is only made if every content word of the question is a column's name, a cell, an operation, or the noun for the
rows. The same says of a model's query which words it leaves unexplained.
"""

import re

from msgspec.structs import replace

from rag_assistant.retrieval.table_conditions import FIGURES, Conditions, NotExplained
from rag_assistant.retrieval.table_query import Operation, QueryTooLarge, TableAnswer, TableQuery, run
from rag_assistant.retrieval.table_words import AMOUNT, JOINING, any_of, columns_of, fillers, forms_of, language_in
from rag_assistant.retrieval.tables import Table, headings_above

COUNT = any_of("how many|how often|number of|count(?: up)?|wie ?viele|wie oft|anzahl")
SUM = any_of(
    "(?:grand )?sum|totals?|altogether|together|in all|in total|overall|add(?:ed|s)? up|combined|summe|gesamt.*?|"
    "insgesamt|zusammen"
)
AVERAGE = any_of("(?:on )?average|mean|(?:im )?(?:durch)?schnitt.*?")
# "The first month" isn't one of several.
NOT_A_TIME = r"(?!\s+(?:day|week|month|quarter|year|time|tage?|woche|monat|quartal|jahr)s?\b)"
LARGEST = any_of(
    "largest|highest|biggest|greatest|heaviest|max(?:imum)?|most(?: (?:expensive|costly|recent))?|longest|latest|"
    "newest|dearest|priciest|costliest|youngest|(?:größ|höch|schwer|läng|teuer|neue|jüng)ste[mnrs]?|meisten?|"
    f"(?:last|letzte[mnrs]?){NOT_A_TIME}"
)
SMALLEST = any_of(
    "smallest|lowest|lightest|min(?:imum)?|least(?: expensive)?|fewest|cheapest|shortest|earliest|oldest|wenigsten|"
    "(?:klein|niedrig|leichte|kürze|billig|günstig|älte|frühe)ste[mnrs]?|"
    f"(?:first|erste[mnrs]?){NOT_A_TIME}"
)
OPERATIONS = (COUNT, SUM, AVERAGE, LARGEST, SMALLEST)
BY_DATE = re.compile(r"lat|new|recent|last|earl|old|first|young|neu|jüng|ält|früh|letzt|erste", re.IGNORECASE)
BY_AGE = any_of("age|alter")
BY_NUMBER_OF = re.compile(r"most|fewest|least|meisten?|wenigsten", re.IGNORECASE)
MONEY = any_of(
    "spen[dt]s?|paid|pays?|revenue|earn.*?|comes? to|ausgegeben|bezahlt|costs?|price[sd]?|worth|money|kosten|kostet.*?|"
    "gekostet|preis.*?|geld|umsatz|(?:expensive|costl|dear|pric|cheap|teuer|billig|günstig).*?"
)
PIECES = any_of("pieces?|how much|wie ?viel")
QUANTITY = re.compile(r"quantity|qty|pieces|units|stock|on hand|menge|anzahl|stück|bestand", re.IGNORECASE)
# Words of a question, and the names of the columns of figures that they mean.
KINDS = [
    (MONEY, AMOUNT),
    (any_of("(?:heav|light|weigh|schwer|leicht|wieg).*?"), re.compile(r"weight|gewicht|\bkg\b", re.IGNORECASE)),
    (any_of("(?:long|short|läng|kürz).*?|took"), re.compile("length|duration|hours|days|minutes|dauer", re.I)),
    (PIECES, QUANTITY),
]
BEFORE_A_NOUN = frozenset("of the our my different distinct all other total der die das unsere".split())
PER = any_of("per|(?:for |in |at |by |does )?(?:each|every)|by|pro|je|jede[rms]?|nach")
ALL = any_of("list|all|every.*?|do (?:we|you|i) have|are there|exist|alle[sr]?|haben wir|gibt es|jede[rs]?")
# What asks for rows, or for the values of a column: "what is the default?" asks for one thing.
ASKED = any_of(
    "(?:which|what(?! (?:is|was) (?:the|an?|my|our|your|its) )|whose?|list|show|name|give|how many|welche.*?|wer|"
    "wie ?viele?|nenne?|zeige?)(?: (?:me|us|all|the|of|our|different|distinct|other|mir|alle|der|die|das))*"
)
DOCUMENT = any_of("list|register|table|file|document|page|report|minutes|meeting|sheet|tabelle|liste|datei")
PEOPLE = any_of("people|persons?|personen|leute")
PERSONS = re.compile(r"\bname\b|employee|staff|member|guest|customer|mitarbeiter|mitglied|kunde", re.IGNORECASE)
# "Phone number", where a column is called "Phone".
OF_A_COLUMN = frozenset("number date name address".split())
FOLLOWS = re.compile(r"\W*(?:and|or|what about|how about|und|oder|was ist mit|wie ist es mit)\b", re.IGNORECASE)
REFERS = frozenset("it they them these he she him one ones davon ihn ihnen".split())
WHY = re.compile(r"\W*(?:why|how (?:do|can|should|to|does)|warum|wieso|weshalb|wie (?:kann|soll|wird))\b", re.I)
SINCE = any_of("been|ago|dabei")
# Each word is compared with all cells.
MAX_QUESTION_WORDS = 60
# Dates that lie ahead: nothing has happened yet.
AHEAD = re.compile(r"next|due|until|end|expir|renew|deadline|nächst|fällig|frist|ablauf", re.IGNORECASE)


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
    is_fragment = FOLLOWS.match(question) is not None or any(word in REFERS for word in re.findall(r"\w+", question))
    earlier = query_for(before, text, table, document) if before and is_fragment else None
    not_for_list = table.is_list and not ASKED.search(question)
    is_long = len(question.split()) > MAX_QUESTION_WORDS
    if (is_fragment and not earlier) or WHY.match(question) or not_for_list or is_long:
        return None
    try:
        return _Reader(question, text, table, document).query(earlier)
    except NotExplained:
        return None


def unexplained(query: TableQuery, question: str, text: str, table: Table, document: str) -> list[str]:
    """Return the words of a question that a query of a table doesn't explain."""
    reader = _Reader(question, text, table, document)
    reader.explain(*OPERATIONS, *(pattern for pattern, _ in FIGURES), MONEY)
    used = {form for one in query.where for value in one.values for form in forms_of(value, reader.language)}
    reader.explained.update(n for n, form in enumerate(reader.forms) if form in used)
    return reader.unexplained(query)


def is_computed(question: str) -> bool:
    """Return whether a question asks for a computed figure: how many, how much in all, the largest."""
    return any(kind.search(question) for kind in OPERATIONS)


class _Reader(Conditions):
    """Reads a question as a query of one table."""

    def __init__(self, question: str, text: str, table: Table, document: str) -> None:
        language = language_in(question)
        super().__init__(question, columns_of(text, table, language), language)
        names = (document.rpartition(".")[0], *headings_above(text, table.start), table.title)
        self.about = set(forms_of(" ".join(names).replace("_", " "), language, JOINING))
        self.is_list, self.asks_for_all = table.is_list, ALL.search(question) is not None

    def query(self, earlier: TableQuery | None) -> TableQuery:
        """Return the question as a query; as part of one, it keeps what the ``earlier`` one says besides."""
        self.read_cells()
        self.read_compared(self.about)
        operation, column, group = self._operation()
        self.read_flags((group, column))
        names = [None if n is None else self.columns[n].name for n in (column, group)]
        query = TableQuery(1, operation, names[0], tuple(self.where), group_by=names[1])
        self.unexplained(query)
        self.read_words(fillers(self.language) | self.about)
        self.finish()
        own, named = {one.column for one in self.where}, self.named()
        earlier_conditions = [one for one in earlier.where if one.column not in own] if earlier else []
        query = replace(query, where=(*earlier_conditions, *self.where))
        is_all = self.is_list or (self.asks_for_all and (named or not self.about.isdisjoint(self.forms)))
        has_what = is_all or self.where or earlier or operation != "list"
        if (group is not None and operation == "list") or not has_what or self.unexplained(query):
            raise NotExplained
        if self.is_list and not named:
            raise NotExplained
        return replace(earlier, where=query.where) if earlier and operation == "list" else query

    def unexplained(self, query: TableQuery) -> list[str]:
        """Return the content words that a query doesn't explain: the name of a column that it doesn't use, too.

        Rows that are only listed have all columns, and what has a date in each row has happened to each.
        """
        self.explain(DOCUMENT, *([PEOPLE] if PERSONS.search(" ".join([self.columns[0].name, *self.about])) else []))
        named = set().union(*self.named().values())
        self.explained.update(n for n, word in enumerate(self.tokens) if word in OF_A_COLUMN and n - 1 in named)
        own = {query.column, query.group_by, self.columns[0].name, *(one.column for one in query.where)}
        used = [one for one in self.columns if one.name in own]
        for asks, names in KINDS:
            if any(self.columns[n] in used for n in self.measuring(names)):
                self.explain(asks)
        if query.operation in ("list", "count") and self.measuring(AMOUNT):
            self.explain(MONEY)
        past = [
            one
            for one in self.columns
            if one.kind in ("text", "date") and all(one.cells) and not AHEAD.search(one.name)
        ]
        columns = self.columns if query.operation == "list" else [*used, *past]
        explained = self.about.union(fillers(self.language), *(one.words | one.units for one in columns))
        return [self.tokens[n] for n in self.left() if explained.isdisjoint((self.tokens[n], self.forms[n]))]

    def _operation(self) -> tuple[Operation, int | None, int | None]:
        """Return what is asked to be done, with which column, and by which the rows are grouped for it."""
        count, average, total = self.take(COUNT), self.take(AVERAGE), self.take(SUM)
        extreme = None if average else self.take(LARGEST) or self.take(SMALLEST)
        noun = self._behind(count[1]) if count else None
        named, group, numbers = self.named(), self._group(), self.of_kind("number")
        if average:
            return "average", self._figures(), group
        if extreme:
            return self._compared(extreme[0][0], self._behind(extreme[1]))
        if total or self._asks_for_sum(noun) or (group is not None and not count and self._named_of(numbers)):
            return "sum", self._figures(noun), group
        if group is None:
            nouns = self._asked() if count is None else [n for n, where in named.items() if noun in where]
            if nouns and nouns[0] and self.columns[nouns[0]].repeats:
                self.explained.update(named[nouns[0]])
                return "values", nouns[0], None
        return "count" if count else "list", None, group

    def _group(self) -> int | None:
        """Return the column by whose values the rows are to be grouped: "per supplier"."""
        for _, where in self.find(PER):
            for number, positions in self.named(range(where[-1] + 1, where[-1] + 3)).items():
                if self.columns[number].repeats:
                    self.explained.update((*where, *positions))
                    return number
        return None

    def _figures(self, noun: int | None = None, superlative: str = "") -> int:
        """Return the column of figures that is meant: the named one, the one of its kind, or of money, or the only."""
        numbers, text = self.of_kind("number"), f"{superlative} {self.text}"
        of_noun, named = (self._named_of(numbers, among) for among in ([] if noun is None else [noun], None))
        if len(of_noun) != 1 and len(named) > 1:
            raise NotExplained
        of_kinds = [self.measuring(names) for asks, names in KINDS if asks.search(text)]
        return self._only(of_noun, named, of_kinds[0] if of_kinds else self.measuring(AMOUNT) or numbers)

    def _behind(self, where: range) -> int | None:
        """Return the position of the first content word behind some others."""
        after = next((n for n in range(where[-1] + 1, len(self.tokens)) if self.tokens[n] not in BEFORE_A_NOUN), None)
        return after if after is not None and self.tokens[after] not in JOINING else None

    def _is_of_rows(self, noun: int) -> bool:
        return 0 in self.named([noun]) or self.forms[noun] in self.about

    def _asks_for_sum(self, noun: int | None) -> bool:
        """Return whether amounts are to be added up: "how many hours", "how much did we spend"."""
        if noun is None:
            return bool("how much" in self.text and MONEY.search(self.text))
        numbers = self.of_kind("number")
        quantities = self.measuring(QUANTITY)
        is_quantity = PIECES.match(self.tokens[noun]) or (self._named_of(quantities) and not self._is_of_rows(noun))
        return bool(self._named_of(numbers, [noun]) or (quantities and is_quantity))

    def _compared(self, word: str, noun: int | None) -> tuple[Operation, int | None, int | None]:
        """Return how rows are compared, by which column, and the one by which they are grouped for that."""
        operation: Operation = "largest" if LARGEST.fullmatch(word) else "smallest"
        is_since = word in ("longest", "längsten") and self.take(SINCE)
        if is_since or BY_DATE.search(word):
            dates = self.of_kind("date")
            past = [n for n in dates if not AHEAD.search(self.columns[n].name)]
            if any(BY_AGE.search(one.name) for one in self.columns):
                raise NotExplained
            return "smallest" if is_since else operation, self._only(self._named_of(dates), past, dates), None
        is_number_of = BY_NUMBER_OF.fullmatch(word) is not None
        group = next((n for n in self._asked() if is_number_of and self.columns[n].repeats), None)
        is_figure = noun is None or self._named_of(self.of_kind("number"), [noun]) or MONEY.match(self.tokens[noun])
        if is_number_of and noun is not None and not is_figure:
            if group is None or not (noun in self.by_cells or self._is_of_rows(noun)):
                raise NotExplained
            return operation, None, group
        return operation, self._figures(superlative=word), group

    def _asked(self) -> list[int]:
        """Return the column whose values a question asks for: which X."""
        return [number for _, where in self.find(ASKED) for number in self.named([where[-1] + 1])][:1]
