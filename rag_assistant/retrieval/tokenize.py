"""Text as words. Scripts that are written without blanks become pairs of characters."""

import re
import unicodedata
from functools import cache, lru_cache

# Chinese, Japanese and Thai, Lao, Khmer, Burmese: no blanks between words, so pairs of characters stand for words.
UNSPACED = "㐀-䶿一-鿿豈-﫿぀-ヿㇰ-ㇿ\U00020000-\U0003134f฀-๿຀-໿က-႟ក-៿"
# Vowels and tones that are written as marks above and below letters; those of no script stand elsewhere.
_BLOCKS_WITH_MARKS = (*range(0x300, 0x1E00), *range(0xA600, 0xAC00), *range(0x11000, 0x12000))
_LETTERS = f"[^\\W_{UNSPACED}]"
# The same as ``runs()`` for most texts, in a tenth and in a third of the time.
ASCII_RUNS = re.compile("[^\\W_]+(?:'[^\\W_]+)?", re.ASCII)
LATIN_RUNS = re.compile("[^\\W_]+(?:['\u2019][^\\W_]+)?")
# Latin letters and what is set between them are neither marks nor letters without blanks.
NOT_LATIN = re.compile("[^\u0000-\u02ff\u1e00-\u2fff]")
# What a writer may leave out: the short vowels of Arabic and Hebrew, a stretched line, where a line may break.
OPTIONAL = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u0640\u064b-\u0652\u0670\u00ad\u200d\u2060]")
# Keeps two letters of an Indian script apart as they are written, within one word.
INDIAN_NON_JOINER = re.compile("(?<=[\u0900-\u0dff])\u200c")
MAX_QUERY_WORDS = 64
STEM_CHARS = 5
MIN_PLURAL = 3


def marks() -> str:
    """Return the vowels and tones that are written as marks above and below letters."""
    return "".join(char for char in map(chr, _BLOCKS_WITH_MARKS) if unicodedata.category(char).startswith("M"))


@cache
def runs() -> re.Pattern[str]:
    """Return what finds words in all scripts. It takes 20 ms to compile, and is not needed for each text."""
    return re.compile(f"[{UNSPACED}]+|{_LETTERS}+(?:[{marks()}]++{_LETTERS}*)*(?:['\u2019][^\\W_]+)?")


@cache
def unspaced_char() -> re.Pattern[str]:
    """Return what finds a letter of a script without blanks; it takes 5 ms to compile."""
    return re.compile(f"[{UNSPACED}]")


def search_words(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case."""
    if text.isascii():
        return ASCII_RUNS.findall(text.lower())
    # Each letter is written in one way only, and what may be left out is left out.
    text = unicodedata.normalize("NFKC", text).lower()
    text = INDIAN_NON_JOINER.sub("", OPTIONAL.sub("", text))
    if not NOT_LATIN.search(text):
        return LATIN_RUNS.findall(text)
    words: list[str] = []
    for run in runs().findall(text):
        if unspaced_char().match(run) and len(run) > 1:
            words += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            words.append(run)
    return words


def words_of(text: str) -> str:
    """Return the words of a text as one text: that is what keyword indexes keep of it."""
    return " ".join(search_words(text))


def query_words(question: str) -> list[str]:
    """Return the different words of a question that are worth a search: common ones only if there are no others."""
    return (content_words(question) or list(dict.fromkeys(search_words(question))))[:MAX_QUERY_WORDS]


def content_words(question: str) -> list[str]:
    """Return the different words of a question without the common ones."""
    return [word for word in dict.fromkeys(search_words(question)) if word not in STOP_WORDS]


@lru_cache(maxsize=10_000)
def stem(word: str) -> str:
    """Return how a word begins: words that begin alike are taken for forms of one word, in any language."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    return word[:STEM_CHARS] if len(word) > STEM_CHARS else word.removesuffix("s") if len(word) > MIN_PLURAL else word


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(map(stem, content_words(text)))


# Words that stand in nearly every English question and tell nothing about what it asks for.
STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be been but by can could did do does for from had has have how i if in
    into is it its just me more my no not of on or our please should show so some such tell than that the their them
    then there these they this those to up us was we were what when where which who whom whose why will with would
    you your
    """.split()
)
