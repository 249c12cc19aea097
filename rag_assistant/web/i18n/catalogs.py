"""The page's texts in a language, read from its .po file; and English sentences from below ``web``, translated.

Errors are raised, logged and stored in English, and a note may be years old when it is read. For a page they are
matched with the sentences in the code, in which a name in braces stands for any text.
"""

import re
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from itertools import chain, islice, zip_longest
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol

from rag_assistant.web.i18n.languages import ENGLISH, LANGUAGES, Language

FOLDER = Path(__file__).parent / "translations"
# Where the scripts' texts are.
SCRIPTS = "static/js/"
# Covers every plural form of our languages.
SAMPLES = (*range(101), 1_000_000)


def catalog_path(language: Language) -> Path:
    return FOLDER / f"{language.code}.po"


@cache
def catalog(code: str) -> Catalog:
    """Return the catalog of a language."""
    with catalog_path(LANGUAGES[code]).open("rb") as file:
        return read_po(file, locale=LANGUAGES[code].locale)


@cache
def translations(code: str) -> NullTranslations:
    """Return a language's catalog for gettext; English is the source."""
    if code == "en":
        return NullTranslations()
    compiled = BytesIO()
    write_mo(compiled, catalog(code))
    compiled.seek(0)
    return GNUTranslations(compiled)


def script_texts(code: str) -> dict[str, str | dict[str, str]]:
    """Return the scripts' texts in a language; one with a plural has its forms by CLDR category."""
    if code == "en":
        return {}
    texts: dict[str, str | dict[str, str]] = {}
    # The categories of Intl.PluralRules: other, one, two, ...
    form_of = Locale.parse(LANGUAGES[code].locale).plural_form
    for message in catalog(code):
        if any(path.startswith(SCRIPTS) for path, _ in message.locations):
            if isinstance(message.id, str):
                texts[message.id] = str(message.string)
            else:
                one, many = message.id
                texts[one] = {form_of(n): translations(code).ngettext(one, many, n) for n in SAMPLES}
    return texts


# Where those sentences are.
CODE = "rag_assistant/"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
NUMBER = r"\d[\d,]*"
NUMBERS = rf"{NUMBER}(?:(?:, | and | to ){NUMBER})*"
# A figure may be a sum: "1 + 2.5 = 3.5".
FIGURE = r"-?\d[\d,.]*(?: [+=] -?\d[\d,.]*)*"
# Placeholders with restricted values, so that no other sentence matches.
PLACEHOLDER_PATTERNS = {"numbers": NUMBERS, "figure": FIGURE} | dict.fromkeys(("n", "n1", "n2"), NUMBER)
# What changes of a table's own words: nothing, figures, or what isn't quoted of "“Kind” is “van” and “Seats” > 5".
CHANGED = {
    **dict.fromkeys(("column", "column2", "cells"), re.compile(r"(?!)")),
    "figure": re.compile(r"\d[\d,.]*"),
    "groups": re.compile(r"\d[\d,.]*(?=;|$)"),
    "conditions": re.compile(r"“[^”]*”|does not contain|contains|is not|is|and|or|empty"),
}
END = re.compile(r"(?<=[.!?:]) ")
# Separators of the parts of a list, by placeholder.
LISTS = {"why": "; ", "places": "; ", "parts": ", "}
BETWEEN = re.compile(" (and|to) ")
BULLET = "- "
# Longer than any of our sentences; text of a model or a person isn't searched.
MAX_CHARS = 2_000
# So many of them may make one known part.
MAX_SENTENCES = 8


def translate(code: str, text: str) -> str:
    """Return a sentence in a language; unknown ones stay as they are."""
    if code == ENGLISH.code or len(text) > MAX_CHARS:
        return text
    if "\n" in text:
        return "\n".join(translate(code, line) for line in text.split("\n"))
    if text.startswith(BULLET):
        return BULLET + translate(code, text.removeprefix(BULLET))
    return _translated(code, text) or _in_parts(code, text)


def _in_parts(code: str, text: str) -> str:
    """Return a text of several sentences translated one by one; the longest known part goes first."""
    for end in reversed([match.start() for match in islice(END.finditer(text), MAX_SENTENCES)]):
        first = _translated(code, text[:end])
        if first:
            return f"{first} {translate(code, text[end + 1 :])}"
    return text


def _translated(code: str, text: str) -> str | None:
    translated = translations(code).gettext(text) if text else text
    if translated != text:
        return translated
    for pattern, translation in _shapes(code):
        if match := pattern.fullmatch(text):
            return translation.format(
                **{name: _filling(code, name, value) for name, value in match.groupdict().items()}
            )
    return None


def _filling(code: str, name: str, value: str) -> str:
    """Return a placeholder's value: of "turns 2, 4 and 6 to 9" the words are translated, of a list each part."""
    if name in CHANGED:
        locale = (ENGLISH if name == "conditions" else LANGUAGES[code]).locale
        separators = {ord(","): get_group_symbol(locale), ord("."): get_decimal_symbol(locale)}
        return CHANGED[name].sub(lambda match: translations(code).gettext(match[0].translate(separators)), value)
    if name == "numbers":
        return BETWEEN.sub(lambda match: f" {translations(code).gettext(match[1])} ", value)
    mark = LISTS.get(name)
    return mark.join(translate(code, part) for part in value.split(mark)) if mark else translate(code, value)


@cache
def _shapes(code: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return a pattern for each sentence with placeholders, and its translation; longest first."""
    shapes = [
        (str(message.id), str(message.string))
        for message in catalog(code)
        if isinstance(message.id, str)
        and message.string
        and PLACEHOLDER.search(message.id)
        and any(path.startswith(CODE) for path, _ in message.locations)
    ]
    shapes.sort(key=lambda pair: len(PLACEHOLDER.sub("", pair[0])), reverse=True)
    return tuple((pattern_of(source), translation) for source, translation in shapes)


def pattern_of(source: str) -> re.Pattern[str]:
    """Return the pattern that matches a sentence with any values in its placeholders."""
    literals, names = PLACEHOLDER.split(source)[::2], PLACEHOLDER.split(source)[1::2]
    values = [PLACEHOLDER_PATTERNS.get(name, ".*?") for name in names]
    for n, following in enumerate(values[1:]):
        # Before any text, the first place where a value may end is as good as every later one: no other is tried.
        if values[n] == following == ".*?":
            values[n] = f"(?>.*?(?={re.escape(literals[n + 1])}))"
    named = (f"(?P<{name}>{value})" for name, value in zip(names, values, strict=True))
    return re.compile("".join(chain(*zip_longest(map(re.escape, literals), named, fillvalue=""))), re.DOTALL)
