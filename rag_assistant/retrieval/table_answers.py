"""Answer a question from all rows of a table or all items of a list, exactly: filter, count, add up, compare. Pure.

Each word of the question is a column's name, a cell value, or an operation; if the table doesn't explain one, nothing
is computed.
"""

import operator
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from rag_assistant.retrieval.table_query import (
    DATE,
    NUMBER,
    TOTAL,
    Operation,
    TableAnswer,
    computed,
    described,
    figure,
    parsed,
    usable_rows,
)
from rag_assistant.retrieval.tables import Table, Tables, cells_of, headings_above, rows_of
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import STOP_WORDS, content_words, search_words, stem

COUNT = re.compile(r"\b(?:how many|how often|number of|count|wie ?viele|wie oft|anzahl)\b", re.IGNORECASE)
SUM = re.compile(
    r"\b(?:sum|total|altogether|together|in all|overall|add(?:ed|s)? up|summe|insgesamt|zusammen)\b", re.IGNORECASE
)
AVERAGE = re.compile(r"\b(?:average|mean|durchschnitt\w*)\b", re.IGNORECASE)
# "The first month" isn't one of several.
NOT_A_TIME = r"(?!\s+(?:day|week|month|quarter|year|time|tage?|woche|monat|quartal|jahr)s?\b)"
LARGEST = re.compile(
    rf"\b(?:largest|highest|biggest|greatest|heaviest|maximum|max|most|longest|latest|newest|last{NOT_A_TIME}|größte\w*|"
    rf"höchste\w*|schwerste\w*|längste\w*|teuerste\w*|meisten|neueste\w*|letzte[mnrs]?{NOT_A_TIME})\b",
    re.IGNORECASE,
)
SMALLEST = re.compile(
    rf"\b(?:smallest|lowest|lightest|minimum|min|least|fewest|cheapest|shortest|earliest|oldest|first{NOT_A_TIME}|kleinste\w*|"
    rf"niedrigste\w*|leichteste\w*|kürzeste\w*|billigste\w*|wenigsten|älteste\w*|erste[mnrs]?{NOT_A_TIME})\b",
    re.IGNORECASE,
)
BY_DATE = re.compile(
    r"\b(?:latest|newest|most recent|last|earliest|oldest|first|neueste\w*|älteste\w*|letzte[mnrs]?|erste[mnrs]?)\b",
    re.I,
)
LISTS = re.compile(
    r"\W*(?:which|what|who|list|show|name|give|how many|how much|welche\w*|wer|wie ?viele?|zeige?|nenne?)\b", re.I
)
# All rows are requested.
ALL = re.compile(r"\b(?:list|all|every|everyone|everything|alle[sr]?|jede[rs]?)\b", re.IGNORECASE)
NEGATION = re.compile(r"\b(?:not|no|never|without|nicht|kein\w*|ohne)\b|n['\u2019]t\b", re.IGNORECASE)
# "Unapproved" is "not approved", unless a table has the word.
UN = re.compile(r"\bun(?=[a-z]{4})", re.IGNORECASE)
DENIED_WORDS = 2
YES = frozenset("yes y true x ✓ ✔ done ja j wahr erledigt".split())
NO = frozenset("no n false - – ✗ open pending nein falsch offen".split())  # noqa: RUF001
# Words without meaning for the query, unless a cell has them.
FILLERS = frozenset(
    """
    list show give name many much number count sum total average mean most least cost costs there have has got get gets
    made make rows row entry entries entrys item items table yet still currently now no longer each every everyone
    everything overall altogether together add adds added up often recent expensive cheap heavy high low value values
    people person persons thing things piece pieces step steps times take takes taken took go goes went come comes carry
    carries carried belong belongs own owns owned spend spent earn earns agree agreed decide decided hit hits work works
    live lives based located place placed hold holds held use uses used need needs needed must bring listed mentioned
    say says
    per wie welche zeige nenne viele oft hoch summe insgesamt alle aller gibt haben hat hatte der die das den dem des
    ein eine ist sind war waren von vom zur zum im in bei für wir es wer
    """.split()
)
# The object of a question: the words after an article, up to the next stop word; stemmed.
THING = re.compile(
    r"(?<= )(?:the|an?|my|our|your|their|what|which|whose|much|many|der|die|das|den|dem|des|eine?|welch|viele?)"
    rf"((?: (?!(?:{'|'.join(sorted(map(stem, STOP_WORDS)))}) )\w+)+)"
)
PRICE = re.compile(
    r"price|amount|cost|sum|total|fee|charge|salary|wage|eur|usd|gbp|chf|[€$£]|preis|betrag|kosten|gehalt",
    re.IGNORECASE,
)
# The column an adjective refers to, besides the price.
MEANT = (
    (re.compile(r"\b(?:heav|light|weigh|schwer|leicht)", re.IGNORECASE), re.compile(r"weight|gewicht", re.IGNORECASE)),
    (
        re.compile(r"\b(?:long|short|läng|kürz)", re.IGNORECASE),
        re.compile(r"length|duration|hours|days|minutes|länge|dauer|stunden|tage|minuten", re.IGNORECASE),
    ),
)
# "Over 500 euros"; "at least" includes the figure.
COMPARED = re.compile(
    r"\b(?:(?P<least>at least|no less than|mindestens)|(?P<most>at most|no more than|up to|höchstens)|"
    r"(?P<more>more than|over|above|exceed(?:s|ing)?|mehr als|über)|"
    r"(?P<less>less than|fewer than|under|below|weniger als|unter))"
    r" (?P<figure>[€$£]?\d[\d.,']*)(?<![.,])(?: (?P<unit>[^\W\d]+|%))?",
    re.IGNORECASE,
)
COMPARE = {"least": operator.ge, "most": operator.le, "more": operator.gt, "less": operator.lt}
# References to the document.
DOCUMENT = re.compile(
    r"(?<=\bthe )(?P<name>(?:[\w-]+ ){0,3})"
    r"(?:list|register|table|file|document|page|report|statement|minutes|meeting)\b",
    re.IGNORECASE,
)
NUMBERING = re.compile(r"(?:no|nr|number|id|pos|item|#|inventory no)\.?", re.IGNORECASE)
# Units in column names.
UNITS = {
    "km": "kilometres",
    "kg": "kilograms",
    "eur": "euros",
    "usd": "dollars",
    "gbp": "pounds",
    "chf": "francs",
    "min": "minutes",
}
MIN_OF_KIND = 0.8


class _Condition(Struct, frozen=True):
    column: int
    words: frozenset[str]
    rows: frozenset[int]
    said: str


def answer_from(question: str, text: str, table: Table, document: str) -> TableAnswer | None:
    """Return the answer of a table or list in a text, ``None`` if the question isn't entirely about it.

    The names of its ``document`` and of its sections also describe it.
    """
    title, heading = headings_above(text, table.start)
    head, rows = parsed(text, table)
    about = _forms(f"{document} {title} {heading} {table.title}")
    return _answer(question, head, rows, about, table.is_list) or _answer(
        UN.sub("not ", question), head, rows, about, table.is_list
    )


def names_row(question: str, text: str) -> bool:
    """Return whether a question contains a cell's text that identifies a row of a table in a text.

    Not if it asks for something the text doesn't mention: "the salary of Ann" isn't in a list of telephones.
    """
    words, in_text = _stemmed(question), set(_stemmed(text).split())
    for table in Tables(text).all:
        for column in zip(*(cells_of(row) for row in rows_of(text, table)), strict=False):
            keys = [_stemmed(cell) for cell in column if content_words(cell)]
            # A figure alone is no name.
            named = [key for key in keys if key in words and not key.strip().isdigit()]
            if named and len(set(keys)) == len(keys):
                rest = words.replace(max(named, key=len), " | ")
                things = {word for phrase in THING.findall(rest) for word in phrase.split()}
                return in_text.issuperset(things - set(map(stem, FILLERS)))
    return False


def _stemmed(text: str) -> str:
    return f" {' '.join(map(stem, search_words(text)))} "


def is_computed(question: str) -> bool:
    """Return whether a question asks for a computed figure: how many, how much in all, the largest."""
    return any(kind.search(question) for kind in (COUNT, SUM, AVERAGE, LARGEST, SMALLEST))


def _answer(
    question: str, head: Sequence[str], rows: Sequence[Sequence[str]], about: set[str], is_list: bool
) -> TableAnswer | None:
    compared = [] if is_list else _comparisons(question, head, rows)
    if compared is None:
        return None
    question = COMPARED.sub(r"\g<unit>", question)
    content, rest = _without_cells(DOCUMENT.sub(r"\g<name>", question), head, rows)
    words = [_form(word) for word in content]
    named = {word for word in words if any(word in _forms(name) for name in head)}
    usable = usable_rows(rows)
    conditions = compared + _conditions(question, head, rows, [word for word in words if word not in named])
    superlatives = [match[0] for kind in (LARGEST, SMALLEST) for match in kind.finditer(rest)]
    explained = named | about | {word for one in conditions for word in one.words} | _forms(" ".join(superlatives))
    # Naming all of a heading asks for its section.
    names = [set(map(_form, content_words(name))) for name in head[0].split(": ")] if is_list else []
    if any(len(name) > 1 and name.issubset(words) for name in names):
        explained |= set(words)
    is_all = bool(named) if is_list else ALL.search(rest) is not None
    if not words or not explained.issuperset(words) or not (conditions or is_computed(rest) or is_all):
        return None
    if is_list and not (named and (LISTS.match(question) or is_computed(rest))):
        return None
    matching = usable.intersection(*(one.rows for one in conditions))
    chosen = sorted(matching)
    of_rows = described(len(chosen), len(usable), [one.said for one in conditions], is_list)
    return _computed(rest, head, rows, chosen, of_rows) if chosen else None


def _without_cells(question: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], str]:
    """Return the content words of a question, and its text without cell values."""
    rest = f" {' '.join(search_words(question))} "
    capitals = {
        cell for row in rows for cell in row if cell.isupper() and re.search(rf"\b{re.escape(cell)}\b", question)
    }
    cells = {" ".join(search_words(cell)) for row in rows for cell in row}
    quoted = [cell for cell in cells if f" {cell} " in rest and not TOTAL.fullmatch(cell)]
    for cell in sorted(quoted, key=len, reverse=True):
        rest = rest.replace(f" {cell} ", " ")
    in_table = {word for text in (*quoted, *head) for word in search_words(text)}
    # "IT" is a department, "it" nothing.
    telling = [
        word for word in dict.fromkeys(search_words(question)) if word not in STOP_WORDS or word.upper() in capitals
    ]
    return [word for word in telling if word not in FILLERS or word in in_table], rest


def _conditions(
    question: str, head: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[str]
) -> list[_Condition]:
    """Return a question's conditions on single columns: that a cell has some of its words, or says yes or no."""
    conditions: list[_Condition] = []
    for column in range(len(head)):
        cells = [_forms(row[column]) for row in rows]
        own = [word for word in words if any(word in cell for cell in cells)]
        own = [word for word in own if not any(word in one.words for one in conditions)]
        if own:
            every = frozenset(n for n, cell in enumerate(cells) if cell.issuperset(own))
            some = every or frozenset(n for n, cell in enumerate(cells) if not cell.isdisjoint(own))
            values = sorted({rows[n][column] for n in some})
            sentence = (
                f"{head[column]} is {' or '.join(values)}" if len(values) <= 2 else f"{head[column]} has {own[0]}"
            )
            if _is_denied(question, own):
                some, sentence = frozenset(range(len(rows))) - some, sentence.replace(" is ", " is not ", 1)
            conditions.append(_Condition(column, frozenset(own), some, sentence))
    if LISTS.match(question):
        conditions += _yes_or_no(question, head, rows)
    return conditions


def _comparisons(question: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[_Condition] | None:
    """Return a question's conditions on figures, ``None`` if no column is known to have them."""
    conditions: list[_Condition] = []
    for match in COMPARED.finditer(question):
        column, limit = _column(question, head, rows, NUMBER), figure(match["figure"])
        if column is None or limit is None:
            return None
        name = next(name for name in COMPARE if match[name])
        figures = {n: value for n, row in enumerate(rows) if (value := figure(row[column])) is not None}
        some = frozenset(n for n, value in figures.items() if COMPARE[name](value, limit))
        # The table must explain the unit: "over 5 years" isn't about a price.
        sentence = f"{head[column]} is {match[name].lower()} {match['figure']}"
        conditions.append(_Condition(column, frozenset(), some, sentence))
    return conditions


def _yes_or_no(question: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[_Condition]:
    forms = _forms(question)
    for column, name in enumerate(head):
        values = [row[column].strip().lower() for row in rows]
        if YES.issuperset(values) or not (YES | NO | {""}).issuperset(values) or not _forms(name) & forms:
            continue
        wanted = not _is_denied(question, _forms(name))
        some = frozenset(n for n, value in enumerate(values) if (value in YES) is wanted)
        cells = sorted({rows[n][column] for n in some})
        yield _Condition(column, frozenset(_forms(name)), some, f"{name} is {' or '.join(cells)}")


def _computed(
    question: str, head: Sequence[str], rows: Sequence[Sequence[str]], chosen: list[int], of_rows: str
) -> TableAnswer | None:
    """Return the chosen rows with the requested computation."""
    is_average = AVERAGE.search(question)
    is_extreme = not is_average and (LARGEST.search(question) or SMALLEST.search(question))
    kind = DATE if is_extreme and BY_DATE.search(question) else NUMBER
    column = _column(question, head, rows, kind)
    counts = COUNT.search(question)
    # "How many hours" of a column of hours are added up.
    counted = _forms(" ".join(search_words(question[counts.end() :])[:1])) if counts else set()
    adds_up = counted & _forms(head[column]) if column is not None else set()
    if not (is_average or adds_up or (not counts and (is_extreme or SUM.search(question)))):
        return TableAnswer(tuple(chosen), of_rows)
    extreme: Operation = "largest" if LARGEST.search(question) else "smallest"
    operation: Operation = "average" if is_average else extreme if is_extreme else "sum"
    return computed(operation, column, head, rows, chosen, of_rows)


def _column(question: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: re.Pattern[str]) -> int | None:
    """Return the column of figures or dates that a question means: the named one, the price, or the only one."""
    forms = _forms(question)
    columns = [
        column
        for column, name in enumerate(head)
        if not NUMBERING.fullmatch(name.strip())
        and sum(_of_kind(row[column], kind) for row in rows) >= MIN_OF_KIND * len(rows)
    ]
    named = [column for column in columns if _forms(head[column]) & forms]
    by_adjective = [
        column for column in columns for asks, name in MEANT if asks.search(question) and name.search(head[column])
    ]
    prices = [column for column in columns if PRICE.search(head[column])]
    return next((some[0] for some in (named, by_adjective, prices, columns) if len(some) == 1), None)


def _of_kind(cell: str, kind: re.Pattern[str]) -> bool:
    return DATE.fullmatch(cell) is not None if kind is DATE else figure(cell) is not None


def _is_denied(question: str, words: Iterable[str]) -> bool:
    """Return whether some words directly follow a negation."""
    behind = (content_words(question[match.end() :])[:DENIED_WORDS] for match in NEGATION.finditer(question))
    return not {_form(word) for some in behind for word in some}.isdisjoint(words)


def _forms(text: str) -> set[str]:
    return set(map(_form, search_words(text)))


@lru_cache(maxsize=10_000)
def _form(word: str) -> str:
    """Return a word without its ending: "passed" and "pass" are the same."""
    return stem(*stems([UNITS.get(word, word.removesuffix("'s"))], "english"))
