"""What the page says in a language, read from its .po file."""

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
# Where the texts of the scripts stand.
SCRIPTS = "static/js/"
# Enough to meet every form of a plural that our languages have.
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
    """Return the catalog of a language as gettext looks texts up."""
    compiled = BytesIO()
    write_mo(compiled, catalog(code))
    compiled.seek(0)
    return GNUTranslations(compiled)


def gettext(code: str, text: str) -> str:
    """Return an English text in a language; where it has none, as it is."""
    return text if code == "en" else translations(code).gettext(text)


def ngettext(code: str, one: str, many: str, n: int) -> str:
    """Return the form of an English text in a language that suits a number."""
    if code == "en":
        return one if n == 1 else many
    return translations(code).ngettext(one, many, n)


def script_texts(code: str) -> dict[str, str | dict[str, str]]:
    """Return the texts of the scripts in a language; one with a plural has its forms by their names in CLDR."""
    if code == "en":
        return {}
    texts: dict[str, str | dict[str, str]] = {}
    # The forms of a text have the names that Intl.PluralRules gives: other, one, two, ...
    form_of = Locale.parse(LANGUAGES[code].locale).plural_form
    for message in catalog(code):
        if any(path.startswith(SCRIPTS) for path, _ in message.locations):
            if isinstance(message.id, str):
                texts[message.id] = str(message.string)
            else:
                one, many = message.id
                texts[one] = {form_of(n): ngettext(code, one, many, n) for n in SAMPLES}
    return texts
