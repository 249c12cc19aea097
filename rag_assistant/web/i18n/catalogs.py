"""The page's texts in a language, read from its .po file."""

from functools import cache
from gettext import GNUTranslations, NullTranslations
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
