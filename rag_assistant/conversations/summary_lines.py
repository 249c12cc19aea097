"""The lines of a summary, each with the numbers of its turns; and an extractive record, which needs no model. Pure.

A model's text is matched with the turns by words; rare words count more, as in BM25. A sentence with little of any turn
names all of them. A record keeps the sentences with the most new content for their length; the beginning of a message
counts more. bench/history.md compares it with alternatives, and the constants were chosen there.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from math import log1p

from msgspec import Struct

from rag_assistant.history import estimate_tokens
from rag_assistant.history.words import MAX_PIECES, numbers_in_words
from rag_assistant.records import PastTurn, runs_of, text_in
from rag_assistant.records.errors import SummaryRejected
from rag_assistant.retrieval.claims import CITATION, strange_figures
from rag_assistant.retrieval.sentences import sentences_of, split_text
from rag_assistant.retrieval.tokenize import content_stems, search_words, stem

LED = re.compile(r"^turns? (\d[\d, ]*(?:(?:to|and) [\d, ]+)*)(?:, (?:user|assistant))?: *", re.IGNORECASE)
RUN = re.compile(r"(\d+)(?: to (\d+))?")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
MAX_RUN = 10_000
# A turn was used if it has this share of a sentence's content, beyond the turns that have more of it.
MIN_SHARE = 0.25
MAX_ROUNDS = 3
# The minimum share of a summary's content words in what it summarises (bench/history.md), and how many figures that
# aren't there are named.
MIN_FROM_SOURCE, MAX_FIGURES = 0.35, 5


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
    read = []
    for line in filter(None, map(str.strip, summary.split("\n"))):
        lead = led[0] if (led := LED.match(line)) else ""
        runs = [(int(first), int(last or first)) for first, last in RUN.findall(lead)]
        numbers = {number for first, last in runs for number in range(first, min(last, first + MAX_RUN) + 1)}
        read.append(SummaryLine(tuple(sorted(numbers)), line[len(lead) :], lead))
    return read


def check_content(summary: str, source: str, *, is_cut: bool) -> None:
    """Raise SummaryRejected for a model's summary that was cut, or says what its source doesn't."""
    if is_cut:
        raise SummaryRejected("The model's summary was cut at its maximum length.")
    words, there = content_stems(summary), set(map(stem, search_words(source)))
    if len(words & there) < MIN_FROM_SOURCE * len(words):
        raise SummaryRejected("The model's summary is about something else than the turns.")
    if figures := strange_figures(summary, source):
        raise SummaryRejected(
            f"The model's summary has figures that the turns do not have: {', '.join(figures[:MAX_FIGURES])}."
        )


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


EXTRACT = "extract"
# The introduction of an answer of quotes, or what is said instead.
LEAD = "No language model is connected, so here is what your documents say:"
LEAD_GUIDE = "No language model is connected, so here is what the guide says:"
LEAD_WANTED = "Here is what your documents say:"
LEAD_NEAR = "The search found no passage that clearly answers this. The nearest is:"
LEAD_INSTEAD = "The model did not answer, so here is what your documents say:"
# Between quotes and what a small model makes of them.
LEAD_OF_MODEL = "The model's answer:"
MODEL_LEAD = f"\n\n{LEAD_OF_MODEL}\n\n"
NOTHING_FOUND = "No matching passages in your documents."
NOTHING_IN_SCOPE = (
    "No matching passages in the documents that this question is limited to ({n} in all). Without the filter, or "
    "outside the project, all documents are searched."
)
LEAD_NEAR_BEFORE_1_1 = "Nothing in your documents answers this directly. The nearest is:"
# The share of the turns' length that is kept; a few short turns may be kept almost completely.
SHARE_KEPT = 0.25
MIN_TOKENS_KEPT = 120
# A sentence of a few words isn't worth much more than one of twice as many.
EXTRA_TOKENS = 4
# The bonus of a message's first sentence; the second gets half of it, the third a third.
FIRST_BONUS = 2.0
SPEAKERS = {"user": "User", "assistant": "Assistant"}
QUOTED = re.compile(r"^> ?", re.MULTILINE)
CITED = re.compile(rf"(?<! ) *{CITATION.pattern}")
LINE = re.compile(r"^(Turn \d+, (?:User|Assistant)): ", re.MULTILINE)


class Sentence(Struct, frozen=True):
    """A sentence: who said it in which turn, its position in the message, its tokens and its content words."""

    who: str
    position: int
    text: str
    tokens: int
    words: frozenset[str]

    @property
    def by_person(self) -> bool:
        """Whether a person said it."""
        return self.who.endswith(SPEAKERS["user"])


def without_lead(answer: str) -> str:
    """Return the answer without the introduction of quotes, which says nothing about the conversation."""
    for lead in (LEAD, LEAD_GUIDE, LEAD_WANTED, LEAD_NEAR, LEAD_NEAR_BEFORE_1_1, LEAD_INSTEAD):
        answer = answer.removeprefix(lead)
    return answer.lstrip()


def without_quotes(answer: str) -> str:
    """Return what a small model wrote below quotes; other answers as they are."""
    quotes, lead, own = answer.partition(MODEL_LEAD)
    return own if lead and quotes.startswith((LEAD_WANTED, LEAD_NEAR)) else answer


def extract(turns: Sequence[PastTurn], max_tokens: float, elsewhere: Collection[str] = ()) -> str:
    """Return a quarter of some turns, up to ``max_tokens``, at least a sentence; nothing recorded ``elsewhere``."""
    sentences = [one for turn in turns for one in sentences_in(turn) if f"{one.who}: {one.text}" not in elsewhere]
    return _record(sentences, min(max_tokens, max(MIN_TOKENS_KEPT, SHARE_KEPT * sum(one.tokens for one in sentences))))


def shortened_record(record: str, max_tokens: float) -> str:
    """Return the most informative part of an extract; what a person or a model wrote into it stays in front."""
    before, *rest = LINE.split(record)
    sentences = [
        one for who, text in zip(rest[::2], rest[1::2], strict=True) for one in _spoken(who, " ".join(text.split()))
    ]
    return "\n".join(filter(None, (before.strip(), _record(sentences, max_tokens - estimate_tokens(before)))))


def sentences_in(turn: PastTurn) -> Iterator[Sentence]:
    """Yield the sentences of a turn's question and answer."""
    for message in turn.messages:
        speaker = SPEAKERS.get(message["role"])
        if speaker and (text := text_in(message)):
            yield from _spoken(f"Turn {turn.number}, {speaker}", _plain(text))


def _plain(answer: str) -> str:
    """Return an answer without citations and quotation markup."""
    return QUOTED.sub("", CITED.sub("", without_lead(answer)))


def _spoken(who: str, text: str) -> Iterator[Sentence]:
    for position, sentence in enumerate(sentences_of(text)):
        line = " ".join(sentence.text.split())
        yield Sentence(who, position, line, estimate_tokens(line), content_stems(line))


def _record(sentences: Sequence[Sentence], max_tokens: float) -> str:
    """Return the sentences that are most informative together, in their order."""
    weights = word_weights([one.words for one in sentences])
    words_chosen: set[str] = set()
    waiting = [(-_worth(one, words_chosen, weights), index) for index, one in enumerate(sentences)]
    heapify(waiting)
    chosen: list[int] = []
    while waiting:
        _, index = heappop(waiting)
        one = sentences[index]
        worth = -_worth(one, words_chosen, weights)
        if waiting and worth > waiting[0][0]:  # Others may cover part of it by now.
            heappush(waiting, (worth, index))
        elif (worth < 0 and one.tokens <= max_tokens) or not chosen:
            chosen.append(index)
            words_chosen |= one.words
            max_tokens -= one.tokens
    return "\n".join(
        f"{who}: {' '.join(sentences[index].text for index in indices)}"
        for who, indices in groupby(sorted(chosen), key=lambda index: sentences[index].who)
    )


def _worth(one: Sentence, seen: set[str], weights: Mapping[str, float]) -> float:
    new = sum(weights[word] for word in one.words - seen)
    return (new / (one.tokens + EXTRA_TOKENS) + FIRST_BONUS / (1 + one.position)) if new else 0.0
