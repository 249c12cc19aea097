"""Read the answer of a cell: its value by the type of its column, and the sentence of the document it rests on. Pure.

Nothing is put right: a value is marked unless a sentence that its answer cites has it.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pkgutil import get_data
from typing import Any
from unicodedata import category

from msgspec import MsgspecError, defstruct, json
from msgspec.structs import replace

from rag_assistant.conversations.summary_lines import LEAD_NEAR, without_quotes
from rag_assistant.records import QUOTES, AnswerOptions, CellDoubt, CellResult, ColumnType, GridColumn, Source, Turn
from rag_assistant.retrieval.claims import (
    CITATION,
    DIGITS,
    NEGATION,
    WESTERN,
    cited_numbers,
    denied_stems,
    repeated_range,
    strange_figures,
)
from rag_assistant.retrieval.claims import NUMBER as FIGURE
from rag_assistant.retrieval.dates import dates_in, iso_dates
from rag_assistant.retrieval.disagreements import MAX_PASSAGES, NUMBERS, disagreements, values_in
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.sentences import Sentence, sentences_of, split_text
from rag_assistant.retrieval.table_query import NUMBER, figure
from rag_assistant.retrieval.tables import HEADING
from rag_assistant.retrieval.tokenize import STOP_WORDS, content_stems, query_words, search_words, stem

_DATA = tomllib.loads((get_data(str(__package__), "cell_values.toml") or b"").decode())
WORDS, UNITS = _DATA["words"], _DATA["units"]
REFUSAL, DENIAL = (re.compile("|".join(_DATA["patterns"][name]), re.IGNORECASE) for name in ("refusal", "denial"))
MAGNITUDES = {word: int(number) for number, words in _DATA["magnitudes"].items() for word in words}
PERIODS = {word: name for name, words in _DATA["periods"].items() for word in words}
PERIOD = rf"(?:\s?/\s?|\s(?:(?:{'|'.join(WORDS['per'])})\s)?)(?:{'|'.join(PERIODS)})(?!\w)"
BEHIND = re.compile(rf"(?:\s?(?:{'|'.join(MAGNITUDES)})(?!\w))?(?:{PERIOD})?", re.IGNORECASE)
NAME, WORD = re.compile(r"[A-ZÀ-Þ][a-zß-ÿ]{2,}"), re.compile(r"[^\W\d_]+|[€$£%]")
YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
# Thousands have a dot between them, which may be a point, or an apostrophe or a blank.
DOTTED, BETWEEN = re.compile(r"\d{1,3}(?:\.\d{3})+"), re.compile(r"(?<!\d{4})(?<!\b0)(?<=\d)['\u2019 ](?=\d{3}(?!\d))")
BEFORE_UNIT = re.compile(r"(?<![^\s(:|=])-([€$£]|[A-Z]{3})\s?(?=\d)")
ORDINARY = str.maketrans("\u00a0\u202f\u2009\u2212", "   -")
NAMES = {word: name for name, words in UNITS.items() for word in words}
CURRENCIES, PERMITS = NAMES.keys() - set(UNITS["%"]), frozenset(map(stem, WORDS["permits"]))
EMPTY, HAS_DIGIT = STOP_WORDS - {"not"} | {"per"}, re.compile(r"\d")
MAX_VALUE_CHARS, MIN_PART_CHARS = 500, 4
# An answer in JSON has a value of its column's type, and the number of its passage; "not found" is null.
ANSWERS: dict[str, Any] = {
    kind: defstruct("cell", [("value", of | None), ("passage", int | None)], forbid_unknown_fields=True)
    for kind, of in (("text", str), ("number", float), ("date", str), ("yes_no", bool))
}
# What an endpoint that doesn't keep to the schema may send.
ANY_ANSWER: Any = defstruct("cell", [("value", str | float | bool | None, None), ("passage", int | None, None)])


def options_for(kind: ColumnType, max_tokens: int | None) -> AnswerOptions:
    """Return how a cell is asked: in JSON, or as text where the endpoint refuses a schema."""
    schema = {"name": "cell", "strict": True, "schema": json.schema_components([ANSWERS[kind]])[1]["cell"]}
    fields = {"response_format": {"type": "json_schema", "json_schema": schema}}
    as_text, as_json = (f"{prompts['common']} {prompts[kind]}" for prompts in (_DATA["text"], _DATA["json"]))
    options = AnswerOptions(mode="documents", instructions=as_text, max_answer_tokens=max_tokens, notes=False)
    return replace(options, instructions=as_json, fields=fields, fallback=options)


def text_of(turn: Turn, column: GridColumn) -> str:
    """Return an answer in JSON as it would be as text, such as "EUR 1,250.00 [1]"; any other as it came."""
    own = without_quotes(turn.answer)
    try:
        answer = json.decode(own[own.find("{") : own.rfind("}") + 1], type=ANY_ANSWER)
    except MsgspecError:
        return turn.answer
    value, cited = answer.value, f" [{answer.passage}]" if answer.passage is not None else ""
    if column.type == "number" and isinstance(value, str) and (number := figure(value)) is not None:
        value = float(number)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float):  # As its passage writes it, with its unit.
        text = "".join(one.text for one in turn.sources if one.n == answer.passage)
        written = (*_figures(text), *NUMBER.findall(text))
        value = next((one for one in written if _number(one) == value), f"{value:.15g}")
    return f"{value}{cited}" if value else WORDS["not_found"][0]


def result_of(turn: Turn, column: GridColumn) -> CellResult:
    """Return what a completed turn says about a column's question."""
    cited = [n for match in CITATION.finditer(turn.answer) for n in cited_numbers(match)]
    sources = [one for n in dict.fromkeys(cited) for one in turn.sources if one.n == n]
    is_quote = turn.model in (None, QUOTES)
    result = (_quoted if is_quote else _answered)(turn, column, sources)
    values = _contradictions(turn, sources) if result.outcome == "value" else ()
    if len(values) > 1 and _states_another(result, column, values):
        result = replace(result, outcome="disagreement", value=" / ".join(values), number=None)
    # Without a source nothing was found that a model could have been sent.
    return replace(result, model=QUOTES if is_quote else turn.model if turn.sources else None)


def _quoted(turn: Turn, column: GridColumn, sources: Sequence[Source]) -> CellResult:
    """Return the sentence of the first quote that has most of the question's words, and a value of the type."""
    blocks = [one for one in turn.answer.split("\n\n") if one[:1] == ">"]
    if not (blocks and sources):
        return CellResult("not_found")
    source = sources[0]
    start, end = repeated_range(blocks[0], source.text) or (0, len(source.text))
    about = content_stems(column.question)
    pieces = [one for one in sentences_of(source.text) if start <= one.start < end]
    pieces.sort(key=lambda one: -len(about & content_stems(one.text)))
    ranges = [(one.start, one.end) for one in pieces]
    if not pieces or (column.type == "text" and not about & content_stems(pieces[0].text)):
        ranges = [(start, end)]
    language = language_of(search_words(source.text))
    results = [_at(_typed(source.text[slice(*one)], column, language), source, one) for one in ranges]
    nothing = replace(results[0], outcome="not_found", value="", number=None, doubt=None)
    is_near = turn.answer.startswith(LEAD_NEAR)
    result = nothing if is_near else next((one for one in results if one.doubt != "wrong_type"), nothing)
    is_other = result.outcome == "value" and column.type != "text" and not _asked(column.question, result.quote or "")
    return replace(result, doubt=result.doubt or "other_words") if is_other else result


def _answered(turn: Turn, column: GridColumn, sources: Sequence[Source]) -> CellResult:
    """Return what a model answered, with what can be seen to be wrong with it."""
    passages = " ".join(" ".join(one.text for one in sources).split())
    sentences = list(filter(None, map(_plain, split_text(CITATION.sub(" ", without_quotes(turn.answer))))))
    value = " ".join(one for one in sentences if not _refuses(one, passages))
    language, is_whole = language_of(search_words(passages)), value == " ".join(sentences)
    if not value or not (is_whole or column.type == "text" or any(_values_of(column, value, language))):
        return CellResult("not_found")
    if _begins_with(value, "contradiction"):
        parts = " / ".join(map(_plain, value.partition(":")[2].split(";")))
        result = CellResult("disagreement", parts[:MAX_VALUE_CHARS])
    else:
        result = _typed(value, column, language)
    result = _checked(result, value, column, sources) if sources else replace(result, doubt="not_cited")
    return replace(result, doubt=result.doubt or (None if is_whole else "not_in_passage"))


def _refuses(sentence: str, passages: str) -> bool:
    """Return whether a sentence says that nothing was found, and not in the words of the passages."""
    reason = re.split(r"[|:,]\s", sentence, maxsplit=1)[-1]
    is_quoted = reason.casefold() in passages.casefold()
    nothing = _begins_with(sentence, "not_found") or _begins_with(reason, "not_found")
    return nothing or bool(REFUSAL.search(sentence) and not is_quoted)


def _checked(result: CellResult, value: str, column: GridColumn, sources: Sequence[Source]) -> CellResult:
    """Return a result with what is doubtful about it and the sentence it rests on, all of a passage if there is none.

    It is one that says the value; of several, the one with most of the question's words: what is rare counts more.
    """
    passages = "\n".join(one.text for one in sources)
    language = language_of(search_words(passages))
    pieces = [(sources[0], Sentence(sources[0].text), frozenset[str](), False)]
    for source in sources:
        for one in sentences_of(source.text):
            about = _asked(column.question, " ".join((source.section or "", one.heading, one.lead, one.text)))
            pieces.append((source, one, about, _says(one.text, value, result.number, column, language)))
        headings = [Sentence(one[1], start=one.start(1)) for one in HEADING.finditer(source.text)]
        pieces += [(source, one, frozenset(), _says(one.text, value, None, column, language)) for one in headings]
    counts = Counter(word for *_, about, _ in pieces for word in about)
    weights = {word: (0.5 if word in PERMITS else 1) / number for word, number in counts.items()}
    source, sentence, about, says = max(pieces, key=lambda one: (one[3], sum(weights[word] for word in one[2])))
    doubt: CellDoubt | None = None
    if column.type != "date" and any(one.doubts for one in sources):
        doubt = "not_in_passage"
    elif column.type == "yes_no":
        is_about = result.value != "yes" or counts.keys() - PERMITS <= about
        doubt = _doubt_about(result.value, column, sentence.text, about) if is_about else "other_words"
    elif not says:
        doubt = "not_in_passage"
    elif column.type == "number" and not about:
        doubt = "other_words"
    elif column.type == "date" and _may_be_another_day(result.value, passages):
        doubt = "ambiguous_date"
    result = _at(result, source, (sentence.start, sentence.start + len(sentence.text.rstrip())))
    return replace(result, doubt=result.doubt or doubt)


def _says(sentence: str, value: str, number: float | None, column: GridColumn, language: str) -> bool:
    """Return whether a sentence has each word of a value, and each figure with its unit; a date in any spelling."""
    if column.type in ("date", "yes_no"):
        return column.type == "date" and not strange_figures(value, sentence)
    parts = _parts(value)
    is_amount = column.type == "text" or _has_amount(sentence, number, column.question, language)
    return bool(parts) and parts <= _parts(sentence) and is_amount


def _asked(question: str, text: str) -> frozenset[str]:
    """Return the words of a question but units that a text has, in other words too: "l'animal", "Mietvertrag"."""
    stems, folded = content_stems(text), text.casefold()
    words = frozenset(stem(one) for one in query_words(question) if one not in CURRENCIES)
    return frozenset(one for one in words if one in stems or (len(one) >= MIN_PART_CHARS and one in folded))


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(' *"“”„.;|#')


def _begins_with(text: str, word: str) -> bool:
    start = text.casefold()
    return any(start.startswith(one) and not start[len(one) : len(one) + 1].isalpha() for one in WORDS[word])


def _typed(text: str, column: GridColumn, language: str) -> CellResult:
    """Return the first value of a column's type in a text."""
    values = list(dict.fromkeys(_values_of(column, text, language)))
    value, number = values[0] if values else (_plain(text), None)
    result = CellResult("value", value[:MAX_VALUE_CHARS], number)
    if values and column.type == "date" and not value[:4].isdigit():
        return replace(result, doubt="ambiguous_date")
    return result if len(values) == 1 else replace(result, doubt="one_of_several" if values else "wrong_type")


def _values_of(column: GridColumn, text: str, language: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield the values of a column's type in a text, each with what it is sorted by; in the unit asked for.

    A date that may be two days in the ``language``, such as 3/4/2024 in English, is as it is written.
    """
    if column.type == "text":
        yield _plain(text), None
    elif column.type == "yes_no":
        pieces = re.split(r"[|:]\s", text)
        words = [word for one in (pieces[-1], pieces[0]) for word in ("yes", "no") if _begins_with(_plain(one), word)]
        yield from ((word, None) for word in words[:1])
    elif column.type == "date":
        isos = {match.start(): iso for match, iso in iso_dates(text, language)}
        dates = [(isos.get(one.start()), one, days) for one, days in dates_in(text)]
        values = [iso or one[0].strip(" .,") for iso, one, days in dates if iso or (len(days) > 1 and one["year"])]
        yield from ((one, None) for one in values or YEAR.findall(text))
    else:
        figures = list(_figures(text)) or [one for one in [_plain(text)] if NUMBER.match(one)]
        own = set(WORD.findall(column.question.lower()))
        others = {one for one, time in PERIODS.items() if own & PERIODS.keys() and time not in map(PERIODS.get, own)}
        figures = [one for one in figures if any(map({*WORD.findall(one.lower())}.isdisjoint, (others, CURRENCIES)))]
        units = {word for words in UNITS.values() if not own.isdisjoint(words) for word in words}
        if units:  # A figure without a unit may be in it.
            named = {one: {*WORD.findall(one.lower())} - MAGNITUDES.keys() for one in figures}
            in_unit = [one for one in figures if not units.isdisjoint(named[one])]
            figures = in_unit or [one for one in figures if not named[one]]
        yield from ((one, number) for one in figures if (number := _number(one)) is not None)


def _number(written: str) -> float | None:
    """Return the number that a figure with its unit means; none for 2.300, which may be less than three."""
    match, words = NUMBER.search(written), WORD.findall(written.lower())
    if match is None:
        return next((float(NUMBERS[one]) for one in words if one in NUMBERS), None)
    plain, behind = match[0].strip(" .,'\u2019"), WORD.findall(written[match.end() :].lower())
    if DOTTED.fullmatch(plain):  # No amount of money has three decimals.
        plain = plain.replace(".", "") if CURRENCIES.intersection(words) else ""
    number = figure(f"-{plain}" if "-" in written[: match.start()] else plain)  # As in "-£40".
    return None if number is None else float(number) * MAGNITUDES.get(behind[0] if behind else "", 1)


def _at(result: CellResult, source: Source, span: tuple[int, int]) -> CellResult:
    start, end = (source.start + one for one in span)
    return replace(result, quote=source.text[slice(*span)].strip(), page=source.page, start=start, end=end)


def _figures(text: str) -> dict[str, str]:
    """Return the figures of a text as they are written, each with the unit it is in."""
    text = BETWEEN.sub("", text.translate(ORDINARY))
    figures = [(one, unit) for (unit, _), one in values_in(text)[0].items() if unit not in ("date", "time")]
    return {one + (BEHIND.match(text, text.find(one) + len(one)) or [""])[0]: unit for one, unit in figures}


def _parts(text: str) -> Set[object]:
    """Return the content words of a text, its numbers and currencies in one spelling, and its figures with units."""
    text = BEFORE_UNIT.sub(r"\1 -", BETWEEN.sub("", text.translate(ORDINARY)))
    text = WORD.sub(lambda word: f" {NAMES[word[0].lower()]} " if word[0].lower() in NAMES else word[0], text)
    text = " ".join(text.translate(WESTERN).split())
    numbers = {_number(one) or DIGITS.sub("", one) for one in FIGURE.findall(text)}
    words = {"not" if NEGATION.fullmatch(one) else one for one in search_words(FIGURE.sub(" ", text))}
    stems = {float(NUMBERS[one]) if one in NUMBERS else stem(one) for one in words - EMPTY}
    amounts = {(unit, _number(one)) for one, unit in _figures(text).items()}
    return numbers | stems | amounts | {one for one in text if one == "%" or category(one) == "Sc"}


def _has_amount(text: str, number: float | None, question: str, language: str) -> bool:
    """Return whether a text has a number as an amount: not of a clause, house or year, nor of days beside money."""
    figures = {one: WORD.findall(one) for one in _figures(text)}
    money = [one for one, words in figures.items() if not NAMES.keys().isdisjoint(map(str.lower, words))]
    for one, words in figures.items():
        is_name = language != "german" and any(NAME.fullmatch(word) for word in words if word.lower() not in MAGNITUDES)
        is_other = is_name or (money and not _asked(question, one))
        if _number(one) == number and (one in money or not is_other):
            return True
    return False


def _may_be_another_day(iso: str, passages: str) -> bool:
    """Return whether passages have a date only as one that may be two days."""
    isos = {one for _, one in iso_dates(passages, language_of(search_words(passages)))}
    return iso not in isos and any(len(days) > 1 and one["year"] == iso[:4] for one, days in dates_in(passages))


def _doubt_about(value: str, column: GridColumn, sentence: str, about: frozenset[str]) -> CellDoubt | None:
    """Return what is doubtful about yes or no: a sentence about something else, or one that doesn't say so."""
    words, denies = frozenset(map(stem, query_words(column.question))), bool(DENIAL.search(sentence))
    subject = words - PERMITS or words
    if 2 * len(subject & about) < len(subject):
        return "other_words"
    if written := [word for word, _ in _values_of(column, sentence)]:
        is_said = value in written
    elif DENIAL.search(column.question) or NEGATION.search(column.question):
        is_said = False
    elif value == "yes":
        is_said = not (denies or denied_stems(sentence) & (words | PERMITS))
    else:
        is_said = denies or bool(NEGATION.search(sentence))
    return None if is_said else "not_in_passage"


def _states_another(result: CellResult, column: GridColumn, values: Sequence[str]) -> bool:
    """Return whether values that differ are of a column's type, and a cell's value is one of them."""
    if column.type == "yes_no":
        return True
    if column.type == "text":  # Other words may say the same, other figures may not.
        return all(map(HAS_DIGIT.search, values)) and any(one in result.value for one in values)
    typed = [next(_values_of(column, one), None) for one in values]
    return None not in typed and any(one in ((result.value, None), (one and one[0], result.number)) for one in typed)


def _contradictions(turn: Turn, cited: Sequence[Source]) -> Sequence[str]:
    """Return what sentences of the document state differently about what a cited passage says."""
    about = content_stems(turn.question)
    pieces = [(source, one.text) for source in turn.sources for one in sentences_of(source.text)]
    pieces = sorted(pieces, key=lambda one: -len(about & content_stems(one[1])))[:MAX_PASSAGES]
    # They are compared as if each were of another document.
    apart = tuple(
        replace(source, n=n, document_id=n, document="", text=text, doubts=(), offered=())
        for n, (source, text) in enumerate(pieces)
    )
    ns = {n for n, (source, _) in enumerate(pieces) if source in cited}
    return next((one.values for one in disagreements(turn.question, apart) if ns & set().union(*one.passages)), ())
