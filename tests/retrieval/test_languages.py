"""In which language words are written."""

import pytest

from rag_assistant.retrieval.languages import COMMON_WORDS, SCRIPT_OF_LANGUAGE, language_of, script_of
from rag_assistant.retrieval.tokenize import search_words

SENTENCES = {
    "english": "The keeper of the lighthouse feeds seventeen geese, which are on the island.",
    "german": "Der Leuchtturmwärter füttert siebzehn Gänse, die auf der Insel leben, und sie sind nicht scheu.",
    "french": "Le gardien du phare nourrit dix-sept oies qui vivent sur une île dans la baie.",
    "spanish": "El guarda del faro da de comer a los gansos que viven en una isla y no son tímidos.",
    "portuguese": "O faroleiro alimenta os gansos que vivem em uma ilha e não são tímidos, como foi dito.",
    "italian": "Il guardiano del faro nutre le oche che sono nella baia e non ha più tempo.",
    "dutch": "De vuurtorenwachter voert de ganzen die op het eiland wonen en niet schuw zijn.",
    "swedish": "Fyrvaktaren matar gässen som är på ön och inte är rädda för människor.",
    "polish": "Latarnik karmi gęsi, które są na wyspie i nie boją się, ale kto to był?",
    "turkish": "Fener bekçisi ve kaz bir ada için çok güzel, ama ne zaman olduğu belli değil.",
    "russian": "Смотритель маяка кормит гусей, которые живут на острове, и не боится, что они улетят.",
    "ukrainian": "Доглядач маяка годує гусей, які живуть на острові, та не боїться, що вони із ним або без.",
    "greek": "Ο φύλακας του φάρου ταΐζει τις χήνες που είναι στο νησί και δεν φοβάται.",
    "arabic": "يطعم حارس المنارة الإوز التي كانت في الجزيرة على الساحل.",
    "persian": "نگهبان فانوس دریایی به غازها که در جزیره است غذا می دهد.",
    "hindi": "प्रकाशस्तंभ का रखवाला द्वीप में हंसों को खाना देता है।",
    "marathi": "दीपगृहाचा रखवालदार बेटावर आहे आणि तो हंसांना खायला देतो.",
    "tamil": "இந்த தீவில் ஒரு கலங்கரை விளக்கம் உள்ள இடம்.",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language: str) -> None:
    assert language_of(search_words(SENTENCES[language])) == language


@pytest.mark.parametrize("text", ["", "goose 17", "der", "机器学习很有用", "ภาษาไทย", "SELECT name FROM geese;"])
def test_what_does_not_tell_has_no_language(text: str) -> None:
    assert language_of(search_words(text)) == ""


def test_only_some_languages_may_be_asked_for() -> None:
    words = search_words("Wie viele Gänse sind auf der Insel?")
    assert language_of(words, ["english", "german"]) == "german"
    assert language_of(words, ["english"]) == ""


def test_each_languages_words_are_in_its_script() -> None:
    for script, languages in COMMON_WORDS.items():
        for language, words in languages.items():
            assert {script_of(word) for word in words.split()} == {script}, language
            assert SCRIPT_OF_LANGUAGE[language] == script


@pytest.mark.parametrize(
    ("word", "script"), [("a", "latin"), ("étage", "latin"), ("ж", "cyrillic"), ("漢字", ""), ("5", "latin")]
)
def test_a_word_has_the_script_of_its_first_letter(word: str, script: str) -> None:
    assert script_of(word) == script
