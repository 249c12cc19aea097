"""Compare an answer with the passages it cites: numbers, names, negations, words. Pure.

No model decides: a sentence is doubted if something checkable in it isn't in the passage. What the question says may be
repeated. bench/retrieval/README.md has the results, and the constants were chosen there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from pkgutil import get_data

from msgspec import Struct
from msgspec.json import decode as from_json
from msgspec.structs import replace

from rag_assistant.records.answers import Doubt, Problem
from rag_assistant.retrieval.dates import dates_in, days_in
from rag_assistant.retrieval.languages import COMMON_WORDS_OF
from rag_assistant.retrieval.sentences import MIN_WRAPPED_CHARS, sentences_of, split_text
from rag_assistant.retrieval.tokenize import STOP_WORDS, content_stems, content_words, search_words, stem

# As models write them: [1], [1, 2], [1-3], [^1], [Source 1], \u30101\u3011 and \u30101\u2020name\u3011.
CITED = r"(?:\^|(?:[Ss]ource|[Pp]assage|[Dd]ocument)s?:? ?)?\d{1,3}"
CITATION = re.compile(rf"[\[\u3010]({CITED}(?: ?[,;\u2013-] ?{CITED})*)(?:\u2020[^\]\u3011\n]{{0,200}})?[\]\u3011]")
RANGE = re.compile(r"(\d{1,3}) ?[\u2013-] ?(\d{1,3})")
MAX_IN_RANGE = 20
BEHIND_STOP = re.compile(rf"(?<![.!?…])([.!?…]+)\s*((?:{CITATION.pattern}[\s,]*)+)")
CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`", re.DOTALL)
# Where a line is its own paragraph: an item, a heading, a row, a key with its value, or after an empty line.
LINE = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#|>•]|\d{1,3}[.)]\s|[^\W\d_a-z][^\n:|]{0,40}:\s))")
LINE_MARK = re.compile(r"^\s*(?:[-*+>•]\s+|#{1,6}\s+|\d{1,3}[.)]\s+)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# In 31.12.2024 and 2024.12.31, which are one number each.
YEAR_OF_DATE = re.compile(r"(?:(?<=\.\d\.)|(?<=\.\d\d\.))\d{4}(?!\d)|(?<!\d)\d{4}(?=\.\d{1,2}\.\d)")
YEAR, LABELLED = re.compile(r"(?:19|20)\d\d"), re.compile(r"(?<![^\W\d_])([^\W\d_]{1,40})\W{1,2}(\d{1,20})\b")
ZEROS = re.compile(r"[.,]00?$|(?<=[.,][1-9])0$")  # 49 and 49.00 are one figure, and so are 4.5 and 4.50.
THOUSANDS = re.compile(r"[.,](?=\d{3}(?:[.,]|$))")  # And 1,500 and 1.500.
WESTERN = str.maketrans("٠١٢٣٤٥٦٧٨٩", "0123456789")
NAME = re.compile(r"(?<![.!?:][\s\"'“„(])(?<=[\s\"'“„(])[^\W\d_a-z]\w+")
# Behind a title it is a name in any language, and so are two words with capitals that begin a sentence.
TITLED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|Herrn?|Frau)\b\.? (?:(?:Dr|Prof)\. )*([^\W\d_a-z]\w+)")
FIRST = re.compile(r"([^\W\d_a-z]\w+) ([^\W\d_a-z]\w+)")
ENGLISH = STOP_WORDS.union(COMMON_WORDS_OF["english"]) - {"am", "an", "in", "so", "was"}
# Words and patterns in English and German. Beside a limit, a sentence may deny what it seems to state.
WORDS = from_json(get_data(str(__package__), "values.json") or b"")
NOT_NAMES, GERMAN = (frozenset(WORDS[name].split()) for name in ("no_names", "german"))
NEGATION, LIMIT, YES_OR_NO, TIME = (
    re.compile(WORDS["patterns"][name], re.I) for name in ("negation", "limit", "yes_or_no", "time")
)
# How many content words after a negation it denies, and how far behind it they may be.
DENIED_WORDS, MAX_DENIED_CHARS = 2, 200
MIN_NAME_CHARS, MIN_REPEATED_CHARS = 3, 12
# A sentence with fewer content words, besides those of the question, can't be compared by their share.
MIN_WORDS, MIN_BESIDE_NUMBER = 4, 2
# The shares of a sentence's content words in a passage from which on the passage supports it, is said to if another one
# is cited, and is offered if none is. MIN_BETTER more in another one means that the wrong one is cited.
MIN_SHARE, MIN_CARRIED, MIN_OFFERED, MIN_BETTER = 0.3, 0.6, 0.8, 0.25
# A sentence of a passage with this share of the words says the same, or the opposite.
MIN_ALIKE = 0.7
# If this many words are capitalised, like nouns in German, capitals don't indicate names.
MAX_CAPITALS = 0.25


class Checked(Struct, frozen=True):
    """The findings about one passage: doubtful citations of it, and uncited sentences that it supports."""

    doubts: tuple[Doubt, ...] = ()
    offered: tuple[str, ...] = ()


def unknown_citations(answer: str, numbers: Collection[int]) -> list[int]:
    """Return the cited numbers that match no passage; links and code don't count as citations."""
    text = CODE.sub("", answer)
    groups = [set(cited_numbers(match)) for match in CITATION.finditer(text) if _is_citation(text, match)]
    # [0, 100] may be anything; [1, 9] are citations if there is a first passage.
    return sorted({n for group in groups if len(group) == 1 or group & set(numbers) for n in group - set(numbers)})


def cited_numbers(match: re.Match[str]) -> list[int]:
    """Return the numbers in a citation, with all of a range unless it is too wide to be one."""

    def spelt_out(ends: re.Match[str]) -> str:
        first, last = int(ends[1]), int(ends[2])
        return ",".join(map(str, range(first, last + 1))) if 0 < last - first < MAX_IN_RANGE else ends[0]

    return [int(number) for number in re.findall(r"\d+", RANGE.sub(spelt_out, match[1]))]


def _is_citation(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
    return not before.isalnum() and after not in ("(", ":")


def check_citations(
    answer: str,
    question: str,
    passages: Mapping[int, str],
    is_over: Callable[[], bool] = lambda: False,
    seen: Collection[int] = (),
) -> dict[int, Checked]:
    """Return the findings about each passage of an answer, by number, until ``is_over``.

    All passages cited by a sentence may support it together. An uncited sentence that a passage contains nearly word
    for word is offered that citation. What cites one of ``seen``, of whose pages the model had pictures, isn't checked.
    """
    texts = {n: _Text(passage) for n, passage in passages.items()}
    of_question = _Text(question)
    cited: Counter[int] = Counter()
    checked = dict.fromkeys(passages, Checked())
    for sentence, numbers in _sentences(answer):
        if is_over():
            break
        cited_numbers = [n for n in numbers if n in passages]
        cited.update(cited_numbers)
        if not numbers and (carrier := _carrier(sentence, texts, of_question, MIN_OFFERED)) is not None:
            checked[carrier] = replace(checked[carrier], offered=(*checked[carrier].offered, sentence))
        if not cited_numbers or not set(seen).isdisjoint(numbers):
            continue
        own = [texts[n] for n in cited_numbers]
        problem = _problem(sentence, own, of_question)
        others = {n: text for n, text in texts.items() if n not in cited_numbers}
        least = MIN_CARRIED if problem else max(MIN_CARRIED, _share(content_stems(sentence), own) + MIN_BETTER)
        carrier = _carrier(sentence, others, of_question, least)
        if problem is None and carrier is not None:
            problem = "words", ()
        if problem is not None:
            for n in dict.fromkeys(cited_numbers):
                doubt = Doubt(cited[n], *problem, carrier)
                checked[n] = replace(checked[n], doubts=(*checked[n].doubts, doubt))
    return checked


def strange_figures(answer: str, source: str) -> list[str]:
    """Return the dates and figures of an answer that its source doesn't have; single digits, which may count, aside."""
    rest, strange = _without_dates(CITATION.sub(" ", CODE.sub(" ", answer)), source)
    numbers = [number for sentence, _ in _sentences(rest) for number in NUMBER.findall(sentence)]
    there = chain(NUMBER.findall(source), YEAR_OF_DATE.findall(source)) if numbers else ()
    figures = set(map(plain_number, there))
    strange += [number for number in numbers if len(number) > 1 and plain_number(number) not in figures]
    return list(dict.fromkeys(strange))


def _without_dates(text: str, source: str) -> tuple[str, list[str]]:
    """Return a text without its dates but for the years of those that a source has in any spelling, and the others."""
    rest, at, strange, dates = "", 0, list[str](), dates_in(text)
    days_there = days_in(source) if dates else set()  # It takes milliseconds, and most answers have no date.
    for date, days in dates:
        is_there = not days.isdisjoint(days_there)
        strange += [] if is_there else [date[0].rstrip(" .,")]
        rest += f"{text[at : date.start()]} {(date['year'] or '') if is_there else ''} "
        at = date.end()
    return rest + text[at:], strange


def plain_number(number: str) -> str:
    """Return a number in one spelling, however its thousands and decimals are written."""
    return THOUSANDS.sub("", ZEROS.sub("", number.translate(WESTERN))).replace(",", ".")


def sentences_citing(answer: str, n: int) -> list[str]:
    """Return the sentences of an answer that cite a passage, without their citations."""
    return [sentence for sentence, numbers in _sentences(answer) if n in numbers]


def repeated_range(answer: str, passage: str) -> tuple[int, int] | None:
    """Return the start and end of a passage's first sentences that an answer repeats word for word."""
    letters = _letters(answer)
    sentences = sentences_of(passage)
    repeated = [len(text := _letters(one.text)) >= MIN_REPEATED_CHARS and text in letters for one in sentences]
    if True not in repeated:
        return None
    first = repeated.index(True)
    last = sentences[[*repeated, False].index(False, first) - 1]
    return sentences[first].start, last.start + len(passage[last.start : last.end].rstrip())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _carrier(sentence: str, texts: Mapping[int, _Text], question: _Text, least: float) -> int | None:
    """Return the passage that shares the most words with a sentence, if it shares enough."""
    words = content_stems(sentence)
    if len(words) < MIN_WORDS:
        return None
    shares = {n: _share(words, [text]) for n, text in texts.items()}
    best_first = sorted((n for n in shares if shares[n] >= least), key=lambda n: -shares[n])
    return next((n for n in best_first if _problem(sentence, [texts[n]], question) is None), None)


class _Text(Struct, dict=True):
    """A text or a sentence of one, prepared for comparison. It is analysed on demand: most passages are never cited."""

    text: str

    @cached_property
    def sentences(self) -> tuple[_Text, ...]:
        return tuple(_Text(sentence) for line in lines_of(self.text) for sentence in split_text(line))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem, search_words(self.text)))

    @cached_property
    def words(self) -> frozenset[str]:
        return content_stems(self.text)

    @cached_property
    def numbers(self) -> frozenset[str]:
        hours = {int(time[1] or time[4]) % 12 for time in TIME.finditer(self.text)}
        clock = {f"{n:{width}}" for hour in hours for n in (hour, hour + 12) for width in ("", "02")} | {"00"}
        return frozenset(chain(_numbers(self.text), YEAR_OF_DATE.findall(self.text), clock if hours else ()))

    def denied(self, count: int = DENIED_WORDS) -> frozenset[str]:
        """Return the first content words after each negation, as stems."""
        behind = (self.text[match.end() : match.end() + MAX_DENIED_CHARS] for match in NEGATION.finditer(self.text))
        words = ([word for word in content_words(text) if word not in GERMAN][:count] for text in behind)
        return frozenset(map(stem, chain(*words)))

    @cached_property
    def is_limited(self) -> bool:
        return len(NEGATION.findall(self.text)) > 1 or LIMIT.search(self.text) is not None


def lines_of(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text. A line with room for the next word ends one, unless that is in lower case."""
    for block in LINE.split(text):
        lines = block.strip().split("\n")
        longest = max(map(len, lines))
        parts = lines[:1]
        for line, below in pairwise(lines):
            had_room = longest < MIN_WRAPPED_CHARS or len(line) + len(below.partition(" ")[0]) < longest
            is_apart = line.startswith("#") or (had_room and not below.lstrip()[:1].islower())
            parts += ["\n" if is_apart else " ", below]
        yield from (" ".join(part.split()) for part in "".join(parts).split("\n"))


def _sentences(answer: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the sentences of an answer, each without its citations and with their numbers."""
    for line in lines_of(CODE.sub(" ", answer)):
        # A citation behind a full stop belongs to the sentence before it.
        line = BEHIND_STOP.sub(r" \2\1 ", LINE_MARK.sub("", line))
        for sentence in split_text(line):
            numbers = [number for match in CITATION.finditer(sentence) for number in cited_numbers(match)]
            yield " ".join(CITATION.sub(" ", sentence).split()), numbers


def _problem(sentence: str, passages: Sequence[_Text], question: _Text) -> tuple[Problem, tuple[str, ...]] | None:
    """Return what a sentence says that no passage has, the clearest problem first; ``None`` if they support it."""
    words, texts = content_stems(sentence), [*passages, question]
    rest, strange = _without_dates(sentence, "\n".join(one.text for one in texts))
    numbers, there = _numbers(rest), frozenset[str]().union(*(one.numbers for one in texts))
    if missing := (*strange, *(number for number in numbers if number not in there)):
        return "number", missing
    if not all(_is_beside(number, rest, words, texts) for number in numbers):
        return "words", ()  # It is there, but about something else.
    stems = question.stems.union(*(passage.stems for passage in passages))
    names = tuple(name for name in _names(rest) if not stems.issuperset(map(stem, search_words(name))))
    if names:
        return "name", names
    if len(words) >= MIN_WORDS and _share(words, passages) < MIN_SHARE:
        return "words", ()
    return ("negation", ()) if _is_opposite(sentence, passages) else None


def _share(words: frozenset[str], texts: Sequence[_Text]) -> float:
    """Return the share of a sentence's content words that some texts have together; 1 without any."""
    stems = frozenset[str]().union(*(text.stems for text in texts))
    return len(words & stems) / len(words) if words else 1.0


def _is_beside(number: str, sentence: str, words: frozenset[str], texts: Sequence[_Text]) -> bool:
    """Return whether a number is in a text with another word of its sentence, if there is one: at least in "version 2".

    A year may stand at the beginning of a document.
    """
    least = min(MIN_BESIDE_NUMBER if len(words) > MIN_WORDS else 1, len(words) - 1)
    labels = _labels(sentence, number)
    return YEAR.fullmatch(number) is not None or any(
        number in one.numbers and (len(words & one.words - {number}) >= least or labels & _labels(one.text, number))
        for text in texts
        for one in text.sentences
    )


def _labels(text: str, number: str) -> set[str]:
    return {label.casefold() for label, labelled in LABELLED.findall(text) if labelled == number}


def _is_opposite(sentence: str, passages: Sequence[_Text]) -> bool:
    """Return whether a sentence denies what the passages never deny, or states what their nearest sentence denies.

    What is limited ("only", "not without") denies nothing. Few words are easily alike, so they must be denied first, in
    a sentence with few others, and nothing may be limited.
    """
    text = _Text(YES_OR_NO.sub("", sentence))
    words = content_stems(NEGATION.sub(" ", text.text))
    parts = [part for passage in passages for part in passage.sentences]
    shares = [len(words & part.words) / max(1, len(words)) for part in parts]
    best, is_short = max(shares, default=0.0), len(words) < MIN_WORDS
    alike = [part for part, share in zip(parts, shares, strict=True) if share >= max(best, MIN_ALIKE)]
    if not alike or (is_short and any(one.is_limited for one in (text, *alike))):
        return False
    if denied := text.denied():
        return not any(denied & part.denied() for part in (alike if is_short else parts))
    return not any(part.is_limited or (is_short and len(part.words) > 2 * len(words)) for part in alike) and all(
        2 * len(some & words) > len(some) for some in (part.denied(1 if is_short else DENIED_WORDS) for part in alike)
    )


def _numbers(text: str) -> list[str]:
    return list(dict.fromkeys(map(plain_number, NUMBER.findall(text))))


def _names(sentence: str) -> list[str]:
    """Return the capitalised words that don't begin the sentence alone; if nouns are, only those with titles."""
    first, words = FIRST.match(sentence), set(search_words(sentence))
    begins = first.groups()[:1] if first and ENGLISH.isdisjoint(map(str.lower, first.groups())) else ()
    names = [*begins, *NAME.findall(sentence)]
    may_be_german = GERMAN & words or (len(words) < MIN_WORDS and ENGLISH.isdisjoint(words))
    if may_be_german and len(names) > MAX_CAPITALS * len(sentence.split()):
        names = []
    names += TITLED.findall(sentence)
    return [name for name in dict.fromkeys(names) if len(name) >= MIN_NAME_CHARS and name not in NOT_NAMES]
