"""When an answer that repeats itself is ended."""

import pytest

from rag_assistant.answering.sending import REPEATED_CHARS, repeats_itself


@pytest.mark.parametrize(
    "text",
    [
        "I do not know. ",
        "a",
        "\n",
        "The geese are asleep, and nobody wakes them. " * 8,
        "Ich weiß es nicht. ",
        "不知道。",
    ],
)
def test_the_same_text_again_and_again_is_a_repetition(text: str) -> None:
    assert repeats_itself((f"So it was. {text * REPEATED_CHARS}")[-REPEATED_CHARS:])


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"| Room {n} | free |\n" for n in range(4_000)),
        "".join(f"Verse {n}.\nRefrain, refrain, refrain.\n" for n in range(2_000)),
        "The geese are asleep. " * 500,
        "The geese are asleep, and nobody wakes them. " * 50 + "But then they wake. " + "No. " * 3_900,
        ("The geese are asleep, and nobody wakes any of the seventeen of them before the sun is up. " * 8 + "Or not? ")
        * 9,
        "",
    ],
)
def test_what_is_alike_or_long_is_none(text: str) -> None:
    assert not repeats_itself(text[-REPEATED_CHARS:])
