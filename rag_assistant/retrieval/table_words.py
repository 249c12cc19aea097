"""The words of a question and of a table's columns, as the rules for tables compare them. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.table_query import MONEY, THOUSANDS, YEAR, date_of, figure
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import STOP_WORDS

TOKEN = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?!\d)|\d[\d.,'\u2019]*\d|\d|[^\W\d_]+|[%€$£]")
NOT = re.compile(r"n['\u2019]t\b|\bno longer\b|\bnicht mehr\b", re.IGNORECASE)
GENITIVE = re.compile(r"(?<=\w)['\u2019]s\b", re.IGNORECASE)
# "Unapproved" is "not approved", unless a table has the word.
UN = re.compile(r"(?:un|in|im|dis|non|ir)(?=[^\W\d_]{4})")
# Units and the like: a column's name has the one, a question the other.
UNITS = {
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), "km"),
    **dict.fromkeys(("kg", "kilo", "kilos", "kilogram", "kilograms", "kilogramm"), "kg"),
    **dict.fromkeys(("eur", "euro", "euros", "€"), "eur"),
    **dict.fromkeys(("usd", "dollar", "dollars", "$"), "usd"),
    **dict.fromkeys(("gbp", "pound", "pounds", "£"), "gbp"),
    **dict.fromkeys(("chf", "franc", "francs", "franken"), "chf"),
    **dict.fromkeys(("min", "minute", "minutes", "minuten"), "min"),
    **dict.fromkeys(("h", "hrs", "hour", "hours", "stunden"), "h"),
    **dict.fromkeys(("%", "percent", "prozent"), "%"),
    **dict.fromkeys(("decide", "decided", "decision", "decisions"), "decision"),
}
CURRENCIES = frozenset({"eur", "usd", "gbp", "chf"})
# Words that join others; they name no column and no value by themselves.
JOINING = STOP_WORDS | frozenset(
    """
    being under over above before after between within without against per off via since until till during each every
    both either every only other than else yet still already currently now no never again anyone anybody
    der die das den dem des ein eine einen einem einer und oder in im an am auf aus bei mit von vom zu zur zum für nach
    vor seit bis ab ist sind war waren wird werden wurde wurden hat haben hatte hatten gibt es wir ich sie er ihr uns
    unser unsere unseren als auch noch schon bereits nur wie was wer wem wen wo wann welche welcher welches welchen
    welchem so dass nicht kein keine keinen keiner ohne
    """.split()
)
# Words without meaning for a query, unless a table has them.
FILLERS = frozenset(
    """
    list show give name tell many much get gets got make makes made row rows record records entry entries entrys
    item items table value values thing things step steps each every everyone everything different distinct overall
    often times time put able exist exists given according once currently still right actually listed mentioned say
    says said must need needs take takes taken took go goes went come comes came carry carries carried belong
    belongs belonging own owns owned hit hits work works live lives based located place placed hold holds held keep
    keeps kept use uses used bring agree agrees agreed teach teaches taught run runs lead leads led manage manages
    managed handle handles handled offer offers offered provide provides provided store stores stored stock stocks
    stocked contain contains include includes included cover covers serve serves sit sits stay stays study play
    plays attend attends supply supplies supplied drive drives nenne nennen zeige zeigen liste viele viel oft hoch
    alle aller allen alles insgesamt einträge zeilen arbeiten arbeitet gehören gehört wohnen wohnt leitet leiten
    kommen kommt liegen liegt stehen steht
    """.split()
)
PEOPLE = re.compile(r"\b(?:people|persons?|everyone|personen|leute)\b")
STAFF = re.compile(r"\b(?:staff|employees?|colleagues?|mitarbeiter\w*)\b")
PERSONS = re.compile(
    r"\b(?:member|guest|customer|student|player|volunteer|trainee|teacher|mitglied|kunde|teilnehmer)", re.IGNORECASE
)
WORKERS = re.compile(r"\b(?:employee|person|people|staff|mitarbeiter|name|vorname)\b", re.IGNORECASE)
PIECES = re.compile(r"\b(?:pieces?|units?|stück)\b")
QUANTITY = re.compile(r"quantity|qty|pieces|units|stock|on hand|menge|anzahl|stück|bestand", re.IGNORECASE)
PHRASES = re.compile(r"\b(?:t(?:ook|akes?|aken) care of|le(?:ads?|d) to|in charge of|responsible for)\b")
NUMBERING = re.compile(r"(?:no|nr|number|id|pos|item|#|inventory no)\.?", re.IGNORECASE)
# Who does something: what is supplied by a supplier.
AGENT = re.compile(r"(?<=[^\W\d_]{3})(?:er|or)$")
MIN_OF_KIND = 0.8
YES = frozenset("yes y true x ✓ ✔ done ja j wahr erledigt".split())
NO = frozenset("no n false - – ✗ open pending nein falsch offen".split())  # noqa: RUF001
# Cells that say that there is nothing.
ABSENT = frozenset("none n/a nil nobody keine keiner niemand".split()) | (NO - {"open", "pending", "offen"}) | {""}

Kind = Literal["text", "number", "date", "flag"]


class Column(Struct, frozen=True, dict=True):
    """A column: its name, the words of that, its cells, and what these are; a ``flag`` says yes or no."""

    name: str
    words: frozenset[str]
    units: frozenset[str]
    cells: tuple[str, ...]
    kind: Kind

    def is_named(self, form: str) -> bool:
        """Return whether a word, in its form, is one of its name."""
        return form in self.words or form in self.units or form.removesuffix("e") in self.words

    @property
    def repeats(self) -> bool:
        """Whether it groups rows: several have the same value."""
        filled = [cell for cell in self.cells if cell]
        return self.kind == "text" and len(set(filled)) < len(filled)

    @property
    def is_filled(self) -> bool:
        return self.kind in ("text", "date") and all(self.cells)

    @property
    def is_money(self) -> bool:
        return self.kind == "number" and bool(MONEY.search(self.name) or CURRENCIES & self.units)

    @property
    def absent(self) -> tuple[str, ...]:
        """Its values that say that there is nothing."""
        return tuple(sorted({cell for cell in self.cells if cell.casefold() in ABSENT or figure(cell) == 0}))


class Speech:
    """The language of a question, in which its words and those of a table are compared."""

    def __init__(self, question: str) -> None:
        words = tokens_of(question)
        self._language = language_of(words) or language_of(words, ("english", "german"), 1) or "english"

    @property
    def is_english(self) -> bool:
        return self._language == "english"

    def form(self, word: str) -> str:
        return _form(word, self._language)

    def forms(self, text: str) -> list[str]:
        """Return the words of a text without their endings, in order."""
        return [self.form(word) for word in tokens_of(text)]

    def telling(self, text: str) -> list[str]:
        """Return the same without words that only join others."""
        return [self.form(word) for word in tokens_of(text) if word not in JOINING]

    def column(self, name: str, cells: Sequence[str]) -> Column:
        plain, _, unit = name.partition("(")
        units = set(self.forms(unit)) | ((CURRENCIES | {"%"}) & set(self.forms(" ".join(cells[:3]))))
        words = self.telling(plain) or self.telling(name)
        forms = frozenset({*words, *(AGENT.sub("", word) for word in words)})
        return Column(name, forms, frozenset(units), tuple(cells), _kind(name, cells))


def tokens_of(text: str) -> list[str]:
    """Return the words, figures and dates of a text, in lower case."""
    return TOKEN.findall(GENITIVE.sub("", text).lower())


@lru_cache(maxsize=10_000)
def _form(word: str, language: str) -> str:
    return UNITS.get(word) or stems([word], language)[0]


def _kind(name: str, cells: Sequence[str]) -> Kind:
    filled = [cell.strip() for cell in cells if cell.strip()]
    low = {cell.casefold() for cell in filled}
    if low and low <= YES | NO and (len(low) > 1 or not low <= {"-", "–", "x", "y", "n", "j"}):  # noqa: RUF001
        return "flag"

    def share(is_one: Callable[[str], object]) -> bool:
        return bool(filled) and sum(bool(is_one(cell)) for cell in filled) >= MIN_OF_KIND * len(filled)

    if share(date_of) or (share(YEAR.fullmatch) and not MONEY.search(name)):
        return "date"
    if any(map(THOUSANDS.fullmatch, filled)) and all(THOUSANDS.fullmatch(cell) or "." not in cell for cell in filled):
        return "text"  # Nobody knows whether 1.500 is one and a half.
    is_number = share(lambda cell: figure(cell) is not None) and not NUMBERING.fullmatch(name.strip())
    return "number" if is_number else "text"


class Words:
    """The words of a question, and which of them are explained so far."""

    def __init__(self, question: str, speech: Speech, vocabulary: set[str]) -> None:
        question = GENITIVE.sub("", NOT.sub(" not", question))
        self.originals = list(_split_up(TOKEN.findall(question), speech, vocabulary))
        self.tokens = [word.lower() for word in self.originals]
        self.forms = [speech.form(word) for word in self.tokens]
        self.explained: set[int] = set()

    @property
    def text(self) -> str:
        """The words that aren't explained, with a bar in place of the others."""
        return " ".join("|" if n in self.explained else word for n, word in enumerate(self.tokens))

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], range]]:
        """Yield where a pattern matches unexplained words, with the positions of these."""
        text = self.text
        starts = list(accumulate((len(word) + 1 for word in text.split(" ")), initial=0))
        for match in pattern.finditer(text):
            inside = [n for n, start in enumerate(starts[:-1]) if match.start() <= start < match.end()]
            if inside:
                yield match, range(inside[0], inside[-1] + 1)

    def take(self, pattern: re.Pattern[str]) -> tuple[re.Match[str], range] | None:
        """Return the first such match, and explain its words."""
        span = next(self.find(pattern), None)
        if span:
            self.explained.update(span[1])
        return span

    def explain(self, positions: Iterable[int]) -> None:
        self.explained.update(positions)

    def left(self) -> list[int]:
        """Return the positions of words that aren't explained and don't just join others."""
        return [n for n, word in enumerate(self.tokens) if n not in self.explained and word not in JOINING]


def _split_up(words: Iterable[str], speech: Speech, vocabulary: set[str]) -> Iterator[str]:
    """Yield words, with "unpaid" as "not paid" if a table knows only the latter."""
    for word in words:
        un = UN.match(word.lower())
        if un and speech.form(word.lower()) not in vocabulary and speech.form(word[un.end() :].lower()) in vocabulary:
            yield from ("not", word[un.end() :])
        else:
            yield word
