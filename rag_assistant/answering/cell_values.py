"""Read the answer of a cell, and check it: it is unmarked only if a cited sentence has it as written. Pure.

docs/limitations.md has the promise: a value as it is written, with all words of the question and the unit that it
names. Whether the sentence limits or denies it is for its reader; other marks help, but nothing rests on them.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from itertools import pairwise
from math import prod
from pkgutil import get_data
from typing import Any

from msgspec import MsgspecError, Struct, defstruct, json
from msgspec.structs import replace

from rag_assistant.conversations.summary_lines import LEAD_NEAR, QUOTED, without_quotes
from rag_assistant.records import QUOTES, AnswerOptions, CellDoubt, CellResult, ColumnType, GridColumn, Source, Turn
from rag_assistant.retrieval.claims import CITATION, LINE_MARK, NEGATION, WESTERN, cited_numbers, repeated_range
from rag_assistant.retrieval.dates import dates_in
from rag_assistant.retrieval.disagreements import NO_UNIT, NUMBERS
from rag_assistant.retrieval.sentences import PAIR, Sentence, sentence_ranges, sentences_of, split_text
from rag_assistant.retrieval.table_query import figure
from rag_assistant.retrieval.tables import cells_of
from rag_assistant.retrieval.tokenize import content_stems, content_words, query_words, search_words

_DATA = tomllib.loads((get_data(str(__package__), "cell_values.toml") or b"").decode())
WORDS = _DATA["words"]
MAGNITUDES = {word: int(number) for number, words in _DATA["magnitudes"].items() for word in words}
LETTERS: dict[str, int] = _DATA["letters"]
COUNTED = NUMBERS | {f"{ten} {one}": NUMBERS[ten] + n for ten in WORDS["tens"] for one, n in _DATA["ones"].items()}
PERIODS = {word: name for name, words in _DATA["periods"].items() for word in words}
UNITS = PERIODS | {word: name for name, words in _DATA["units"].items() for word in words}
PARTS = {"EACH": WORDS["per"], "NUMBERS": NUMBERS, "SIZES": MAGNITUDES, "TIMES": PERIODS}
PARTS = {name: "|".join(words) for name, words in PARTS.items()} | {"NO_UNIT": NO_UNIT}
REFUSAL, DENIAL, FIGURE, WORD, TOKEN, YEAR, BREAKS, LINES, DIGIT, DOTTED, BETWEEN = (
    re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], "|".join(patterns)), re.IGNORECASE)
    for patterns in _DATA["patterns"].values()
)
ORDINARY = str.maketrans("\u00a0\u202f\u2009\u2212\u2010\u2011\u2013\u2014\u2019", "   -----'", '"“”„«»*')
IGNORED = {*UNITS, *WORDS["kinds"], *WORDS["per"]}
AGAINST, ENDINGS, AMOUNT = frozenset(WORDS["against"]), tuple(WORDS["endings"]), ("number", "size")
KINDS = PERIOD_NAMES, CURRENCIES = frozenset(PERIODS.values()), frozenset(("EUR", "USD", "GBP"))
MAX_ANSWER_CHARS, MAX_VALUE_CHARS, MIN_WORD_CHARS, QUESTION_MARKS = 10_000, 500, 3, ("?", "\uff1f", "\u061f")
# What an endpoint that doesn't keep to the schema may send.
ANY_ANSWER: Any = defstruct("cell", [("value", str | float | bool | None, None), ("passage", int | str | None, None)])


class Value(Struct, frozen=True):
    """A value as it is written, with the units directly with a number, or the days that a date may be."""

    text: str
    number: float | None = None
    units: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()
    # What it is for each of, but for a time: "square" and "m" of "per square metre".
    each: frozenset[str] = frozenset()
    is_amount = property(lambda self: self.number is None or bool(self.units))

    def is_said_by(self, other: "Value") -> bool:
        """Return whether another value is the same, maybe with more units."""
        same = self.text.casefold() == other.text.casefold() or self.days or self.number is not None
        return bool(same) and (self.days, self.number) == (other.days, other.number) and self.units <= other.units

    def may_be(self, other: "Value") -> bool:
        """Return whether one of two values is the other, or says less of it, such as the month of a day."""
        is_day = any(one.startswith(day) or day.startswith(one) for one in self.days for day in other.days)
        return is_day or other.is_said_by(self)


class Piece(Struct, frozen=True):
    """A sentence, or a cell with its column or key as ``label``; ``names``: the rest of its row, or its key."""

    source: Source
    span: tuple[int, int]
    text: str = ""
    label: str = ""
    heading: str = ""
    lead: str = ""
    names: tuple[str, ...] = ()
    is_cell = property(lambda self: bool(self.names))
    own = property(lambda self: " ".join((self.label, *self.names, self.text)))
    whole = property(lambda self: f"{self.own} {self.heading}")


def options_for(kind: ColumnType, max_tokens: int | None) -> AnswerOptions:
    """Return how a cell is asked: in JSON, or as text where the endpoint refuses a schema."""
    value = {"value": {"anyOf": [{"type": "boolean" if kind == "yes_no" else "string"}, {"type": "null"}]}}
    schema = _DATA["schema"] | {"properties": value | _DATA["schema"]["properties"]}
    answer = {"name": "cell", "strict": True, "schema": schema}
    fields = {"response_format": {"type": "json_schema", "json_schema": answer}}
    as_text, as_json = (f"{prompts['common']} {prompts[kind]}" for prompts in (_DATA["text"], _DATA["json"]))
    options = AnswerOptions(mode="documents", instructions=as_text, max_answer_tokens=max_tokens, notes=False)
    return replace(options, instructions=as_json, fields=fields, fallback=options)


def result_of(turn: Turn, column: GridColumn) -> CellResult:
    """Return what a completed turn says about a column's question."""
    answer = _as_text(turn.answer[:MAX_ANSWER_CHARS])
    cited = [n for match in CITATION.finditer(answer) for n in cited_numbers(match)]
    sources = [one for n in dict.fromkeys(cited) for one in turn.sources if one.n == n]
    is_quote = turn.model in (None, QUOTES)
    result = _quoted(answer, column, sources) if is_quote else _answered(answer, column, sources, turn.sources)
    # Without a source nothing was found that a model could have been sent.
    return replace(result, model=QUOTES if is_quote else turn.model if turn.sources else None)


def _as_text(answer: str) -> str:
    """Return an answer in JSON as it would be as text, such as "EUR 1,250.00 [1]"; any other as it came."""
    own = without_quotes(answer)
    try:
        read = json.decode(own[own.find("{") : own.rfind("}") + 1], type=ANY_ANSWER)
    except MsgspecError:
        return answer
    value, cited = read.value, f" [{passage}]" if (passage := str(read.passage or "").strip(" []")) else ""
    value = ("no", "yes")[value] if isinstance(value, bool) else f"{value:.15g}" if isinstance(value, float) else value
    return f"{value}{cited}" if value else str(WORDS["not_found"][0])


def _quoted(answer: str, column: GridColumn, sources: Sequence[Source]) -> CellResult:
    """Return the sentence of the first quote with the most of the question's words that has a value of the type."""
    blocks = [one for one in answer.split("\n\n") if one[:1] == ">"]
    if not (blocks and sources):
        return CellResult("not_found")
    source, about = sources[0], content_stems(column.question)
    start, end = repeated_range(blocks[0], source.text) or (0, len(source.text))
    pieces, quote = list(_pieces([source])), QUOTED.sub("", blocks[0])
    pieces = [one for one in pieces if start <= (at := one.span)[0] < end or _has(quote, source.text[slice(*at)])]
    pieces.sort(key=lambda one: -len(about & content_stems(one.own)))
    nothing = _at(CellResult("not_found"), pieces[0] if pieces else Piece(source, (start, end)))
    if answer.startswith(LEAD_NEAR):
        return nothing
    if column.type == "text":
        return replace(nothing, outcome="value", value=_plain(nothing.quote or "")[:MAX_VALUE_CHARS])
    values = ((one, value) for one in pieces for value in READ[column.type](one.text) if value.is_amount or one.is_cell)
    results = (_at(CellResult("value", value.text, value.number, doubt="not_understood"), one) for one, value in values)
    return next(results, nothing)


def _answered(answer: str, column: GridColumn, cited: Sequence[Source], sent: Sequence[Source]) -> CellResult:
    """Return what a model answered, marked unless a sentence of ``cited`` passages has it as written."""
    passages = " ".join(" ".join(one.text for one in cited).split())
    sentences = list(filter(None, map(_plain, split_text(CITATION.sub(" ", without_quotes(answer))))))
    text = " ".join(one for one in sentences if not _refuses(one, passages))
    if is_contradiction := _begins_with(text, "contradiction"):
        stated = dict.fromkeys(map(_plain, text.partition(":")[2].split(";")))
        text = " / ".join(one for one in stated if one and not _refuses(one, passages))
    text = text[:MAX_VALUE_CHARS]
    values = READ[column.type](text)
    is_whole = is_contradiction or text == " ".join(sentences)[:MAX_VALUE_CHARS]
    if not text or not (values or is_whole):
        return CellResult("not_found")
    value = values[0] if values else Value(text)
    result = CellResult("value", value.text, value.number, doubt="not_cited")
    result = _Check(column, value).of(result, cited, sent) if cited else result
    if is_contradiction:
        return replace(result, outcome="disagreement", value=text, doubt=None if cited else "not_cited")
    if not values:
        return replace(result, doubt="wrong_type" if cited else "not_cited")
    is_more = len(set(values)) > 1 or not is_whole
    return replace(result, doubt=result.doubt or ("more_answered" if is_more else None))


def _refuses(sentence: str, passages: str) -> bool:
    """Return whether a sentence says that nothing was found, and not in the words of the passages."""
    reason = re.split(r"[|:,]\s", sentence, maxsplit=1)[-1]
    is_refusal = REFUSAL.search(sentence) and reason.casefold() not in passages.casefold()
    return bool(is_refusal) or any(_begins_with(one, "not_found") for one in (sentence, reason))


class _Check:
    """Checks a ``value`` of a column: which piece of a passage says it, and what is doubtful."""

    def __init__(self, column: GridColumn, value: Value) -> None:
        self.type, self.value, self.question = column.type, value, _tokens(column.question)
        self.words = {one for one in query_words(column.question) if one not in IGNORED}
        self.forms = set[str]().union(*map(_bases, search_words(column.question)))
        self.units = _units(column.question)

    def of(self, result: CellResult, cited: Sequence[Source], sent: Sequence[Source]) -> CellResult:
        """Return a result with the piece that says it, else the one most about the question, and what is doubtful."""
        pieces = [Piece(cited[0], (0, len(cited[0].text))), *_pieces(cited)]
        pieces.sort(key=lambda one: (-self.is_about(one), -len(self.words_in(one.whole))))
        values = [(one, value) for one in pieces for value in self.values_in(one)]
        saying = [one for one in values if self.value.is_said_by(one[1])]
        plain = [one for one in saying if self.is_plain(*one)]
        piece, value = [*plain, *saying, (pieces[0], self.value)][0]
        doubt: CellDoubt | None = None if plain else "unverified"
        others = self.others(sent, piece) if plain or self.type == "yes_no" else []
        if len(value.days) > 1 or (not saying and any(self.value.days < one.days for _, one in values)):
            doubt = "ambiguous_date"
        elif others:
            doubt, piece = "other_values", piece if plain else others[0]
        return _at(replace(result, value=value.text, doubt=doubt), piece)

    def is_plain(self, piece: Piece, value: Value) -> bool:
        """Return whether a piece about the question says just this value, and no word beside it may limit it."""
        beside = " ".join(_tokens(" ".join((piece.lead, piece.label, *piece.names[:1], piece.text))))
        rest = beside.replace(" ".join(_tokens(self.value.text)), " ")
        is_denied = (NEGATION.search(rest) or DENIAL.search(rest)) and not NEGATION.search(" ".join(self.question))
        is_limited = is_denied or set(rest.split()) & AGAINST - set(self.question)
        return self.is_about(piece) and self.is_in_unit(value, piece) and not (is_limited or self.others_in(piece))

    def others(self, sent: Sequence[Source], piece: Piece) -> list[Piece]:
        """Return the pieces about the question with another value; other rows only if named, as ``piece`` is."""
        is_row = self.is_named(piece)
        places = [one for one in _pieces(sent) if self.is_about(one)]
        places = [one for one in places if self.is_named(one) or not (is_row and one.is_cell)]
        others = [(one, value) for one in places for value in self.others_in(one) if not self.value.may_be(value)]
        return [one for one, value in others if self.is_in_unit(value, one)]

    def values_in(self, piece: Piece) -> list[Value]:
        """Return the values of a piece that may be meant: for text, itself, and other figures beside it."""
        if self.type == "yes_no" and not (piece.is_cell and self.is_about(piece)):
            return []  # Elsewhere it is an answer to another question.
        if self.type != "text":
            return READ[self.type](piece.text)
        mine, figures = _figures(self.value.text), _figures(piece.text)
        # What a value may be cut from, such as "months" from "three months".
        wholes = [_plain(piece.text)] * piece.is_cell + [one.text for one in figures if _has(one.text, self.value.text)]
        is_there = _has(piece.text, self.value.text) and all(_has(self.value.text, one) for one in wholes)
        is_there &= all(any(map(one.is_said_by, figures)) for one in mine)
        others = [one for one in figures if mine and not any(own.is_said_by(one) for own in mine)]
        return [self.value, *others] if is_there else others

    def others_in(self, piece: Piece) -> list[Value]:
        """Return other values of a piece that may be meant: in a unit of the question, or in none."""
        others = [one for one in self.values_in(piece) if not self.value.is_said_by(one)]
        return [one for one in others if not (one.units and self.units) or one.units & self.units]

    def words_in(self, text: str) -> set[str]:
        """Return the question's words in a text, with other endings too."""
        bases = set[str]().union(*map(_bases, search_words(text)))
        return {one for one in self.words if not bases.isdisjoint(_bases(one))}

    def is_about(self, piece: Piece) -> bool:
        """Return whether a piece has all words of the question, not all of them in its heading."""
        return self.words_in(piece.whole) == self.words and bool(self.words_in(piece.own))

    def is_named(self, piece: Piece) -> bool:
        """Return whether the question has all words of a cell's key, or of another cell of its row."""
        names = filter(None, map(content_words, piece.names))
        return any(all(not self.forms.isdisjoint(_bases(one)) for one in words) for words in names)

    def is_in_unit(self, value: Value, piece: Piece) -> bool:
        """Return whether a number has a unit, or a cell to itself, and each unit of the question or none other."""
        is_amount, mine = bool(value.is_amount or piece.is_cell), _figures(value.text)
        if value.days or not (value.units or DIGIT.search(value.text)):
            return is_amount
        units = value.units.union(*(one.units for one in mine))
        beside = _units(piece.label, piece.text, *(one for one in piece.names if not DIGIT.search(one)))
        for near in (beside, _units(piece.heading)):
            units |= {one for one in near if not any(one in kind and kind & units - self.units for kind in KINDS)}
        figures = [one for one in _figures(piece.text) if any(own.is_said_by(one) for own in mine)]
        is_each = any(one.each - {UNITS.get(word, word) for word in self.question} for one in figures)
        return is_amount and self.units <= units and not is_each


def _sentences(text: str) -> Iterator[Sentence]:
    """Yield the rows and sentences of a text, those of each item of a list, and each "key: value" of a line."""
    for one in sentences_of(text, keeps_leads=True):
        breaks = [match.end() for match in (LINES if one.kind == "code" else BREAKS).finditer(text, one.start, one.end)]
        if one.kind == "row" or not (breaks or one.kind == "list"):
            yield one
            continue
        for begin, end in pairwise([one.start, *breaks, one.end]):
            for first, last in sentence_ranges(text[begin:end]):
                part = " ".join(text[begin + first : begin + last].split())
                yield replace(one, text=part, start=begin + first, end=begin + last)


def _pieces(sources: Sequence[Source]) -> Iterator[Piece]:
    """Yield the sentences of passages, and the values of their rows and key-value lines."""
    for source in sources:
        sentences = list(_sentences(source.text))
        for one, behind in zip(sentences, [*sentences[1:], *sentences[-1:]], strict=True):
            last = behind if _plain(one.text).endswith(QUESTION_MARKS) else one  # A question is shown with its answer.
            span = one.start, last.start + len(source.text[last.start : last.end].rstrip())
            lead, text = "" if one.is_section else one.lead, LINE_MARK.sub("", one.text)
            lead, _, head = lead.rpartition("\n\n") if one.kind == "row" and "|" in lead else (lead, "", "")
            lead = "" if PAIR.match(lead) else lead  # Another fact.
            heading = " ".join((source.document, source.section or "", one.heading, lead))
            piece = Piece(source, span, text, heading=heading, lead=lead)
            if one.kind == "row":
                cells, heads = cells_of(one.text), cells_of(head.partition("\n")[0])
                for n, cell in enumerate(cells):
                    names = (*cells[:n], *cells[n + 1 :]) or ("",)
                    yield replace(piece, text=cell, label="".join(heads[n : n + 1]), names=names)
            elif pair := PAIR.match(text[:1].upper() + text[1:]):
                key, value = text[: pair.start(1)], text[pair.start(1) :]
                yield replace(piece, text=value, label=key, names=(key,))
            else:
                yield piece


def _at(result: CellResult, piece: Piece) -> CellResult:
    """Return a result with where it is said."""
    source, (start, end) = piece.source, piece.span
    quote = source.text[start:end].strip()
    return replace(result, quote=quote, page=source.page, start=source.start + start, end=source.start + end)


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(' *"“”„.;|#')


def _tokens(text: str) -> list[str]:
    """Return the words, numbers and signs of a text, in one spelling."""
    return TOKEN.findall(text.translate(ORDINARY).casefold())


def _has(text: str, part: str) -> bool:
    """Return whether a text has all of another one in it, as whole words."""
    return f" {' '.join(_tokens(part))} " in f" {' '.join(_tokens(text))} "


def _units(*texts: str) -> set[str]:
    return {UNITS[one] for one in _tokens(" ".join(texts)) if one in UNITS}


def _bases(word: str) -> set[str]:
    """Return what is left of a word, or of "l'employer", without an ending that it may have."""
    words = {word, re.split(r"['\u2019]", word)[-1]}
    return words.union(
        one.removesuffix(end) for one in words for end in ENDINGS if len(one) - len(end) >= MIN_WORD_CHARS
    )


def _begins_with(text: str, word: str) -> bool:
    start = text.casefold()
    return any(start.startswith(one) and not start[len(one) : len(one) + 1].isalpha() for one in WORDS[word])


def unit_of(written: str) -> str:
    """Return the currency and the unit of a figure, as they are written."""
    text = BETWEEN.sub("", written.translate(ORDINARY))
    rest = FIGURE.sub(lambda one: f"{one['currency'] or ''} {one.string[max(map(one.end, AMOUNT)) : one.end()]}", text)
    return " ".join(WORD.findall(rest))


def _figures(text: str) -> list[Value]:
    """Return the numbers of a text but those of dates, each with what is directly with it."""
    text = BETWEEN.sub("", text.translate(ORDINARY)).translate(WESTERN)
    for match, _ in dates_in(text):
        text = f"{text[: match.start()]}{';' * len(match[0])}{text[match.end() :]}"
    values = []
    for match in FIGURE.finditer(text):
        units, each = (
            frozenset(UNITS.get(one, one) for one in WORD.findall(" ".join(filter(None, match.group(*names))).lower()))
            for names in (("currency", "unit", "time"), ("each", "slash", "rate"))
        )
        plain = match["number"].lower()
        if DOTTED.fullmatch(plain) and units & CURRENCIES:  # No amount of money has three decimals.
            plain = plain.replace(".", "")
        number = COUNTED.get(plain.replace("-", " "), None if DOTTED.fullmatch(plain) else figure(plain))
        sizes = (MAGNITUDES.get(one, LETTERS.get(one, 1)) for one in WORD.findall((match["size"] or "").lower()))
        exact = None if number is None else prod(sizes, start=float(number) * (-1 if match["sign"] else 1))
        values.append(Value(match[0].strip(" .,)"), exact, units | each, each=each - PERIOD_NAMES))
    return values


def _dates(text: str) -> list[Value]:
    """Return the dates of a text that have a year, else its years; one that may be two days as it is written."""
    values = []
    for match, days in dates_in(text):
        year, isos = match["year"], set[str]()
        for month, day in days if year else ():
            with suppress(ValueError):
                isos.add(date(int(year), month, day or 1).isoformat()[: 10 if day else 7])
        written = match[0].strip(" .,") if len(isos) > 1 else "".join(isos)
        values += [Value(written, days=frozenset(isos))] if isos else []
    return values or [Value(one, days=frozenset((one,))) for one in YEAR.findall(text)]


# How the values of each type are read; which of them is unmarked is the same for all.
READ: dict[str, Callable[[str], list[Value]]] = {"number": _figures, "date": _dates}
READ["text"] = lambda text: [Value(plain)] if (plain := _plain(text)) else []
READ["yes_no"] = lambda text: [Value(one) for one in ("yes", "no") if _begins_with(_plain(text), one)][:1]
