"""What is said below the page is recognised by its shape, whatever stands in its places."""

import time

import pytest

from rag_assistant.history.words import numbers_in_words, seen, view_sentence
from rag_assistant.web.i18n.catalogs import (
    CODE,
    MAX_CHARS,
    PLACEHOLDER,
    PLACEHOLDER_PATTERNS,
    catalog,
    pattern_of,
    translate,
)
from rag_assistant.web.i18n.languages import TRANSLATED, Language

LANGUAGE = pytest.mark.parametrize("language", TRANSLATED, ids=lambda language: language.code)


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("There is no conversation 7.", "Es gibt keine Unterhaltung 7."),
        ("The summary has 3 characters; the limit is 2.", "Die Zusammenfassung hat 3 Zeichen; erlaubt sind 2."),
        ("The answer was stopped.", "Die Antwort wurde angehalten."),
        ("The answer was stopped. Nothing was done.", "Die Antwort wurde angehalten. Es wurde nichts getan."),
        ("- turns 2, 4 and 6 to 9: excluded", "- Fragen 2, 4 und 6 bis 9: ausgeschlossen"),
        ("The file is empty.\nWe like geese.", "Die Datei ist leer.\nWe like geese."),
    ],
)
def test_what_was_said_is_found(english: str, german: str) -> None:
    assert translate("de", english) == german


def test_what_is_in_a_sentence_is_translated_where_it_is_ours() -> None:
    said = view_sentence(seen(5, {"turn_limit": 18, "excluded": 1}), "gpt")
    assert said == "The model saw 5 of 24 earlier turns (18 over the turn limit; 1 excluded)."
    german = "Das Modell hat 5 von 24 früheren Fragen (18 über der eingestellten Anzahl; 1 ausgeschlossen) gesehen."
    assert translate("de", said) == german


def test_a_list_of_turns_is_one_in_every_language() -> None:
    said = f"Summarising {numbers_in_words([2, 4, 6, 7, 8])}, part 1 of 3."
    assert translate("de", said) == "Zusammengefasst wird: Fragen 2, 4 und 6 bis 8, Teil 1 von 3."


def test_what_somebody_wrote_stays_as_it_is() -> None:
    written = "Salt and pepper, 2 to 4 spoons; cleared."
    assert translate("de", written) == written
    assert translate("de", f'There is no account "{written}".') == f"Es gibt kein Konto „{written}“."
    assert translate("en", "The file is empty.") == "The file is empty."
    assert translate("de", "The file is empty." + " " * 5000) == "The file is empty." + " " * 5000


@LANGUAGE
def test_every_sentence_of_the_code_is_found_with_its_places_filled(language: Language) -> None:
    lost = []
    for message in catalog(language.code):
        is_ours = any(path.startswith(CODE) for path, _ in message.locations)
        if is_ours and isinstance(message.id, str) and PLACEHOLDER.search(message.id):
            if message.string == message.id:  # "{name}: {does}"
                continue
            said = PLACEHOLDER.sub(
                lambda place: "12" if place[1] in PLACEHOLDER_PATTERNS else f"Xy{place[1]}", message.id
            )
            if translate(language.code, said) == said or "{" in translate(language.code, said):
                lost.append(message.id)
    assert lost == []


def test_a_place_may_be_empty() -> None:
    assert pattern_of("{where} is away{why}.").fullmatch("The server is away.")


def test_a_text_that_repeats_what_is_in_a_sentence_is_soon_known_not_to_be_it() -> None:
    for sentence in (
        "An older document says {value} ({document}, {date}).",
        "Sum of {column} per {column2}: {groups}.",
    ):
        first, *between, _ = PLACEHOLDER.split(sentence)[::2]
        begin = time.thread_time()
        assert not pattern_of(sentence).fullmatch((first + "".join(between) * MAX_CHARS)[:MAX_CHARS])
        assert time.thread_time() - begin < 0.1
