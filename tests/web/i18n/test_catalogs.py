"""Nothing is left untranslated, and nothing is translated into something else."""

import re
import shutil
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog

from rag_assistant.settings.schema import Settings
from rag_assistant.web.i18n.catalogs import catalog, catalog_path, script_texts
from rag_assistant.web.i18n.languages import LANGUAGES, TRANSLATED, Language
from tests.testkit import translations
from tests.testkit.translations import as_file, every_text, missing, renew, source
from tests.web.i18n.visible import untranslated_of_script, untranslated_of_template

PROJECT = Path(__file__).resolve().parents[3]
TEMPLATES = sorted((PROJECT / "templates").glob("*.html"))
SCRIPTS = sorted((PROJECT / "static" / "js").rglob("*.js"))
# The documentation and the description of the API are in English.
IN_ENGLISH = ("help.html", "_api_operations.html", "api_docs.html")
LANGUAGE = pytest.mark.parametrize("language", TRANSLATED, ids=lambda language: language.code)
PLACE = re.compile(r"\{\w+\}")
TAG = re.compile(r"<[^>]+>")


@pytest.fixture(scope="session")
def texts() -> Catalog:
    return source()


def pairs(code: str) -> list[tuple[str, str]]:
    """Return every English text of a catalog with its translation, each form of a plural by itself."""
    found = []
    for message in catalog(code):
        if message.id:
            english = message.id[-1] if isinstance(message.id, tuple) else str(message.id)
            forms = message.string if isinstance(message.string, tuple) else (message.string,)
            found += [(english, str(form)) for form in forms]
    return found


@LANGUAGE
def test_a_catalog_has_every_text_and_is_as_make_translations_writes_it(language: Language, texts: Catalog) -> None:
    renewed = renew(language, texts)
    assert missing(renewed) == []
    assert catalog_path(language).read_text() == as_file(renewed), "run make translations"


@pytest.mark.long
def test_a_translation_is_not_dropped_while_code_that_moved_still_says_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for language in TRANSLATED:
        shutil.copy(catalog_path(language), tmp_path)
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    monkeypatch.setattr(translations, "catalog_path", lambda language: tmp_path / catalog_path(language).name)
    # As if that file were not in SPEAKING.
    speaking = {(path, text) for path, text in every_text() if path != "rag_assistant/storage/failures.py"}
    monkeypatch.setattr(translations, "every_text", lambda: speaking)
    assert translations.main() == 1
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before
    assert (
        "rag_assistant/storage/failures.py: The database could not do this: see the server log."
        in capsys.readouterr().out
    )


@LANGUAGE
def test_a_translation_has_the_places_and_the_html_of_the_english_text(language: Language) -> None:
    counted = {message.id[-1] for message in catalog(language.code) if isinstance(message.id, tuple)}
    wrong = []
    for english, said in pairs(language.code):
        wanted, has = set(PLACE.findall(english)), set(PLACE.findall(said))
        # "Two documents" says how many there are in a word.
        if wanted - has - ({"{n}"} if english in counted else set()) or has - wanted:
            wrong.append((english, said))
        if sorted(TAG.findall(english)) != sorted(TAG.findall(said)):
            wrong.append((english, said))
    assert wrong == []


@LANGUAGE
def test_a_translation_says_something_else_than_the_english_text(language: Language) -> None:
    sentences = [
        (english, said) for english, said in pairs(language.code) if english.endswith(".") and english.count(" ") > 2
    ]
    assert [english for english, said in sentences if english == said] == []


@LANGUAGE
def test_scripts_get_their_texts_and_a_form_for_every_number(language: Language) -> None:
    found = script_texts(language.code)
    assert found["Stopping."] != "Stopping."
    forms = found["{n} file added"]
    assert isinstance(forms, dict)
    assert "other" in forms
    assert len(set(forms.values())) == {"zh": 1, "ar": 6}.get(language.code, 2)


def test_a_template_says_nothing_past_the_catalogs() -> None:
    translated = [path for path in TEMPLATES if path.name not in IN_ENGLISH]
    assert [(path.name, text) for path in translated for text in untranslated_of_template(path.read_text())] == []


def test_a_script_says_nothing_past_the_catalogs() -> None:
    assert [(path.name, text) for path in SCRIPTS for text in untranslated_of_script(path.read_text())] == []


@pytest.mark.parametrize(
    "said",
    [
        "<p>Hello there</p>",
        '<a title="Go on">{{ _("Go") }}</a>',
        '{{ "Yes" if good else _("No") }}',
        '{% if good %}{{ name or "nobody" }}{% endif %}',
        '{{ "Page " ~ number }}',
    ],
)
def test_what_a_template_would_say_in_english_is_seen(said: str) -> None:
    assert untranslated_of_template(said)


@pytest.mark.parametrize(
    "said",
    ['toast("Nothing was found.");', "show(`The file ${name} is gone.`);", 'button.textContent = "Stop";'],
)
def test_what_a_script_would_say_in_english_is_seen(said: str) -> None:
    assert untranslated_of_script(said)
    assert untranslated_of_script('toast(t("Nothing was found."), tn("A file", "{n} files", 2));') == []


def test_the_setting_takes_every_language_there_is() -> None:
    allowed = Settings.model_json_schema()["properties"]["page_language"]["enum"]
    assert allowed == ["auto", *LANGUAGES]


def test_a_text_with_a_plural_stands_nowhere_without_it() -> None:
    found = [text for _, text in every_text()]
    counted = {text[0] for text in found if isinstance(text, tuple)}
    assert counted & {text for text in found if isinstance(text, str)} == set(), "gettext keeps one of both"


def test_what_scripts_say_is_found_also_within_other_texts() -> None:
    known = {one for _, text in every_text() for one in ((text,) if isinstance(text, str) else text)}
    said = {text for path in SCRIPTS for text in re.findall(r'\btn?\("([^"]+)"', path.read_text())}
    assert "{n} selected" in said
    assert said - known == set()
