"""Text as terms of keyword search: its words without their endings, by the language of each passage.

A passage is indexed by the stems of its language. A question is searched for by the stems of its own language, if the
library has passages in it, else by those of all languages that it has.
"""

import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, pairwise

import Stemmer
from msgspec.structs import replace

from rag_assistant.records import Chunk
from rag_assistant.retrieval.chunking import indexed_text
from rag_assistant.retrieval.languages import (
    MIN_COMMON_WORDS,
    SCRIPT_OF_LANGUAGE,
    USUAL_LANGUAGE,
    language_of,
    script_of,
)
from rag_assistant.retrieval.tokenize import query_words, search_words, words_with_parts

# A passage is only in another language than its document if it has this many of that language's common words.
MIN_COMMON_IN_PASSAGE = 6
MIN_COMMON_IN_DOCUMENT = 3
# Their stemmers are untested: words are indexed beside their stems, which are marked by a letter in front.
KEEPING_WORDS = frozenset({"arabic", "devanagari", "tamil"})
STEM_MARK = "s"

# A few letters, then digits, three of them in a row.
PART_NUMBER = re.compile(
    r"(?a:\b(?=[a-z]{1,4}(?:[-/][a-z]{1,3})?[-/]?\d)(?=[\w/-]{0,40}\d{3})[a-z\d]+(?:[-/][a-z\d]+)*\b)"
)
HAN = re.compile("[㐀-䶿一-鿿豈-﫿\U00020000-\U0003134f]{2}")
# Chinese characters in stop words: of, is, the past, what, which, who.
HAN_STOP_CHARS = re.compile("[的了是什么麼哪谁誰]")
# Letters of Arabic and Devanagari with spelling variants.
SPELLINGS = str.maketrans(
    {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك", "\u0901": "\u0902", "\u093c": None}
)
SPELLED_OTHERWISE = re.compile("[\u0600-\u06ff\u0900-\u097f]")
# An n before another consonant is also written as a dot above: हिन्दी, हिंदी.
DEAD_N, ANUSVARA = "\u0928\u094d", "\u0902"


def index_terms(document_name: str, pieces: Sequence[Chunk]) -> tuple[list[Chunk], list[str]]:
    """Return the chunks of a document with their languages, and the terms of each, separated by blanks."""
    texts = [indexed_text(document_name, piece.section, piece.text) for piece in pieces]
    words = [words_with_parts(text) for text in texts]
    of_document = language_of(set(chain.from_iterable(words)), min_common=MIN_COMMON_IN_DOCUMENT)
    of_pieces = [language_of(some, min_common=MIN_COMMON_IN_PASSAGE) or of_document for some in words]
    terms = [" ".join(stems(_with_characters(some), language)) for some, language in zip(words, of_pieces, strict=True)]
    return [replace(piece, language=language) for piece, language in zip(pieces, of_pieces, strict=True)], terms


def query_terms(question: str, languages: Collection[str]) -> list[str]:
    """Return the distinct terms of a question; ``languages`` are those of the library's passages."""
    words = query_words(question)
    telling = [word for word in _with_characters(words) if not HAN_STOP_CHARS.search(word)]
    own = language_of(search_words(question), languages)
    # Text in an unknown language was indexed as the default one of its script.
    searched = [own, *({""} & set(languages))] if own else languages or [""]
    terms = [term for language in searched for term in stems(telling or words, language)]
    return list(dict.fromkeys([*terms, *_part_number_forms(question)]))


def turn_terms(text: str) -> str:
    """Return a text's words for the index of turns, with stems where it isn't in English, which the index stems."""
    words = search_words(text)
    language = _foreign(words, 1)
    more = set(stems(words, language)).difference(words) if language else ()
    return " ".join([*words, *sorted(more)])


def turn_query(question: str) -> list[str]:
    """Return the words to look for in turns: those of a question, by their stems where it is not in English."""
    words = query_words(question)
    language = _foreign(search_words(question), MIN_COMMON_WORDS)
    return list(dict.fromkeys(stems(words, language))) if language else words


def _foreign(words: Sequence[str], min_common: int) -> str:
    language = language_of(words, min_common=min_common)
    return "" if language == "english" else language


def _part_number_forms(question: str) -> Iterator[str]:
    """Yield spelling variants of part numbers: AB-1234/X as ab1234x, and AB1234X as ab, 1234, x."""
    for number in PART_NUMBER.findall(question.lower()):
        yield re.sub("[-/]", "", number)
        yield from re.findall(r"[a-z]+|\d+", number)


def forms_of(words: Iterable[str], languages: Collection[str]) -> dict[str, set[str]]:
    """Return the possible terms of each word."""
    return {word: {term for language in languages or [""] for term in stems([word], language)} for word in words}


def stems(words: Iterable[str], language: str) -> list[str]:
    """Return the terms of words in a language. One in another script is stemmed by that script's default language."""
    own_script = SCRIPT_OF_LANGUAGE.get(language)
    terms: list[str] = []
    for script, some in _by_script(list(words)):
        stemmed = _stemmed(some, language if script == own_script else USUAL_LANGUAGE.get(script, ""))
        if script in KEEPING_WORDS:
            stemmed = [form for word, stem in zip(some, stemmed, strict=True) for form in (word, STEM_MARK + stem)]
        terms += stemmed if script == "latin" else map(_spelled, stemmed)
    return terms


def _by_script(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    if "".join(words).isascii():
        yield "latin", words
    else:
        yield from ((script, list(some)) for script, some in groupby(words, script_of))


def _spelled(term: str) -> str:
    return term.replace(DEAD_N, ANUSVARA).translate(SPELLINGS) if SPELLED_OTHERWISE.search(term) else term


def _with_characters(words: Sequence[str]) -> list[str]:
    """Return words with the single characters of Chinese pairs between them."""
    if not any(map(HAN.fullmatch, words)):
        return list(words)
    with_characters: list[str] = []
    for word, following in pairwise([*words, ""]):
        with_characters.append(word)
        if not word.isascii() and HAN.fullmatch(word):
            # The second character begins the next pair, unless the run ends here.
            with_characters += word[0] if following[:1] == word[1] else word
    return with_characters


_one_at_a_time = threading.Lock()


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language)


def _stemmed(words: list[str], language: str) -> list[str]:
    """Return words without their endings, by Snowball's stemmer for a language, if it has one."""
    if language not in Stemmer.algorithms():
        return words
    with _one_at_a_time:
        return list(_stemmer(language).stemWords(words))
