"""The available languages, and the marker for texts that are translated where they are shown."""

from typing import Literal

from msgspec import Struct


def N_(text: str) -> str:
    """Return the text unchanged."""
    return text


class Language(Struct, frozen=True):
    """A language: ``tag`` is its name in HTML and Intl (BCP 47), ``locale`` in CLDR."""

    code: str
    name: str
    tag: str
    locale: str
    direction: Literal["ltr", "rtl"] = "ltr"


ENGLISH = Language("en", "English", "en", "en_GB")
# To add one, add a row here and a catalog; see CONTRIBUTING.md.
LANGUAGES = {
    language.code: language
    for language in (
        ENGLISH,
        Language("de", "Deutsch", "de", "de"),
        Language("fr", "Français", "fr", "fr"),
        Language("es", "Español", "es", "es"),
        Language("zh", "简体中文", "zh-Hans", "zh_Hans"),
        # With Latin digits, like the figures in answers and addresses.
        Language("ar", "العربية", "ar-u-nu-latn", "ar", "rtl"),
    )
}
TRANSLATED = tuple(language for language in LANGUAGES.values() if language is not ENGLISH)
