"""Which languages there are, and what marks a text to be translated where it is shown, not where it stands."""

from typing import Literal

from msgspec import Struct


def N_(text: str) -> str:
    """Return the text as it is."""
    return text


class Language(Struct, frozen=True):
    """A language: ``tag`` is how HTML and Intl name it (BCP 47), ``locale`` is how CLDR does."""

    code: str
    name: str
    tag: str
    locale: str
    direction: Literal["ltr", "rtl"] = "ltr"


ENGLISH = Language("en", "English", "en", "en_GB")
# Another one takes a row here and a catalog; CONTRIBUTING.md says how.
LANGUAGES = {
    language.code: language
    for language in (
        ENGLISH,
        Language("de", "Deutsch", "de", "de"),
        Language("fr", "Français", "fr", "fr"),
        Language("es", "Español", "es", "es"),
        Language("zh", "简体中文", "zh-Hans", "zh_Hans"),
        # With the digits of the figures that stand in answers and addresses.
        Language("ar", "العربية", "ar-u-nu-latn", "ar", "rtl"),
    )
}
TRANSLATED = tuple(language for language in LANGUAGES.values() if language is not ENGLISH)
