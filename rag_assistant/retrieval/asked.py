"""The kind of answer a question asks for, such as a date, a figure or a person, and whether a text has one. Pure.

A value in the question itself is no answer to it. English, German, and digits in any language.
"""

import re

from rag_assistant.retrieval.tokenize import search_words

MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|januar|februar|märz|mai|juni|juli|okt|dez)[a-zäéû]*\b"
TIME_WORD = r"(?:second|minute|hour|day|week|month|quarter|year|sekunde|stunde|tag|woche|monat|jahr)[a-z]*\b"
DATE = re.compile(
    rf"\d{{4}}-\d\d|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|\d\.? {MONTH}|\b{MONTH} \d|\b(?:1[0-9]|20)\d\d\b|\d{{1,2}}:\d\d"
    rf"|\d+(?:st|nd|rd|th)? {TIME_WORD}|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b\w+day of\b",
    re.IGNORECASE,
)
FIGURE = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|half|hundred|thousand|"
    r"million|billion|none|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|hundert|tausend)\b",
    re.IGNORECASE,
)
# A name is two capitalised words, or one that doesn't begin its sentence.
NAME = re.compile(r"(?:(?<=[^.!?:] )|(?<=[|:] ))[A-ZÄÖÜ][\w'’-]+|[A-ZÄÖÜ][\w.'’-]* [A-ZÄÖÜ][\w'’-]+")  # noqa: RUF001
ALLOWED = re.compile(
    r"\b(?:not|no|never|only|may|must|can|cannot|allowed|permitted|forbidden|prohibited|required|possible|refused|"
    r"yes|nicht|kein\w*|nur|darf|dürfen|muss|müssen|kann|können|erlaubt|verboten|ja|nein)\b",
    re.IGNORECASE,
)
WHEN = re.compile(
    r"\W*(?:(?:by|until|till|since|from|on|in) )?(?:when\b|(?:what|which) (?:date|day|year|month|time)\b)"
    r"|\W*(?:(?:bis|ab|seit) )?wann\b",
    re.IGNORECASE,
)
HOW_MUCH = re.compile(
    r"\W*(?:\w+ ){0,2}(?:wie ?(?:viele?|lange|oft|hoch|groß|alt|weit|schwer)"
    r"|how (?:much|many|long|often|high|large|big|old|far|heavy|fast|tall|deep|wide|hot))\b"
    r"|.*\bwhat (?:is|was|are|were) the (?:\w+ ){0,2}"
    r"(?:total|sum|amount|price|cost|number|rate|percentage|population|temperature)\b",
    re.IGNORECASE,
)
WHO = re.compile(r"\W*(?:(?:by|to|for|from|with|at) )?(?:who|whom|whose|wer|wem|wen|wessen)\b", re.IGNORECASE)
WHETHER = re.compile(r"\W*(?:may|can|must|should|is|are|do|does|am|darf|kann|muss|ist|sind)\b", re.IGNORECASE)
KINDS = ((WHEN, DATE), (HOW_MUCH, FIGURE), (WHO, NAME), (WHETHER, ALLOWED))


def asked_kind(question: str) -> re.Pattern[str] | None:
    """Return the pattern for the kind of answer a question asks for, ``None`` if there is none."""
    return next((value for asks, value in KINDS if asks.match(question)), None)


def has_value(kind: re.Pattern[str], text: str, question: str) -> bool:
    """Return whether a text has a value of a kind that the question doesn't mention."""
    words = set(search_words(question))
    return any(not words.issuperset(search_words(match[0])) for match in kind.finditer(text))
