"""How well an embedding model knows a text, judged by how its tokenizer splits it. Pure.

A model that learned English sees Chinese or Russian as single letters: its vectors then say next to nothing, and its
cosines least of all. A multilingual model knows everything (``FAMILIAR``).
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct


class Familiarity(Struct, frozen=True):
    """Shares (0 to 1) of a text's letters: in pieces of several letters, and in words that the model knows whole.

    Measured on questions with MiniLM, on average: English .99 and .9, German .95 and .24, Chinese .02 and .01.
    """

    pieces: float
    words: float


FAMILIAR = Familiarity(1.0, 1.0)


def familiarity(text: str, pieces: Sequence[tuple[int, int, int | None]]) -> Familiarity:
    """Return how well a model knows a text split into ``pieces``: begin, end, and the number of their word.

    Unknown tokens must be left out of the pieces. A text without letters is well known.
    """
    letters_before = [0, *accumulate(map(str.isalpha, text))]
    letters = letters_before[-1]
    if not letters:
        return FAMILIAR
    in_word = Counter([word for _, _, word in pieces])
    several = whole = 0
    for begin, end, word in pieces:
        letters_in_piece = letters_before[end] - letters_before[begin]
        if letters_in_piece > 1:
            several += letters_in_piece
            whole += letters_in_piece if in_word[word] == 1 else 0
    return Familiarity(min(1.0, several / letters), min(1.0, whole / letters))
