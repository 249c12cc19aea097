"""Documents with the same text, or nearly, are recognised whatever their format; others never are."""

import random
import re

import pytest

from rag_assistant.retrieval.near_copies import Sketch, near_copies, share_of, sketch_of

WORDS = [f"{start}{end}" for start in ("lam", "har", "kee", "wha", "oil", "bou") for end in ("p", "bour", "per", "le")]


def text_of(seed: int, words: int = 600) -> str:
    chosen = random.Random(seed)
    return " ".join(chosen.choice(WORDS) + str(chosen.randrange(50)) for _ in range(words)) + "."


def sketch(text: str) -> Sketch:
    of_text = sketch_of(text)
    assert of_text is not None
    return of_text


TEXT = text_of(1)
SAME = {
    "Markdown": "# Title\n\n" + re.sub(r"(\w+) (\w+)", r"**\1** _\2_\n", TEXT),
    "a PDF": "Title " + re.sub(r"([a-z]{3})([a-z]+)", "\\1\u00ad\\2", TEXT),
    "capitals": "TITLE: " + TEXT.upper(),
    "typographic": "Title \u2013 " + TEXT.replace(" ", "\u2003") + "\u201d",
}


@pytest.mark.parametrize("form", SAME)
def test_the_format_of_a_text_makes_no_difference(form: str) -> None:
    assert share_of(sketch(f"Title {TEXT}"), sketch(SAME[form])) == 1


@pytest.mark.parametrize(
    ("other", "least", "most"),
    [
        (TEXT.replace(TEXT.split()[300], "cargo7"), 0.9, 0.995),
        (TEXT[: len(TEXT) * 8 // 10], 0.7, 0.9),
        (text_of(2), 0, 0.05),
        (TEXT[: len(TEXT) // 3] + text_of(3), 0, 0.5),
    ],
    ids=["a changed word", "a fifth removed", "another text", "a passage quoted"],
)
def test_the_share_in_common_is_close_to_the_truth(other: str, least: float, most: float) -> None:
    assert least <= share_of(sketch(TEXT), sketch(other)) <= most


def test_a_short_text_is_not_compared() -> None:
    assert sketch_of("The lamp burns oil. " * 5) is None


def test_a_family_is_found_among_many_texts_that_share_a_boilerplate() -> None:
    boilerplate = text_of(9, 100)
    texts = [f"{boilerplate} {text_of(seed)}" for seed in range(200)]
    texts[50] = texts[150] = texts[10].replace("lam", "sam", 3)
    pairs = [{one, other} for one, other, _ in near_copies(list(map(sketch, texts)))]
    assert len(pairs) == 2
    assert set.union(*pairs) == {10, 50, 150}
