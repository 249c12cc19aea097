"""Terms of keyword search: stems by language, and search in many scripts on both databases."""

import pytest

from rag_assistant.records import Chunk
from rag_assistant.retrieval.terms import forms_of, index_terms, query_terms, stems
from rag_assistant.storage.database import Database
from tests.testkit.shelf import Shelf


def chunks(*texts: str) -> list[Chunk]:
    return [Chunk(n, 0, 0, text) for n, text in enumerate(texts)]


GERMAN = "Die Häuser an der Straße sind von den Bürgern der Stadt und nicht von uns gebaut worden."
ENGLISH = "The houses on the street were built by the citizens of the town and not by us, as it was said."


def test_each_passage_is_indexed_by_the_stems_of_its_language() -> None:
    pieces, terms = index_terms("", chunks(GERMAN, ENGLISH))
    assert [piece.language for piece in pieces] == ["german", "english"]
    assert "haus" in terms[0].split()
    assert "hous" in terms[1].split()


def test_a_passage_that_does_not_tell_is_in_the_language_of_its_document() -> None:
    pieces, terms = index_terms("Preise.csv", chunks(GERMAN, "Äpfel; 3"))
    assert pieces[1].language == "german"
    assert terms[1] == "preis csv apfel 3"


def test_what_tells_nothing_is_stemmed_as_the_usual_language_of_its_script() -> None:
    pieces, terms = index_terms("", chunks("bicycles 40"))
    assert (pieces[0].language, terms) == ("", ["bicycl 40"])


@pytest.mark.parametrize(
    ("identifier", "words"),
    [("maxRetryCount", {"max", "retri", "count"}), ("HTTPServerFactory", {"http", "server", "factori"})],
)
def test_an_identifier_is_found_by_its_words_and_as_a_whole(identifier: str, words: set[str]) -> None:
    terms = set(
        index_terms("", chunks(f"The {identifier} of the server is three and not four, as it was."))[1][0].split()
    )
    assert words | set(stems([identifier.lower()], "english")) <= terms


def test_a_question_is_asked_in_its_language_if_the_library_has_it_else_in_all_that_it_has() -> None:
    assert query_terms("Wie viele Häuser sind in der Stadt?", ["english", "german"]) == ["haus", "stadt"]
    assert {"hous", "stadt"} <= {*query_terms("houses Stadt", ["english", "german"])}
    assert query_terms("Häuser", ["english"]) == ["häuser"]
    assert query_terms("Häuser", ["german"]) == ["haus"]
    assert query_terms("Häuser", ["english", "german"]) == ["häuser", "haus"]
    assert query_terms("houses", []) == ["hous"]


def test_a_word_in_another_script_has_the_stem_of_that() -> None:
    assert stems(["इन", "databases"], "hindi") == ["इन", "sइन", "databas"]
    assert stems(["databases", "用"], "german") == ["databas", "用"]


def test_words_whose_stemmer_was_not_measured_stay_beside_their_stems() -> None:
    assert stems(["किताबें"], "hindi") == ["किताबें", "sकिताब"]


@pytest.mark.parametrize(("one", "other"), [("हिन्दी", "हिंदी"), ("चाँद", "चांद"), ("أحمد", "احمد"), ("مدرسة", "مدرسه")])
def test_spellings_of_one_word_are_one_term(one: str, other: str) -> None:
    assert set(stems([one], "")) & set(stems([other], ""))


def test_chinese_is_searched_by_pairs_and_characters_without_those_that_say_nothing() -> None:
    assert index_terms("", chunks("茶叶的价"))[1] == ["茶叶 茶 叶的 叶 的价 的 价"]
    assert query_terms("茶叶是什么", [""]) == ["茶叶", "茶", "叶"]
    assert query_terms("是什么", [""]) != []


def test_the_forms_of_a_word_are_those_of_every_language_of_the_library() -> None:
    assert forms_of(["häuser"], ["english", "german"]) == {"häuser": {"häuser", "haus"}}


PASSAGES = {
    "hindi": (
        "विद्यालय में लड़कियों की टीम ने कबड्डी जीती।", "किसान सर्दियों में गेहूँ और सरसों बोते हैं।",
        "जयपुर की रेलगाड़ी शाम छह बजे चलती है।", "मंदिर की सीढ़ियाँ तीन सौ हैं।",
        "रेल किस समय चलती है, जयपुर वाली?", 2,
    ),
    "thai": (
        "ห้องสมุดเปิดเวลาแปดโมงเช้าและปิดตอนค่ำ", "รถไฟไปเชียงใหม่ออกทุกวันตอนหกโมงเย็น",
        "ข้าวเหนียวมะม่วงทำจากข้าวเหนียวกะทิและมะม่วงสุก", "โรงพยาบาลอยู่ข้างตลาดน้ำ",
        "รถไฟไปเชียงใหม่ออกกี่โมง", 1,
    ),
    "tamil": (
        "நூலகம் காலை எட்டு மணிக்கு திறக்கும்.", "ரயில் சென்னைக்கு மாலை ஆறு மணிக்கு புறப்படும்.",
        "மருத்துவமனை சந்தைக்கு அருகில் உள்ளது.", "கிராமத்தில் பழைய வீடுகள் பல உள்ளன.",
        "கிராமத்தின் வீடு எப்படி உள்ளது?", 3,
    ),
    "arabic": (
        "تَفْتَحُ المَكْتَبَةُ أَبْوَابَهَا في الثَّامِنَةِ صَبَاحًا.", "يغادر القطار إلى دمشق كل يوم في السادسة مساء.",
        "يقع المستشفى قرب السوق القديم.", "يزرع الفلاحون القمح في الشتاء.",
        "متى تفتح المكتبة أبوابها؟", 0,
    ),
    "german": (
        "Die Bibliothek öffnet um acht Uhr.", "Der Zug nach Köln fährt am Abend ab.",
        "Im Dorf stehen viele alte Häuser aus Holz.", "Die Bauern säen im Herbst Weizen.",
        "Wo steht das Haus aus Holz?", 2,
    ),
    "russian": (
        "Библиотека открывается в восемь часов.", "Поезд в Москву отправляется вечером.",
        "В деревне много старых домов из дерева.", "Крестьяне сеют пшеницу осенью.",
        "Где находятся старые дома?", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", PASSAGES)
def test_a_question_finds_its_passage_among_others_by_words(database: Database, language: str) -> None:
    *texts, question, best = PASSAGES[language]
    shelf = Shelf(database)
    shelf.read(shelf.add(), *map(str, texts))
    hits = shelf.keywords.search(query_terms(str(question), shelf.keywords.store.state().languages), 4)
    assert hits[0][0] == int(best) + 1


def test_in_a_library_of_many_languages_each_question_finds_its_passage(database: Database) -> None:
    shelf = Shelf(database)
    for language, (*texts, _, _) in PASSAGES.items():
        shelf.read(shelf.add(language), *map(str, texts))
    assert {"german", "hindi"} <= set(shelf.keywords.store.state().languages)
    for document, (_, _, _, _, question, best) in enumerate(PASSAGES.values()):
        hits = shelf.keywords.search(query_terms(str(question), shelf.keywords.store.state().languages), 4)
        assert hits[0][0] == 4 * document + int(best) + 1, question
