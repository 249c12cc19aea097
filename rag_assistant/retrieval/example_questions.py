"""Example questions that a document answers: headings that ask or instruct, and values in sentences. Pure.

A badly worded question is worse than none. Instructions and values are recognised in English, values in German too;
headings that are questions in any language.
"""

import re
import tomllib
from collections.abc import Iterator
from pkgutil import get_data

from msgspec import Struct

from rag_assistant.retrieval.languages import language_of

MIN_CHARS, MAX_CHARS = 12, 90
MIN_ANSWER_CHARS = 60
FENCE = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.M | re.S)
HEADING = re.compile(r"#{1,6}\s+(.*)")
# In plain text, a title may be directly above its paragraph.
TITLE_LINE = re.compile(r"[^|]{1,60}(?<![.,;:!?|])")
NO_PARAGRAPH = re.compile(r"\s*(?:[-*+]\s|[|>]|\d+[.)]\s)")
NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|Q\d*[.:])\s+")
EMPHASIS = re.compile(r"\*+|\b_+|_+\b|\s#+$")

_DATA = tomllib.loads((get_data(str(__package__), "example_questions.toml") or b"").decode())
POINTING, ASKING, HOW_TO = (re.compile(_DATA[name], re.IGNORECASE) for name in ("pointing", "asking", "how_to"))
QUESTION = re.compile(r"[^.!?\n]{10,}[?\uff1f\u061f]")
YOUR = re.compile(r"\byour\b")
VALUE = re.compile(_DATA["value"].replace("MEASURED", "|".join(_DATA["measured"])))
VALUE_IN_GERMAN = re.compile(_DATA["value_in_german"])


class Block(Struct, frozen=True):
    """A paragraph, empty for a list or a table, with the heading right above it if there is one."""

    text: str
    heading: str
    # Whether the heading is a line of its own in bold or plain text, which looks like one.
    is_line: bool


def example_questions(text: str, limit: int) -> list[str]:
    """Return up to ``limit`` questions that a text answers, most certain first."""
    blocks = list(_blocks(text))
    questions = {
        one.casefold(): one
        for one in _made(blocks)
        if " ?" not in one and MIN_CHARS <= len(one) <= MAX_CHARS and not POINTING.search(one)
    }
    return list(questions.values())[:limit]


def _made(blocks: list[Block]) -> Iterator[str]:
    prose = "\n".join(block.text for block in blocks)
    questions = [one for one in blocks if QUESTION.fullmatch(one.heading)]
    if language_of(re.findall(r"\w+", prose.lower())) != "english":
        yield from (one.heading for one in questions if not one.is_line)
        for match in VALUE_IN_GERMAN.finditer(prose):
            how = "lang" if match[3] in _DATA["times_in_german"] else "hoch"
            yield f"Wie {how} ist {match[1].lower()} {match[2]}?"
        return
    yield from (one.heading for one in questions if ASKING.match(one.heading))
    small = frozenset(re.findall(r"\b[a-z][\w-]*", prose))
    for task in (how_to[1].split() for block in blocks if (how_to := HOW_TO.fullmatch(block.heading))):
        # Words that the text writes in lower case, as in a title.
        words = [word.lower() if n == 0 or word.lower() in small else word for n, word in enumerate(task)]
        yield f"How do I {YOUR.sub('my', ' '.join(words))}?"
    yield from (f"What is {'my' if match[1] == 'Your' else 'the'} {match[2]}?" for match in VALUE.finditer(prose))


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
