"""Read the answer of a cell, and check it: it is unmarked only if a cited sentence has it as written. Pure.

docs/limitations.md has the promise: a value as it is written, with all words of the question and the unit that it
names. Whether the sentence limits or denies it is for its reader; other marks help, but nothing rests on them.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
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
from rag_assistant.retrieval.sentences import sentences_of, split_text
from rag_assistant.retrieval.table_query import figure
from rag_assistant.retrieval.tables import cells_of
from rag_assistant.retrieval.tokenize import content_stems, query_words, search_words

_DATA = tomllib.loads((get_data(str(__package__), "cell_values.toml") or b"").decode())
WORDS = _DATA["words"]
MAGNITUDES = {word: int(number) for number, words in _DATA["magnitudes"].items() for word in words}
LETTERS: dict[str, int] = _DATA["letters"]
COUNTED = {
    f"{ten} {one}": NUMBERS[ten] + n for ten in WORDS["tens"] for n, one in enumerate(WORDS["ones"], 1)
} | NUMBERS
PERIODS = {word: name for name, words in _DATA["periods"].items() for word in words}
UNITS = PERIODS | {word: name for name, words in _DATA["units"].items() for word in words}
PARTS = {"EACH": WORDS["per"], "NUMBERS": NUMBERS, "SIZES": MAGNITUDES, "TIMES": PERIODS}
PARTS = {name: "|".join(words) for name, words in PARTS.items()} | {"NO_UNIT": NO_UNIT}
REFUSAL, DENIAL, FIGURE = (
    re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], "|".join(_DATA["patterns"][name])), re.IGNORECASE)
    for name in ("refusal", "denial", "figure")
)
WORD, TOKEN, YEAR = (re.compile(_DATA["patterns"][name]) for name in ("word", "token", "year"))
DIGIT, APOSTROPHE = re.compile(r"\d"), re.compile(r"['\u2019]")
# Thousands have a dot between them, which may be a point, or an apostrophe or a blank.
DOTTED, BETWEEN = re.compile(r"\d{1,3}(?:\.\d{3})+"), re.compile(r"(?<!\d{4})(?<!\b0)(?<=\d)[' ](?=\d{3}(?!\d))")
ORDINARY = str.maketrans("\u00a0\u202f\u2009\u2212\u2010\u2011\u2013\u2014\u2019", "   -----'", '"“”„«»*')
PERIOD_NAMES, IGNORED = frozenset(PERIODS.values()), {*UNITS, *WORDS["kinds"], *WORDS["per"]}
AGAINST, AMOUNT = frozenset(WORDS["against"]), ("number", "size")
CURRENCIES, ENDINGS = frozenset(("EUR", "USD", "GBP")), ("s", "es", "d", "ed", "n", "en", "ing", "'s", "\u2019s")
MAX_VALUE_CHARS, MIN_WORD_CHARS, QUESTION_MARKS = 500, 3, ("?", "\uff1f", "\u061f")
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


class Piece(Struct, frozen=True):
    """What may have a value: a sentence, or a cell of a row with its ``label``: its key, or its column and row."""

    source: Source
    span: tuple[int, int]
    text: str = ""
    label: str = ""
    heading: str = ""
    is_cell: bool = False
    own = property(lambda self: f"{self.label} {self.text}")


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
    answer = _as_text(turn.answer)
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
    values = READ[column.type](text[:MAX_VALUE_CHARS])
    if not text or not (values or text == " ".join(sentences)):
        return CellResult("not_found")
    if is_contradiction := _begins_with(text, "contradiction"):
        parts, values = [_plain(one) for one in text.partition(":")[2].split(";")], []
        if all(not one or _refuses(one, passages) for one in parts):
            return CellResult("not_found")
        parsed = [one for part in parts for one in READ[column.type](part)[:1] if cited]
        checked = [_Check(column, one).of(CellResult("value"), cited, ()) for one in parsed]
        senses = [[replace(v, text="") for v in (*_figures(one.value), *_dates(one.value))] for one in checked]
        both = zip(senses, checked, strict=True)
        stated = {frozenset(sense) or one.value.casefold(): one for sense, one in both if one.value}
        if len(stated) > 1:
            text = " / ".join(one.value for one in stated.values())[:MAX_VALUE_CHARS]
            return replace(next(iter(stated.values())), outcome="disagreement", value=text, doubt=None)
    value = values[0] if values else Value(text[:MAX_VALUE_CHARS])
    result = CellResult("value", value.text, value.number, doubt="not_cited")
    if not cited:
        return result
    result = _Check(column, value).of(result, cited, sent)
    if is_contradiction or text != " ".join(sentences):
        return replace(result, doubt="not_in_passage")
    several: CellDoubt | None = "not_in_passage" if len(set(values)) > 1 else None
    return replace(result, doubt=result.doubt or several if values else "wrong_type")


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
        self.units = {UNITS[one] for one in self.question if one in UNITS}

    def of(self, result: CellResult, cited: Sequence[Source], sent: Sequence[Source]) -> CellResult:
        """Return a result with the piece it rests on, else the one most about the question, and what is doubtful."""
        pieces = sorted(_pieces(cited), key=lambda one: -len(self.words_in(f"{one.own} {one.heading}")))
        others = [value for one in filter(self.is_about, _pieces(sent)) for value in self.others_in(one)]
        values = [(one, value) for one in pieces for value in self.values_in(one)]
        for piece, value in values:
            if self.value.is_said_by(value):
                doubt = self.doubt_of(value, piece) or ("other_values" if others else None)
                return _at(replace(result, value=value.text, doubt=doubt), piece)
        best = next(filter(self.is_about, pieces[:1]), None)
        doubt = "ambiguous_date" if any(self.value.days < one.days for _, one in values) else "not_in_passage"
        doubt = "judged" if self.type == "yes_no" and best and not others else doubt
        return _at(replace(result, doubt=doubt), best or Piece(cited[0], (0, len(cited[0].text))))

    def doubt_of(self, value: Value, piece: Piece) -> CellDoubt | None:
        """Return what is doubtful about a value in the piece that says it."""
        rest = " ".join(_tokens(piece.own)).replace(" ".join(_tokens(self.value.text)), " ")
        is_denied = (NEGATION.search(rest) or DENIAL.search(rest)) and not NEGATION.search(" ".join(self.question))
        doubts: dict[CellDoubt, object] = {
            "ambiguous_date": len(value.days) > 1,
            "other_words": not self.is_about(piece),
            "other_unit": not ((value.is_amount or piece.is_cell) and self.is_in_unit(value, piece)),
            "one_of_several": self.others_in(piece),
            "hedged": is_denied or set(rest.split()) & AGAINST - set(self.question),
        }
        return next((name for name, is_so in doubts.items() if is_so), None)

    def values_in(self, piece: Piece) -> list[Value]:
        """Return the values of a piece that may be meant: for text, itself, and other figures beside it."""
        if self.type != "text":
            return [one for one in READ[self.type](piece.text) if self.type != "yes_no" or piece.is_cell]
        mine, figures = _figures(self.value.text), _figures(piece.text)
        is_there = _has(piece.text, self.value.text) and all(any(map(one.is_said_by, figures)) for one in mine)
        others = [one for one in figures if mine and not any(own.is_said_by(one) for own in mine)]
        # What a value may be cut from, such as "months" from "three months".
        wholes = [one.text for one in figures if _has(one.text, self.value.text)] + [piece.text] * piece.is_cell
        others += [Value(one) for one in wholes if not _has(self.value.text, one)]
        return [self.value, *others] if is_there else others

    def others_in(self, piece: Piece) -> list[Value]:
        """Return other values of a piece that may be meant: in a unit of the question, or in none."""
        others = [one for one in self.values_in(piece) if not self.value.is_said_by(one)]
        return [one for one in others if not (one.units and self.units) or one.units & self.units]

    def words_in(self, text: str) -> set[str]:
        """Return the question's words in a text, with other endings too."""
        parts = {part for word in search_words(text) for part in (word, APOSTROPHE.split(word)[-1])}
        bases = set[str]().union(*map(_bases, parts))
        return {one for one in self.words if not bases.isdisjoint(_bases(one))}

    def is_about(self, piece: Piece) -> bool:
        """Return whether a piece has all words of the question, not all of them in its heading."""
        return bool(self.words_in(piece.own)) and self.words_in(f"{piece.own} {piece.heading}") == self.words

    def is_in_unit(self, value: Value, piece: Piece) -> bool:
        """Return whether a number is in the units that the question names, or has them in its sentence."""
        if value.days or not (value.units or DIGIT.search(value.text)):
            return True
        mine, question = _figures(value.text), {UNITS.get(one, one) for one in self.question}
        figures = [one for one in _figures(piece.text) if any(own.is_said_by(one) for own in mine)]
        units = value.units.union(*(one.units for one in mine))
        is_other = any(kind & self.units and kind & units - self.units for kind in (PERIOD_NAMES, CURRENCIES))
        is_beside = self.units <= units.union(UNITS.get(one, one) for one in _tokens(piece.own))
        return is_beside and not is_other and not any(one.each - question for one in figures)


def _pieces(sources: Sequence[Source]) -> Iterator[Piece]:
    """Yield the sentences of passages, and the values of their rows and key-value lines."""
    for source in sources:
        sentences = sentences_of(source.text)
        for one, behind in zip(sentences, [*sentences[1:], *sentences[-1:]], strict=True):
            last = behind if _plain(one.text).endswith(QUESTION_MARKS) else one  # A question is shown with its answer.
            span, lead = (one.start, last.start + len(last.text.rstrip())), "" if one.is_section else one.lead
            heading = f"{source.document} {source.section or ''} {one.heading}"
            piece = Piece(source, span, LINE_MARK.sub("", one.text), lead, heading)
            if one.kind == "row":
                heads = cells_of(lead.partition("\n")[0]) if "|" in lead else []
                for n, cell in enumerate(cells := cells_of(one.text)):
                    label = " ".join((*heads[n : n + 1], *cells[: min(n, 1)]))
                    yield replace(piece, text=cell, label=label, is_cell=True)
            elif one.key:
                yield replace(piece, text=one.text[len(one.key) :], label=f"{lead} {one.key}", is_cell=True)
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


def _bases(word: str) -> set[str]:
    """Return what is left of a word without an ending that it may have."""
    return {word, *(word.removesuffix(one) for one in ENDINGS if len(word) - len(one) >= MIN_WORD_CHARS)}


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
        factor = prod(MAGNITUDES.get(one, LETTERS.get(one, 1)) for one in WORD.findall((match["size"] or "").lower()))
        exact = None if number is None else float(number) * factor * (-1 if match["sign"] else 1)
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
