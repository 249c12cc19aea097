"""Text as words for keyword search. Scripts that are written without blanks become pairs of characters."""

from __future__ import annotations

import re
import unicodedata

# Chinese, Japanese and Thai, Lao, Khmer, Burmese: no blanks between words, so pairs of characters stand for words.
UNSPACED = "㐀-䶿一-鿿豈-﫿぀-ヿㇰ-ㇿ\U00020000-\U0003134f฀-๿຀-໿က-႟ក-៿"
RUNS = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+(?:['\u2019][^\\W_]+)?")
UNSPACED_RUN = re.compile(f"[{UNSPACED}]")
MAX_QUERY_WORDS = 64
STEM_CHARS = 5
MIN_PLURAL = 3


def search_words(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case."""
    words: list[str] = []
    for run in RUNS.findall(unicodedata.normalize("NFKC", text).lower()):
        if UNSPACED_RUN.match(run) and len(run) > 1:
            words += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            words.append(run)
    return words


def query_words(question: str) -> list[str]:
    """Return the different words of a question that are worth a search: common ones only if there are no others."""
    return (content_words(question) or list(dict.fromkeys(search_words(question))))[:MAX_QUERY_WORDS]


def content_words(question: str) -> list[str]:
    """Return the different words of a question without the common ones."""
    return [word for word in dict.fromkeys(search_words(question)) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """Return how a word begins: words that begin alike are taken for forms of one word, in any language."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    return word[:STEM_CHARS] if len(word) > STEM_CHARS else word.removesuffix("s") if len(word) > MIN_PLURAL else word


# Words that stand in nearly every English question and tell nothing about what it asks for.
STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be been but by can could did do does for from had has have how i if in
    into is it its just me more my no not of on or our please should show so some such tell than that the their them
    then there these they this those to up us was we were what when where which who whom whose why will with would
    you your
    """.split()
)
