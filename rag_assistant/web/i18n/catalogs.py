"""The page's texts in a language, read from its .po file."""

from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from rag_assistant.web.i18n.languages import LANGUAGES, Language

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
def translations(code: str) -> GNUTranslations:
    """Return a language's catalog for gettext."""
    compiled = BytesIO()
    write_mo(compiled, catalog(code))
    compiled.seek(0)
    return GNUTranslations(compiled)


def gettext(code: str, text: str) -> str:
    """Return the translation of an English text, or the text itself if there is none."""
    return text if code == "en" else translations(code).gettext(text)


def ngettext(code: str, one: str, many: str, n: int) -> str:
    """Return the plural form of an English text for a number, translated."""
    if code == "en":
        return one if n == 1 else many
    return translations(code).ngettext(one, many, n)


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
                texts[one] = {form_of(n): ngettext(code, one, many, n) for n in SAMPLES}
    return texts
