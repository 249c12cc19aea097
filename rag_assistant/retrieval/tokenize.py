"""Text as words. Scripts that are written without blanks become pairs of characters."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache

from rag_assistant.retrieval.languages import WORDS, without_asking

# Chinese, Japanese, Thai, Lao, Khmer, Burmese: no blanks between words, so pairs of characters are used as words.
UNSPACED = "㐀-䶿一-鿿豈-﫿぀-ヿㇰ-ㇿ\U00020000-\U0003134f฀-๿຀-໿က-႟ក-៿"
# Vowels and tones written as combining marks; those of all scripts are in other ranges.
_BLOCKS_WITH_MARKS = (*range(0x300, 0x1E00), *range(0xA600, 0xAC00), *range(0x11000, 0x12000))
_LETTERS = f"[^\\W_{UNSPACED}]"
# Equivalent to ``runs()`` for most texts, in a tenth and in a third of the time.
ASCII_RUNS = re.compile("[^\\W_]+(?:'[^\\W_]+)?", re.ASCII)
LATIN_RUNS = re.compile("[^\\W_]+(?:['\u2019][^\\W_]+)?")
# Latin letters and punctuation are neither marks nor unspaced letters.
NOT_LATIN = re.compile("[^\u0000-\u02ff\u1e00-\u2fff]")
# Optional characters: the short vowels of Arabic and Hebrew, elongation, soft line breaks.
OPTIONAL = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u0640\u064b-\u0652\u0670\u00ad\u200d\u2060\ufeff]")
# Where a line may end; in scripts with blanks it is within a word.
ZERO_WIDTH_SPACE = re.compile(f"(?<={_LETTERS})\u200b(?={_LETTERS})")
# Separates two letters of an Indian script visually, within one word.
INDIAN_NON_JOINER = re.compile("(?<=[\u0900-\u0dff])\u200c")
MAX_QUERY_WORDS = 64
MAX_REMEMBERED_CHARS = 4_000
STEM_CHARS = 5
MIN_PLURAL = 3
# German letters that are also written with two, and short plurals with such a letter: Haus, H\u00e4user, Haeuser.
UMLAUTS = {"\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue", "\u00df": "ss"}
UMLAUT, DIGRAPH = re.compile("[\u00e4\u00f6\u00fc\u00df]"), re.compile("(?<![aeq])[aou]e")
UMLAUT_PLURAL = re.compile(r"(?<=^\w{2})(e[nr]?|ern)$|(?<=^\w{3})(e[nr]?|ern)$|(?<=^\w{4})er?$")
# Irregular plurals, each with the other forms of its word.
FORMS = {form: forms for forms in map(str.split, WORDS["forms_of_one_word"]) for form in forms}
# The words of which identifiers consist: max, retry and count of maxRetryCount.
IDENTIFIER = re.compile(r"(?a:\b[A-Za-z]{0,40}[a-z][A-Z][A-Za-z\d]{0,40}\b)")
WORD_IN_IDENTIFIER = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def marks() -> str:
    """Return the combining marks for vowels and tones."""
    return "".join(char for char in map(chr, _BLOCKS_WITH_MARKS) if unicodedata.category(char).startswith("M"))


@cache
def runs() -> re.Pattern[str]:
    """Return the pattern for words in all scripts. It takes 20 ms to compile, and isn't needed for every text."""
    return re.compile(f"[{UNSPACED}]+|{_LETTERS}+(?:[{marks()}]++{_LETTERS}*)*(?:['\u2019][^\\W_]+)?")


@cache
def unspaced_char() -> re.Pattern[str]:
    """Return the pattern for a letter of a script without blanks; it takes 5 ms to compile."""
    return re.compile(f"[{UNSPACED}]")


def search_words(text: str) -> Sequence[str]:
    """Return the words of a text in order, in lower case."""
    # A question's passages are compared with it in several ways.
    return _remembered_words(text) if len(text) <= MAX_REMEMBERED_CHARS else _words(text)


def _words(text: str) -> list[str]:
    if text.isascii():
        return ASCII_RUNS.findall(text.lower())
    # Spellings are normalised, and optional characters removed.
    text = unicodedata.normalize("NFKC", text).lower()
    text = INDIAN_NON_JOINER.sub("", ZERO_WIDTH_SPACE.sub("", OPTIONAL.sub("", text)))
    if not NOT_LATIN.search(text):
        return LATIN_RUNS.findall(text)
    words: list[str] = []
    for run in runs().findall(text):
        if unspaced_char().match(run) and len(run) > 1:
            words += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            words.append(run)
    return words


_remembered_words = lru_cache(maxsize=256)(_words)


def query_words(question: str) -> list[str]:
    """Return the distinct words of a question to search for: stop words only if there are no others."""
    words = dict.fromkeys(search_words(question))
    telling = [word for word in dict.fromkeys(without_asking(search_words(question))) if word not in STOP_WORDS]
    return (telling or content_words(question) or list(words))[:MAX_QUERY_WORDS]


def content_words(question: str) -> list[str]:
    """Return the distinct words of a question without stop words."""
    return [word for word in dict.fromkeys(search_words(question)) if word not in STOP_WORDS]


@lru_cache(maxsize=10_000)
def stem(word: str) -> str:
    """Return the beginning of a word: words with the same one are treated as forms of one word, in any language."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    if any(map(str.isdigit, word)):
        return word  # Ids and figures have no endings.
    if UMLAUT.search(word):
        plain = "".join(UMLAUTS.get(letter, letter)[: 2 if letter == "\u00df" else 1] for letter in word)
        word = UMLAUT_PLURAL.sub("", plain)
    return word[:STEM_CHARS] if len(word) > STEM_CHARS else word.removesuffix("s") if len(word) > MIN_PLURAL else word


def stems_of_forms(word: str) -> list[str]:
    """Return the stem of a word, and those of its irregular forms and other spellings."""
    forms = [*FORMS.get(word, ()), "".join(UMLAUTS.get(letter, letter) for letter in word)]
    umlauts = {two: one for one, two in UMLAUTS.items()}
    forms.append(DIGRAPH.sub(lambda match: umlauts[match[0]], word))
    return list(dict.fromkeys(map(stem, [word, *forms])))


def words_with_parts(text: str) -> list[str]:
    """Return the words of a text, and those of which its identifiers consist."""
    parts = (part for one in IDENTIFIER.findall(text) for part in WORD_IN_IDENTIFIER.findall(one))
    return [*search_words(text), *(part.lower() for part in parts)]


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(map(stem, content_words(text)))


# Words in nearly every English question, which say nothing about its subject.
STOP_WORDS = frozenset(WORDS["stop_words"].split())
