"""Texts for benchmarks: words with natural frequencies, or from the user guide."""

import random
from functools import cache
from pathlib import Path

from rag_assistant.retrieval.tokenize import content_words

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide"
# The positions of common words in a vocabulary of 5,000: in 4 to 7 % of the chunks, like those of cranfield's questions
# (cacm and mtrag: 1 %).
FIRST_COMMON, COMMON = 200, 200


@cache
def guide_words() -> list[str]:
    """Return the words of the user guide, which an embedding model knows."""
    return " ".join(path.read_text() for path in sorted(GUIDE.glob("*.md"))).split()


@cache
def common_words() -> list[str]:
    """Return words that texts and questions of the benchmarks share, such as ``say`` and ``weather``."""
    words = sorted(set(content_words(" ".join(guide_words()).replace("_", " "))))
    return ["say", "weather", *(word for word in words if word.isalpha() and len(word) > 4)][:COMMON]


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    words = [f"word{n}" for n in range(5000)]
    words[FIRST_COMMON : FIRST_COMMON + COMMON] = common_words()
    return words, [1 / (n + 2) for n in range(len(words))]


def text_of(words: int, seed: int) -> str:
    """Return a text of words with natural frequencies."""
    vocabulary, weights = _vocabulary()
    return " ".join(random.Random(seed).choices(vocabulary, weights, k=words))


def guide_text(number: int) -> str:
    """Return thirty consecutive words of the user guide."""
    words = guide_words()
    start = 30 * number % (len(words) - 30)
    return " ".join(words[start : start + 30])
