"""Example questions that a document answers, made from its headings and sentences without a model. Pure.

A badly worded question is worse than none: uncertain matches are left out. The patterns are for English; in other
languages only headings that are questions are used, and in German what has a value.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

MIN_CHARS, MAX_CHARS = 12, 90
MIN_ANSWER_CHARS = 60
FENCE = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.M | re.S)
HEADING = re.compile(r"#{1,6}\s+(.*)")
# In plain text, a title may be directly above its paragraph.
TITLE_LINE = re.compile(r"[^|]{1,60}(?<![.,;:!?|])")
NO_PARAGRAPH = re.compile(r"\s*(?:[-*+]\s|[|>]|\d+[.)]\s)")
NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|Q\d*[.:])\s+")
EMPHASIS = re.compile(r"\*+|\b_+|_+\b|\s#+$")
ASIDE = re.compile(r"(?<!\s)\s*[(\[][^()\[\]]*[)\]]")

ENGLISH = frozenset("the of and to in is for that with are on you as be this by or from it not can an".split())
MIN_SHARE_OF_ENGLISH = 0.15
# Words that only the context explains.
POINTING = re.compile(
    r"\b(?:it|its|this|that|these|those|they|them|their|he|she|his|her|we|us|our|here|above|below|you|me)\b", re.I
)
QUESTION = re.compile(r"[^.!?\n]{10,}[?\uff1f\u061f]")
ASKING = re.compile(
    r"(?!how to\b)(?:how|what|why|when|where|who|which|is|are|does|(?:can|do|may|must|should) I)\b", re.I
)
# A heading with an instruction; the article shows that its first word is a verb.
HOW_TO = re.compile(
    r"(?:how to (?=[a-z])|(?=(?:add|apply|ask|book|build|cancel|change|choose|clean|configure|connect|create|delete|"
    r"deploy|download|edit|enable|export|extend|find|get|import|install|log|make|manage|move|open|order|pay|prepare|print|"
    r"read|register|remove|rename|replace|report|request|reset|restart|restore|run|save|send|set|share|show|sign|start|"
    r"stop|submit|sync|test|update|upgrade|upload|use|write) (?:an?|the|your|another|several|in|out|up) ))([^?]+)\??",
    re.I,
)
YOUR = re.compile(r"\byour\b")
IN_ORDER_TO = re.compile(
    r"(?:To|If you want to) (?!(?:be|have|date|see|put|sum|name|conclude|summari[sz]e|illustrate|begin|the)\b)"
    r"([a-z]+ [^,.:;]{3,60}), (?!(?:we|they|he|she|it|the|this|an?|our|in|each|all)\b)[a-z]"
)
SUBJECT = r"(?P<article>The |An? )?(?P<subject>(?:[A-Z]|(?<= )[a-z])[\w-]*(?: [\w-]+){0,3}) "
DEFINED = (
    r"(?P<verb>is|(?<=s )are) (?:an? .{20,}|one of .{20,}"
    r"|the (?:\S+ ){1,4}(?:of|that|which|for|in|where|by|used|from|between) .{10,})"
)
PATTERNS = (
    (re.compile(SUBJECT + DEFINED), "What {verb} {subject}?"),
    (re.compile(SUBJECT + r"costs .*(?:[$€£]|dollar|euro|pound)"), "How much does {subject} cost?"),
    (
        re.compile(SUBJECT + r"was (?P<verb>founded|established|built|released|invented|launched|opened) .*\b\d{4}\b"),
        "When was {subject} {verb}?",
    ),
    (
        re.compile(SUBJECT + r"(?P<verb>require|include|contain|provide|support|cover|offer|measure)s .{15,}"),
        "What does {subject} {verb}?",
    ),
    (re.compile(SUBJECT + r"consists of .{15,}"), "What does {subject} consist of?"),
)
# Statements with a value, anywhere in a paragraph; in German too.
MEASURED = (
    "age|amount|budget|capacity|code|cost|deductible|deposit|discount|duration|fee|height|length|limit|number|pension|"
    "period|population|premium|price|rate|rent|salary|size|speed|tax|temperature|total|warranty|weight"
)
VALUE = re.compile(
    rf"(The|Your) ((?:[a-z-]+ ){{1,2}}(?:{MEASURED})|(?:{MEASURED}) (?:of|on|for|per) (?:the )?[a-z-]+) "
    r"(?:is|amounts to|comes to) (?:about |up to )?(?=\S*\d|[$€£]|one\b|two\b|three\b|four\b|five\b|six\b|ten\b)"
)
VALUE_IN_GERMAN = re.compile(r"(Der|Die|Das) ((?:[a-zäöüß-]+ ){0,2}[A-ZÄÖÜ][\w-]+) beträgt \S+ (\w*)")
TIMES_IN_GERMAN = frozenset("Minuten Stunden Tage Wochen Monate Jahre".split())
# Not a subject, or one that only its document knows.
NO_SUBJECT = re.compile(
    r"\b(?:the|an?|to|will|would|can|could|should|may|must|do|does|did|has|have|had|was|were|is|are|what|who|which|where|when|why|how|one|another|each|every|such|some|any|all|both|many|most|now|then|today|if|"
    r"while|in|on|at|for|with|as|my|your|i|you|and|but|or|so|also|not|following|first|second|third|last|next|other|"
    r"latter|former|same|only|result|aim|goal|purpose|idea|reason|problem|question|answer|point|rest|difference|example|"
    r"way|case|part|author|title|name|number|value|default|test|section|chapter|page|document|file|figure|table)\b",
    re.I,
)
# "What is" isn't asked of people, nor of words with a definition.
NO_THING = re.compile(
    r"\b(?:who|born|chair\w*|director|manager|president|author|founder|professor|researcher|engineer|member|leader|"
    r"officer|minister|singer|actor|actress|writer|player|politician|artist|scientist|king|queen|man|woman|person|"
    r"student|teacher|son|daughter|wife|husband|name|term|word|same|following|list|default|result)\b",
    re.I,
)
# A name used in the text: an article or the like, and up to four words.
USED = re.compile(
    r"\b(?:(the|an?)|of|your|for|about|on|any|each|no|all|(?<!\d)\d+)\s+(?=([\w-]{1,40}(?: [\w-]{1,40}){1,3}))", re.I
)
NO_TOPIC = frozenset(
    "see also, external links, further reading, table of contents, general information, more information, key points, "
    "next steps, early life, personal life, related work, future work".split(", ")
)


class Block(Struct, frozen=True):
    """A paragraph, empty for a list or a table, with the heading right above it if there is one."""

    text: str
    heading: str
    # Whether the heading is a line of its own in bold or plain text, which looks like one.
    is_line: bool


def example_questions(text: str, limit: int) -> list[str]:
    """Return up to ``limit`` questions that a text answers, most certain first."""
    blocks = list(_blocks(text))
    questions = {question.casefold(): question for question in _made(blocks) if _is_fit(question)}
    return list(questions.values())[:limit]


def _made(blocks: list[Block]) -> Iterator[str]:
    prose = "\n".join(block.text for block in blocks)
    questions = [one for one in blocks if QUESTION.fullmatch(one.heading)]
    if not _is_english(prose):
        yield from (one.heading for one in questions if not one.is_line)
        for match in VALUE_IN_GERMAN.finditer(prose):
            how = "lang" if match[3] in TIMES_IN_GERMAN else "hoch"
            yield f"Wie {how} ist {match[1].lower()} {match[2]}?"
        return
    small = frozenset(re.findall(r"\b[a-z][\w-]*", prose))
    yield from (one.heading for one in questions if ASKING.match(one.heading))
    yield from _how_to(blocks, small)
    yield from _patterned(blocks, small)
    yield from (f"What is {'my' if match[1] == 'Your' else 'the'} {match[2]}?" for match in VALUE.finditer(prose))
    yield from _topics(blocks, small, prose)


def _how_to(blocks: list[Block], small: frozenset[str]) -> Iterator[str]:
    """Yield how-to questions from headings and sentences."""
    for block in blocks:
        if match := HOW_TO.fullmatch(block.heading):
            first, *rest = match[1].split()
            task = " ".join([first.lower(), *(_written(word, small) for word in rest)])
            yield f"How do I {YOUR.sub('my', task)}?"
        if match := IN_ORDER_TO.match(block.text):
            yield "How do I {}?".format(YOUR.sub("my", match[1]))


def _patterned(blocks: list[Block], small: frozenset[str]) -> Iterator[str]:
    """Yield questions from the first sentences of paragraphs about something they name."""
    for block in blocks:
        sentence = ASIDE.sub("", re.split(r"(?<=[.!?])\s", block.text)[0])
        for pattern, question in PATTERNS:
            match = pattern.match(sentence)
            if match is None or NO_SUBJECT.search(match["subject"]) or NO_THING.search(sentence[: match.start() + 120]):
                continue
            article, subject = (match["article"] or "").lower(), match["subject"]
            if article != "the " or " " in subject or not subject.islower():
                subject = _written(subject, small)
                yield question.format(**match.groupdict() | {"subject": article + subject})


def _topics(blocks: list[Block], small: frozenset[str], prose: str) -> Iterator[str]:
    """Yield questions about headings that the text uses as names."""
    used: dict[str, str] = {}
    for match in USED.finditer(prose):
        words = match[2].lower().split()
        for length in range(2, len(words) + 1):
            used.setdefault(" ".join(words[:length]), match[1])
    for block in blocks:
        topic = " ".join(_written(word, small) for word in block.heading.split())
        named = 2 <= len(topic.split()) <= 4 and re.fullmatch(r"[\w -]+", topic) and topic.lower() not in NO_TOPIC
        if not named or block.is_line:
            continue
        if topic.lower() in used:
            yield f"What should I know about {'the ' if used[topic.lower()] else ''}{topic}?"


def _written(phrase: str, small: frozenset[str]) -> str:
    """Return a phrase in lower case at its start if the text writes its first word so."""
    first = phrase.split()[0].lower()
    return first + phrase[len(first) :] if first in small else phrase


def _is_fit(question: str) -> bool:
    return " ?" not in question and MIN_CHARS <= len(question) <= MAX_CHARS and not POINTING.search(question)


def _is_english(prose: str) -> bool:
    words = re.findall(r"\w+", prose.lower())[:500]
    return bool(words) and sum(word in ENGLISH for word in words) >= MIN_SHARE_OF_ENGLISH * len(words)


def _blocks(text: str) -> Iterator[Block]:
    """Yield headings with content, and paragraphs."""
    heading, is_line = "", False
    for piece in re.split(r"\n\s*\n", FENCE.sub("", text)):
        lines = piece.strip().split("\n")
        if match := HEADING.match(lines[0]):
            heading, is_line = _plain(match[1]), False
            lines = lines[1:]
        elif len(lines) > 1 and TITLE_LINE.fullmatch(lines[0]) and lines[1][:1].isupper():
            lines = lines[1:]
        paragraph = _plain(" ".join(lines))
        if QUESTION.fullmatch(paragraph):
            heading, is_line = paragraph, True
        elif len(paragraph) >= MIN_ANSWER_CHARS:
            yield Block("" if NO_PARAGRAPH.match(lines[0]) else paragraph, heading, is_line)
            heading = ""


def _plain(text: str) -> str:
    return NUMBER.sub("", " ".join(EMPHASIS.sub("", text).split()))
