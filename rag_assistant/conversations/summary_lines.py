"""The lines of a summary, each with the numbers of its turns. Pure.

A model's text is matched with the turns by words; rare words count more, as in BM25. A sentence with little of any turn
names all of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import log1p

from msgspec import Struct

from rag_assistant.history.words import MAX_PIECES, numbers_in_words
from rag_assistant.records import runs_of
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import content_stems

LED = re.compile(r"^turns? (\d[\d, ]*(?:(?:to|and) [\d, ]+)*)(?:, (?:user|assistant))?: *", re.IGNORECASE)
RUN = re.compile(r"(\d+)(?: to (\d+))?")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
MAX_RUN = 10_000
# A turn was used if it has this share of a sentence's content, beyond the turns that have more of it.
MIN_SHARE = 0.25
MAX_ROUNDS = 3


class SummaryLine(Struct, frozen=True):
    """A line of a summary and its turns, none if it was written by hand; ``lead`` is the text of their numbers."""

    turns: tuple[int, ...]
    text: str
    lead: str = ""

    @property
    def said_by_person(self) -> bool:
        """Whether it is a person's statement, word for word."""
        return self.lead.rstrip(": ").endswith(", User")


def read_lines(summary: str) -> list[SummaryLine]:
    """Return the lines of a summary, without blank ones."""
    return [_line(one.strip()) for one in summary.split("\n") if one.strip()]


def with_turns(text: str, summary_lines: Iterable[SummaryLine]) -> str:
    """Return a model's text about turns, or about lines of a summary, with the turns in front of each line."""
    sources = [(line.turns, content_stems(line.text)) for line in summary_lines]
    weights = word_weights([words for _, words in sources])
    sentences = [
        sentence
        for line in text.split("\n")
        if line.strip()
        for sentence in split_text(LED.sub("", ITEM.sub("", line)).strip())
    ]
    named = ((_named(sentence, sources, weights), sentence) for sentence in sentences)
    return "\n".join(
        f"{_lead(turns)}{' '.join(sentence for _, sentence in group)}"
        for turns, group in groupby(named, key=lambda one: one[0])
    )


def word_weights(texts: Sequence[Iterable[str]]) -> dict[str, float]:
    """Return the weight of each word in some texts: higher for rarer ones, as in BM25."""
    frequency = Counter(word for words in texts for word in words)
    return {word: log1p((len(texts) - count + 0.5) / (count + 0.5)) for word, count in frequency.items()}


def _named(
    sentence: str, sources: Sequence[tuple[tuple[int, ...], frozenset[str]]], weights: Mapping[str, float]
) -> tuple[int, ...]:
    """Return the turns a sentence is from: those with most of its words, then those with most of the rest."""
    rest = {word: weights[word] for word in content_stems(sentence) if word in weights}
    enough = MIN_SHARE * sum(rest.values())
    named: list[tuple[int, ...]] = []
    for _ in range(MAX_ROUNDS):
        held = [sum(rest[word] for word in words & rest.keys()) for _, words in sources]
        most = max(held)
        if not rest or most < enough:
            break
        for share, (turns, words) in zip(held, sources, strict=True):
            if share == most:
                named.append(turns)
                rest = {word: weight for word, weight in rest.items() if word not in words}
    return tuple(sorted({number for turns in named or (turns for turns, _ in sources) for number in turns}))


def _lead(turns: Sequence[int]) -> str:
    if not turns:
        return ""
    named = runs_of(turns) if len(runs_of(turns)) <= MAX_PIECES else [[turns[0], turns[-1]]]
    return f"{numbers_in_words([number for first, last in named for number in range(first, last + 1)]).capitalize()}: "


def _line(text: str) -> SummaryLine:
    led = LED.match(text)
    if led is None:
        return SummaryLine((), text)
    runs = [(int(first), int(last or first)) for first, last in RUN.findall(led[1])]
    numbers = {number for first, last in runs for number in range(first, min(last, first + MAX_RUN) + 1)}
    return SummaryLine(tuple(sorted(numbers)), text[led.end() :], led[0])
