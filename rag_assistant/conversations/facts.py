"""Find in a sentence what a summary may lose: numbers, dates, names, file names, and instructions.

By patterns in six languages, of which facts.toml has the words; without a model. bench/history.md has the accuracy.
Pure.
"""

import re
import tomllib
from collections.abc import Iterator
from pkgutil import get_data
from typing import Literal

from rag_assistant.retrieval.claims import NAME
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.tokenize import OPTIONAL, STOP_WORDS, search_words

FactKind = Literal["instruction", "number", "date", "name", "file"]

FILE = re.compile(
    r"(?<![\w-])(?:(?:[A-Za-z]:|~|\.{1,2})?[\\/])?(?:[\w.-]{1,100}[\\/]){0,20}[\w-][\w.-]{0,100}"
    r"\.(?:[a-z][a-z0-9]{1,4}|[A-Z][A-Z0-9]{1,4})(?![A-Za-z0-9])|(?<!\S)\.[a-z]{2,}\b"
)
# A single digit only counts with a unit: "3 km", but not "Question 3.".
NUMBER = re.compile(
    r"(?:[€$£¥+]\s?)?(?:\d+(?:[\s.,:/'\u2019\u00d7\u2013-]{1,3}\d+)+|\d{2,}|(?<=[€$£¥])\d|\d(?=\s?[%€$£¥°]|\s?[^\W\d_]))"
    r"(?:\s?[%€$£¥°]|\s?[^\W\d_]{1,12})?"
)
_DATA = tomllib.loads((get_data(str(__package__), "facts.toml") or b"").decode())
MONTHS, DAYS, SURNAMES = "|".join(_DATA["months"]), "|".join(_DATA["days"]), _DATA["surnames"]
DATE = re.compile(
    rf"(?:\b\d{{1,2}}(?:\.|st|nd|rd|th|er)?\s(?:de\s)?)?\b(?:{MONTHS}|{DAYS})\b(?:\s(?:de\s)?\d{{4}})?|"
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|(?<!\d)\d+\s?[年月日号]|"
    "(?:星期|周|礼拜)[一二三四五六日天末]|الاثنين|الإثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد|"
    "يناير|فبراير|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر",
    re.IGNORECASE,
)
CHINESE_NAME = re.compile(
    rf"(?:(?<=[是叫找问给了和与跟由请让向对为等，。：、])|^|(?<=联系))[{SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=[，。！？、；]|$|负责|会|将|说|签|的|和|与|在)|"  # noqa: RUF001
    rf"[{SURNAMES}][\u4e00-\u9fff]{{0,2}}(?:先生|女士|小姐|经理|老师|医生|教授|总监|主任|律师|博士)"
)
ARABIC_NAME = re.compile(
    r"(?:السيد|السيدة|الدكتور|الدكتورة|المهندس|المهندسة|الأستاذ|الأستاذة|الآنسة|اسمه|اسمها|يدعى|تدعى)\s\S+|"
    r"(?<!\w)(?:محمد|أحمد|محمود|علي|حسن|حسين|خالد|عمر|يوسف|إبراهيم|مصطفى|عبد\s?\w+|سعيد|سامي|طارق|كريم|ياسر|فاطمة|"
    r"مريم|ليلى|سارة|نورة|عائشة|زينب|هدى|منى|سلمى)(?:\s\w+)?"
)
# German capitalises every noun: only two in a row, a title, or one that ends its clause count.
GERMAN_NAME = re.compile(
    r"(?:\b(?:Herrn?|Frau|Dr\.|Prof\.|Firma)\s(?:(?:Dr|Prof)\.\s)?[A-ZÄÖÜ][\w-]+)|\b[A-ZÄÖÜ][\w-]+\s[A-ZÄÖÜ][\w-]+|"
    r"(?:(?<=\bist )|(?<=heißt )|(?<=[Ff]rag )|(?<=ragen )|(?<=weifel )|(?<=\ban )|(?<=\b(?:mit|von|"
    r"bei) ))[A-ZÄÖÜ][\w-]+(?=[.,!?]|$)"
)
TITLED_NAME = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|M|Mme|Mlle|Sr|Sra|Dra|Prof)\.?\s[A-ZÀ-Þ][\w'\u2019-]+")
# The first word of a sentence, if it is a verb.
FIRST_NAME = re.compile(
    r"([A-ZÀ-Þ][\w'\u2019-]+)\s(?:is|was|has|had|will|can|said|est|a|es|ha|dit|[a-zß-ÿ]{2,}[aest])\b"
)

CLAUSE = r"(?:^|[,;:!(–]\s*|\b(?:please|so|and|but|also|then|just|or|to|you)\s+)"  # noqa: RUF001
INSTRUCTION = re.compile(
    "|".join(one.replace("CLAUSE", CLAUSE) for some in _DATA["instructions"].values() for one in some), re.IGNORECASE
)
REQUEST = re.compile(
    r"\b(?:(?:can|could|would|will) you|please|bitte|puedes?)\b|\b(?:peux|pourr\w+)[- ](?:tu|vous)\b|请", re.IGNORECASE
)


PATTERNS: tuple[tuple[FactKind, re.Pattern[str]], ...] = (("file", FILE), ("date", DATE), ("number", NUMBER))


def is_instruction(sentence: str) -> bool:
    """Return whether a person forbids something or sets a rule; a question counts if it is a request."""
    if sentence.rstrip().endswith(("?", "？", "؟")) and not REQUEST.search(sentence):  # noqa: RUF001
        return False
    return INSTRUCTION.search(OPTIONAL.sub("", sentence)) is not None


def facts_in(sentence: str) -> Iterator[tuple[FactKind, str]]:
    """Yield the facts in a sentence that are recognisable by their form, each with its kind."""
    for kind, pattern in PATTERNS:
        yield from ((kind, match[0].strip()) for match in pattern.finditer(sentence))
        sentence = pattern.sub("\u2026", sentence)
    yield from (("name", name) for name in _names(sentence))


def _names(sentence: str) -> Iterator[str]:
    if not sentence.isascii():
        for pattern in (CHINESE_NAME, ARABIC_NAME):
            yield from (match[0] for match in pattern.finditer(sentence))
    words = search_words(sentence)
    if language_of(words, min_common=1) == "german":
        yield from (match[0] for match in GERMAN_NAME.finditer(sentence))
    else:
        yield from NAME.findall(sentence)
        yield from (match[0] for match in TITLED_NAME.finditer(sentence))
    first = FIRST_NAME.match(sentence)
    if first and words and words[0] not in STOP_WORDS:
        yield first[1]
