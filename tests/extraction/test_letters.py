"""A wrong encoding is told from a language."""

import pytest

from rag_assistant.extraction.formats.texts import is_misread, is_no_language
from tests.testkit.shared_data import shared

TEXTS = {
    "Czech": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím. "
    * 3,
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw, są obdarzeni rozumem. "
    * 3,
    "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan, järjellä varustettuina. "
    * 3,
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi, có lý trí. " * 4,
    "Hungarian": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Ésszel bírnak. " * 3,
    "code": "def read_text(content: bytes) -> str:\n    return content.decode('utf-8', errors='replace').strip()\n" * 4,
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_language_is_one(language: str) -> None:
    assert not is_no_language(TEXTS[language])
    assert not is_misread(TEXTS[language])


@pytest.mark.parametrize("language", ["ar", "de", "en", "th", "zh"])
def test_no_paragraph_of_an_encyclopedia_is_taken_for_garbled(language: str) -> None:
    lines = shared(f"xquad/corpus_{language}.jsonl").read_text().splitlines()[:300]
    assert [line for line in lines if is_misread(line)] == []


@pytest.mark.parametrize("shift", [1, 2, 5, 7, 11])
def test_exchanged_letters_are_no_language(shift: int) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    exchanged = TEXTS["code"].translate(str.maketrans(letters, letters[shift:] + letters[:shift]))
    assert is_no_language(exchanged)


def test_half_width_japanese_in_arabic_letters_is_misread() -> None:
    assert is_misread("半角ﾊﾝｶｸ ｶﾀｶﾅ".encode("cp932").decode("cp1256", "replace"))
