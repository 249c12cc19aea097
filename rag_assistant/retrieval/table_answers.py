"""Answer a question from all rows of a table, exactly: filter, count, add up, compare. Pure.

A word of the question is a column's name, a value in its cells, or what is to be done; where one is left that the
table does not explain, nothing is computed.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

from msgspec import Struct

from rag_assistant.retrieval.tables import Table, cells_of
from rag_assistant.retrieval.tokenize import content_words, search_words, stem

COUNT = re.compile(r"\b(?:how many|number of|count|wie ?viele|anzahl)\b", re.IGNORECASE)
SUM = re.compile(r"\b(?:sum|total|altogether|in all|overall|summe|insgesamt)\b", re.IGNORECASE)
AVERAGE = re.compile(r"\b(?:average|mean|durchschnitt\w*)\b", re.IGNORECASE)
LARGEST = re.compile(
    r"\b(?:largest|highest|biggest|greatest|maximum|max|most|longest|latest|newest|last|größte\w*|höchste\w*|"
    r"teuerste\w*|meisten|neueste\w*)\b",
    re.IGNORECASE,
)
SMALLEST = re.compile(
    r"\b(?:smallest|lowest|minimum|min|least|fewest|cheapest|shortest|earliest|oldest|first|kleinste\w*|niedrigste\w*|"
    r"billigste\w*|wenigsten|älteste\w*)\b",
    re.IGNORECASE,
)
BY_DATE = re.compile(r"\b(?:latest|newest|last|earliest|oldest|first|neueste\w*|älteste\w*)\b", re.IGNORECASE)
LISTS = re.compile(
    r"\W*(?:which|what|list|show|name|give|how many|how much|welche\w*|wie ?viele?|zeige?|nenne?)\b", re.I
)
NEGATION = re.compile(r"\b(?:not|no|never|without|nicht|kein\w*|ohne)\b|n['\u2019]t\b", re.IGNORECASE)
# "Unapproved" is "not approved", unless a table knows the word.
UN = re.compile(r"\bun(?=[a-z]{4})", re.IGNORECASE)
DENIED_WORDS = 2
YES = frozenset("yes y true x ✓ ✔ done ja j wahr erledigt".split())
NO = frozenset("no n false - – ✗ open pending nein falsch offen".split())  # noqa: RUF001
# What a question has besides what it asks for.
FILLERS = frozenset(
    """
    list show give name many much number count sum total average mean most least cost costs there have has got get gets
    made make rows row entries entry items item table yet still currently now each every overall altogether largest
    highest biggest greatest maximum max longest latest newest last smallest lowest minimum min fewest cheapest shortest
    earliest oldest first expensive cheap high low value values welche zeige nenne viele summe insgesamt gibt haben hat
    der die das den dem des ein eine ist sind von für wir es
    """.split()
)
PRICE = re.compile(r"price|amount|cost|sum|total|eur|usd|gbp|chf|[€$£]|preis|betrag|kosten", re.IGNORECASE)
NUMBERING = re.compile(r"(?:no|nr|number|id|pos|item|#|inventory no)\.?", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?\d[\d.,'\u2019 ]*")
DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
MIN_OF_KIND = 0.8
# So many values are written out as a sum.
MAX_SUMMANDS = 12


class TableAnswer(Struct, frozen=True):
    """Rows of a table that answer a question, by their numbers from 0, and a sentence on what they are."""

    rows: tuple[int, ...]
    note: str


class _Condition(Struct, frozen=True):
    column: int
    words: frozenset[str]
    rows: frozenset[int]
    said: str


def answer_from(question: str, text: str, table: Table, about: str) -> TableAnswer | None:
    """Return what a table of a text says to a question, ``None`` where it is not all about it.

    ``about`` is what else tells what the table is about: the names of its document and its section.
    """
    head = cells_of(table.head.split("\n")[0])
    lines = text[table.rows : table.end].split("\n")
    rows = [(cells_of(line) + [""] * len(head))[: len(head)] for line in lines if line.strip()]
    stems = _stems(about) | _stems(table.title)
    return _answer(question, head, rows, stems) or _answer(UN.sub("not ", question), head, rows, stems)


def _answer(question: str, head: Sequence[str], rows: Sequence[Sequence[str]], stems: set[str]) -> TableAnswer | None:
    words = [stem(word) for word in content_words(question) if word not in FILLERS]
    named = {word for word in words if any(word in _stems(name) for name in head)}
    conditions = _conditions(question, head, rows, [word for word in words if word not in named])
    explained = named | stems | {word for one in conditions for word in one.words}
    is_computed = any(kind.search(question) for kind in (COUNT, SUM, AVERAGE, LARGEST, SMALLEST))
    if not words or not explained.issuperset(words) or not (conditions or is_computed):
        return None
    matching = set(range(len(rows)))
    for one in conditions:
        matching &= one.rows
    chosen = sorted(matching)
    where = f", where {' and '.join(one.said for one in conditions)}" if conditions else ""
    of_rows = f"{len(chosen)} of {len(rows)} rows{where}." if conditions else f"{len(rows)} rows."
    return _computed(question, head, rows, chosen, of_rows) if chosen else None


def _conditions(
    question: str, head: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[str]
) -> list[_Condition]:
    """Return what a question demands of single columns: that a cell has some of its words, or says yes or no."""
    conditions: list[_Condition] = []
    for column in range(len(head)):
        cells = [_stems(row[column]) for row in rows]
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


def _yes_or_no(question: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[_Condition]:
    stems = set(map(stem, search_words(question)))
    for column, name in enumerate(head):
        values = [row[column].strip().lower() for row in rows]
        if YES.issuperset(values) or not (YES | NO | {""}).issuperset(values) or not _stems(name) & stems:
            continue
        wanted = not _is_denied(question, _stems(name))
        some = frozenset(n for n, value in enumerate(values) if (value in YES) is wanted)
        cells = sorted({rows[n][column] for n in some})
        yield _Condition(column, frozenset(_stems(name)), some, f"{name} is {' or '.join(cells)}")


def _computed(
    question: str, head: Sequence[str], rows: Sequence[Sequence[str]], chosen: list[int], of_rows: str
) -> TableAnswer | None:
    """Return the chosen rows with what is to be computed of them."""
    is_extreme = LARGEST.search(question) or SMALLEST.search(question)
    if COUNT.search(question) or not (SUM.search(question) or AVERAGE.search(question) or is_extreme):
        return TableAnswer(tuple(chosen), of_rows)
    kind = DATE if is_extreme and BY_DATE.search(question) else NUMBER
    column = _column(question, head, rows, kind)
    of_kind = [n for n in chosen if column is not None and _of_kind(rows[n][column], kind)]
    if column is None or not of_kind:
        return None
    name, cells = head[column], {n: rows[n][column] for n in of_kind}
    values = {n: _figure(cell) or cell for n, cell in cells.items()}
    if is_extreme:
        best = (max if LARGEST.search(question) else min)(values.values())
        those = tuple(n for n, value in values.items() if value == best)
        which = "Largest" if LARGEST.search(question) else "Smallest"
        return TableAnswer(those, f"{which} {name}: {cells[those[0]]}. {of_rows}")
    numbers = [value for value in values.values() if isinstance(value, Decimal)]
    total = sum(numbers, Decimal(0))
    if AVERAGE.search(question):
        return TableAnswer(tuple(chosen), f"Average of {name}: {round(total / len(numbers), 2):,}. {of_rows}")
    parts = f"{' + '.join(map('{:,}'.format, numbers))} = " if 1 < len(numbers) <= MAX_SUMMANDS else ""
    return TableAnswer(tuple(chosen), f"Sum of {name}: {parts}{total:,}. {of_rows}")


def _column(question: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: re.Pattern[str]) -> int | None:
    """Return the column of figures or dates that a question means: the one it names, the price, or the only one."""
    stems = set(map(stem, content_words(question)))
    columns = [
        column
        for column, name in enumerate(head)
        if not NUMBERING.fullmatch(name.strip())
        and sum(_of_kind(row[column], kind) for row in rows) >= MIN_OF_KIND * len(rows)
    ]
    named = [column for column in columns if _stems(head[column]) & stems]
    prices = [column for column in columns if PRICE.search(head[column])]
    return next((some[0] for some in (named, prices, columns) if len(some) == 1), None)


def _of_kind(cell: str, kind: re.Pattern[str]) -> bool:
    return DATE.fullmatch(cell) is not None if kind is DATE else _figure(cell) is not None


def _figure(cell: str) -> Decimal | None:
    """Return the figure of a cell, with a unit or a currency beside it."""
    number = NUMBER.fullmatch(re.sub(r"\s*(?:\b[A-Z]{3}\b|[€$£%])\s*", "", cell.strip()))
    if number is None or DATE.fullmatch(cell):
        return None
    plain = re.sub(r"['\u2019 ]", "", number[0])
    if plain.rfind(",") > plain.rfind(".") >= 0 or re.fullmatch(r"[-+]?\d+,\d{1,2}", plain):
        plain = plain.replace(".", "").replace(",", ".")
    try:
        return Decimal(plain.replace(",", ""))
    except InvalidOperation:
        return None


def _is_denied(question: str, words: Iterable[str]) -> bool:
    """Tell whether some words stand right behind a negation."""
    behind = (content_words(question[match.end() :])[:DENIED_WORDS] for match in NEGATION.finditer(question))
    return not {stem(word) for some in behind for word in some}.isdisjoint(words)


def _stems(text: str) -> set[str]:
    return set(map(stem, search_words(text)))
