"""Read the answer of a cell, and check it: it is unmarked only if a sentence of the document says just that. Pure.

docs/limitations.md has the principle: a value as it is written, with all words of the question and the unit that it
names, and nothing that speaks against it. What is not written there, such as most yes or no, is a judgement.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from itertools import chain
from pkgutil import get_data
from typing import Any

from msgspec import MsgspecError, Struct, defstruct, json
from msgspec.structs import replace

from rag_assistant.conversations.summary_lines import LEAD_NEAR, without_quotes
from rag_assistant.records import QUOTES, AnswerOptions, CellDoubt, CellResult, ColumnType, GridColumn, Source, Turn
from rag_assistant.retrieval.claims import CITATION, LINE_MARK, NEGATION, WESTERN, cited_numbers, repeated_range
from rag_assistant.retrieval.dates import dates_in
from rag_assistant.retrieval.disagreements import NO_UNIT, NUMBERS
from rag_assistant.retrieval.sentences import sentences_of, split_text
from rag_assistant.retrieval.table_query import figure
from rag_assistant.retrieval.tables import cells_of
from rag_assistant.retrieval.tokenize import STOP_WORDS, content_stems, query_words, search_words

_DATA = tomllib.loads((get_data(str(__package__), "cell_values.toml") or b"").decode())
WORDS = _DATA["words"]
MAGNITUDES = {word: int(number) for number, words in _DATA["magnitudes"].items() for word in words}
PERIODS = {word: name for name, words in _DATA["periods"].items() for word in words}
UNITS = PERIODS | {word: name for name, words in _DATA["units"].items() for word in words}
PARTS = {"EACH": WORDS["per"], "AND": WORDS["and"], "NUMBERS": NUMBERS, "SIZES": MAGNITUDES, "TIMES": PERIODS}
PARTS = {name: "|".join(words) for name, words in PARTS.items()} | {"NO_UNIT": NO_UNIT}
REFUSAL, DENIAL, FIGURE, CLAUSE = (
    re.compile(re.sub("|".join(PARTS), lambda part: PARTS[part[0]], "|".join(_DATA["patterns"][name])), re.IGNORECASE)
    for name in ("refusal", "denial", "figure", "clause")
)
NAME, WORD, TOKEN, YEAR = (re.compile(_DATA["patterns"][name]) for name in ("name", "word", "token", "year"))
DIGIT, APOSTROPHE = re.compile(r"\d"), re.compile(r"['\u2019]")
# Thousands have a dot between them, which may be a point, or an apostrophe or a blank.
DOTTED, BETWEEN = re.compile(r"\d{1,3}(?:\.\d{3})+"), re.compile(r"(?<!\d{4})(?<!\b0)(?<=\d)[' ](?=\d{3}(?!\d))")
ORDINARY = str.maketrans("\u00a0\u202f\u2009\u2212\u2010\u2011\u2013\u2014\u2019", "   -----'", '"“”„«»*')
PERIOD_NAMES, IGNORED = frozenset(PERIODS.values()), {*UNITS, *WORDS["kinds"], *WORDS["per"]}
NO_NAME, AGAINST = frozenset((*STOP_WORDS, *NO_UNIT.split("|"))), frozenset(WORDS["against"])
CURRENCIES, ENDINGS = frozenset(("EUR", "USD", "GBP")), ("s", "es", "d", "ed", "n", "en", "ing", "'s", "\u2019s")
MAX_VALUE_CHARS, MIN_WORD_CHARS = 500, 3
# What an endpoint that doesn't keep to the schema may send.
ANY_ANSWER: Any = defstruct("cell", [("value", str | float | bool | None, None), ("passage", int | None, None)])


class Value(Struct, frozen=True):
    """A value as it is written, with the units directly with a number, or the days that a date may be."""

    text: str
    number: float | None = None
    units: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()
    # More than a number without a unit, such as that of a clause.
    is_amount = property(lambda self: self.number is None or bool(self.units))
    # Of a text, those of its figures.
    all_units = property(lambda self: self.units.union(*(one.units for one in _figures(self.text))))

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
    value, cited = read.value, "" if read.passage is None else f" [{read.passage}]"
    value = ("no", "yes")[value] if isinstance(value, bool) else f"{value:.15g}" if isinstance(value, float) else value
    return f"{value}{cited}" if value else str(WORDS["not_found"][0])


def _quoted(answer: str, column: GridColumn, sources: Sequence[Source]) -> CellResult:
    """Return the sentence of the first quote with the most of the question's words that has a value of the type."""
    blocks = [one for one in answer.split("\n\n") if one[:1] == ">"]
    if not (blocks and sources):
        return CellResult("not_found")
    source, about, is_text = sources[0], content_stems(column.question), column.type == "text"
    start, end = repeated_range(blocks[0], source.text) or (0, len(source.text))
    pieces = [one for one in _pieces(source, "") if start <= one.span[0] < end]
    pieces.sort(key=lambda one: -len(about & content_stems(one.own)))
    best = (
        pieces[0] if pieces and (not is_text or about & content_stems(pieces[0].own)) else Piece(source, (start, end))
    )
    nothing = _at(CellResult("not_found"), best)
    if answer.startswith(LEAD_NEAR):
        return nothing
    if is_text:
        return replace(nothing, outcome="value", value=_plain(nothing.quote or "")[:MAX_VALUE_CHARS])
    values = ((one, value) for one in pieces for value in READ[column.type](one.text) if value.is_amount or one.is_cell)
    results = (_at(CellResult("value", value.text, value.number, doubt="not_understood"), one) for one, value in values)
    return next(results, nothing)


def _answered(answer: str, column: GridColumn, cited: Sequence[Source], sent: Sequence[Source]) -> CellResult:
    """Return what a model answered, marked unless a sentence of ``cited`` passages says just that."""
    passages = " ".join(" ".join(one.text for one in cited).split())
    sentences = list(filter(None, map(_plain, split_text(CITATION.sub(" ", without_quotes(answer))))))
    text = " ".join(one for one in sentences if not _refuses(one, passages))
    values = READ[column.type](text[:MAX_VALUE_CHARS])
    if not text or not (values or text == " ".join(sentences)):
        return CellResult("not_found")
    if _begins_with(text, "contradiction"):
        return CellResult("disagreement", " / ".join(map(_plain, text.partition(":")[2].split(";")))[:MAX_VALUE_CHARS])
    value = values[0] if values else Value(text[:MAX_VALUE_CHARS])
    result = CellResult("value", value.text, value.number, doubt="not_cited")
    result = _Check(column, value).of(result, cited, sent) if cited else result
    doubt: CellDoubt | None = None if text == " ".join(sentences) else "not_in_passage"
    doubt = "wrong_type" if not values else "one_of_several" if len(set(values)) > 1 else doubt
    return replace(result, doubt=doubt or result.doubt)


def _refuses(sentence: str, passages: str) -> bool:
    """Return whether a sentence says that nothing was found, and not in the words of the passages."""
    reason = re.split(r"[|:,]\s", sentence, maxsplit=1)[-1]
    is_refusal = REFUSAL.search(sentence) and reason.casefold() not in passages.casefold()
    return bool(is_refusal) or any(_begins_with(one, "not_found") for one in (sentence, reason))


class _Check:
    """Checks a ``value`` of a column: which piece of a passage says it, and what speaks against it."""

    def __init__(self, column: GridColumn, value: Value) -> None:
        self.type, self.value, self.question = column.type, value, _tokens(column.question)
        self.words = {one for one in query_words(column.question) if one not in IGNORED}
        # Each unit or period that the question names, with its words, such as "monthly rent" or "rent per month".
        at, words = {one: n for n, one in enumerate(self.question) if one in UNITS}, self.question
        self.units = {UNITS[one]: (words[n : n + 2], words[max(0, n - 2) : n + 1]) for one, n in at.items()}

    def of(self, result: CellResult, cited: Sequence[Source], sent: Sequence[Source]) -> CellResult:
        """Return a result with the piece it rests on, else the one most about the question, and what is doubtful."""
        whole, pieces = (
            Piece(cited[0], (0, len(cited[0].text))),
            list(chain(*(_pieces(one, self.type) for one in cited))),
        )
        pieces = sorted(pieces, key=lambda one: -len(self.words_in(f"{one.own} {one.heading}"))) or [whole]
        about = filter(self.is_about, chain(*(_pieces(one, self.type) for one in sent)))
        others = [value for one in about for value in self.others_in(one)]
        matches = [(one, value) for one in pieces for value in self.values_in(one) if self.value.is_said_by(value)]
        if not matches:
            is_about, days = self.is_about(pieces[0]), [one.days for piece in pieces for one in self.values_in(piece)]
            doubt: CellDoubt = "ambiguous_date" if any(self.value.days < one for one in days) else "not_in_passage"
            if self.type == "yes_no" and not others:
                doubt = "judged" if is_about else "other_words"
            return _at(replace(result, doubt=doubt), pieces[0] if is_about else whole)
        piece, value = matches[0]
        result = _at(replace(result, value=value.text, doubt=self.doubt_of(value, piece)), piece)
        values = [one.text for one in (value, *others) if DIGIT.search(one.text) and one.all_units == value.all_units]
        if result.doubt is None and len(values := list(dict.fromkeys(values))) > 1:
            return replace(result, outcome="disagreement", value=" / ".join(values), number=None)
        return replace(result, doubt=result.doubt or ("other_values" if others else None))

    def doubt_of(self, value: Value, piece: Piece) -> CellDoubt | None:
        """Return what speaks against a value in the piece that says it."""
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
        """Return the values of a piece that may be meant: for text, itself, and other figures or names beside it."""
        if self.type != "text":
            return [one for one in READ[self.type](piece.text) if self.type != "yes_no" or piece.is_cell]
        mine, figures = _figures(self.value.text), _figures(piece.text)
        is_there = _has(piece.text, self.value.text) and all(any(map(one.is_said_by, figures)) for one in mine)
        if not piece.is_cell:  # "The law" says nothing about the law.
            is_there &= not self.words.union(IGNORED, STOP_WORDS).issuperset(search_words(self.value.text))
        whole = _figures(piece.source.text[slice(*piece.span)]) if mine else []
        others = [one for one in whole if not any(own.is_said_by(one) for own in mine)]
        # Other names beside one, and what a value may be cut from, such as "months" from "three months".
        names = [one.rstrip(".") for one in NAME.findall(piece.text) if one.split()[0].lower() not in NO_NAME]
        wholes = [one for one in (*names, *(one.text for one in figures)) if _has(one, self.value.text)]
        wholes += [piece.text] if piece.is_cell else names if self.value.text[:1].isupper() else []
        others += [Value(one) for one in wholes if not _has(self.value.text, one)]
        return [self.value, *others] if is_there else others

    def others_in(self, piece: Piece) -> list[Value]:
        """Return other values of a piece that may be meant: in the unit of the question, or in none."""
        others = [one for one in self.values_in(piece) if not self.value.is_said_by(one)]
        return [one for one in others if not one.units or self.is_in_unit(one, piece)]

    def words_in(self, text: str) -> set[str]:
        """Return the question's words in a text, with other endings too."""
        parts = {part for word in search_words(text) for part in (word, APOSTROPHE.split(word)[-1])}
        bases = set[str]().union(*map(_bases, parts))
        return {one for one in self.words if not bases.isdisjoint(_bases(one))}

    def is_about(self, piece: Piece) -> bool:
        """Return whether a piece has all words of the question, not all of them in its heading."""
        return bool(self.words_in(piece.own)) and self.words_in(f"{piece.own} {piece.heading}") == self.words

    def is_in_unit(self, value: Value, piece: Piece) -> bool:
        """Return whether a number is in the units that the question names, or has "monthly rent" beside it."""
        units = value.all_units
        if piece.is_cell and not units:
            units = frozenset(UNITS[one] for one in _tokens(piece.label) if one in UNITS) - PERIOD_NAMES
        if value.days or not (units or DIGIT.search(value.text)):
            return True
        is_other = PERIOD_NAMES & self.units.keys() and units & PERIOD_NAMES - self.units.keys()
        phrases = {unit: [" ".join(one) for one in both if self.words & {*one}] for unit, both in self.units.items()}
        is_beside = {unit: any(_has(piece.own, one) for one in phrases[unit]) for unit in phrases}
        return not is_other and all(unit in units or is_beside[unit] for unit in phrases)


def _pieces(source: Source, kind: str) -> Iterator[Piece]:
    """Yield the sentences of a passage, for text in their parts, and the values of its rows and key-value lines."""
    name = f"{source.document} {source.section or ''}"
    for one in sentences_of(source.text):
        span, lead = (one.start, one.start + len(one.text.rstrip())), "" if one.is_section else one.lead
        piece = Piece(source, span, LINE_MARK.sub("", one.text), lead, f"{name} {one.heading}")
        if one.kind == "row":
            heads = cells_of(lead.partition("\n")[0]) if "|" in lead else []
            for n, cell in enumerate(cells := cells_of(one.text)):
                label = " ".join((*heads[n : n + 1], *cells[: min(n, 1)]))
                yield replace(piece, text=cell, label=label, is_cell=True)
        elif one.key:
            yield replace(piece, text=one.text[len(one.key) :], label=f"{lead} {one.key}", is_cell=True)
        else:
            parts = [part[0] for part in CLAUSE.finditer(piece.text)] if kind == "text" else [piece.text]
            yield from (replace(piece, text=part) for part in parts)


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


def _figures(text: str) -> list[Value]:
    """Return the numbers of a text but those of dates, each with what is directly with it."""
    text = BETWEEN.sub("", text.translate(ORDINARY)).translate(WESTERN)
    for match, _ in dates_in(text):
        text = f"{text[: match.start()]}{';' * len(match[0])}{text[match.end() :]}"
    values = []
    for match in FIGURE.finditer(text):
        written, plain = match[0].strip(" .,)"), match["number"].lower()
        words = WORD.findall(" ".join(filter(None, match.group("currency", "unit", "each", "time"))).lower())
        units = frozenset(UNITS.get(one, one) for one in words)
        if DOTTED.fullmatch(plain) and units & CURRENCIES:  # No amount of money has three decimals.
            plain = plain.replace(".", "")
        number = NUMBERS.get(plain, None if DOTTED.fullmatch(plain) else figure(plain))
        factor = MAGNITUDES.get((match["size"] or "").strip(" .").lower(), 1) * (-1 if match["sign"] else 1)
        values.append(Value(written, None if number is None else float(number) * factor, units))
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
