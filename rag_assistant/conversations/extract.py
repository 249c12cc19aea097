"""An extractive record of some turns: whole sentences, each line below its turn's number. Pure.

It keeps the sentences with the most new content for their length; the beginning of a message counts more.
bench/history.md compares it with alternatives, and the constants were chosen there.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby

from msgspec import Struct

from rag_assistant.conversations.summary_lines import word_weights
from rag_assistant.history import estimate_tokens
from rag_assistant.records import PastTurn, text_in
from rag_assistant.retrieval.claims import CITATION
from rag_assistant.retrieval.sentences import sentences_of
from rag_assistant.retrieval.tokenize import content_stems

EXTRACT = "extract"
# The introduction of an answer of quotes, or what is said instead.
LEAD = "No language model is connected, so here is what your documents say:"
LEAD_NEAR = "The search found no passage that clearly answers this. The nearest is:"
LEAD_INSTEAD = "The model did not answer, so here is what your documents say:"
NOTHING_FOUND = "No matching passages in your documents."
NOTHING_IN_SCOPE = (
    "No matching passages in the {n} documents that this question is limited to. Without the filter, or outside the "
    "project, all documents are searched."
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
    for lead in (LEAD, LEAD_NEAR, LEAD_NEAR_BEFORE_1_1, LEAD_INSTEAD):
        answer = answer.removeprefix(lead)
    return answer.lstrip()


def extract(turns: Sequence[PastTurn], max_tokens: float, elsewhere: Collection[str] = ()) -> str:
    """Return a record of some turns: a quarter of their length, at most ``max_tokens``, but at least one sentence.

    Lines recorded ``elsewhere`` are left out.
    """
    sentences = [one for turn in turns for one in sentences_in(turn) if f"{one.who}: {one.text}" not in elsewhere]
    return _record(sentences, min(max_tokens, max(MIN_TOKENS_KEPT, SHARE_KEPT * sum(one.tokens for one in sentences))))


def shortened_record(record: str, max_tokens: float) -> str:
    """Return the most informative part of an extract; what a person or a model wrote into it stays in front."""
    before, *rest = LINE.split(record)
    sentences = [
        one for who, text in zip(rest[::2], rest[1::2], strict=True) for one in _spoken(who, " ".join(text.split()))
    ]
    room = max_tokens - estimate_tokens(before)
    return "\n".join(filter(None, (before.strip(), _record(sentences, room))))


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
    chosen = _choose(sentences, max_tokens)
    return "\n".join(
        f"{who}: {' '.join(sentences[index].text for index in indices)}"
        for who, indices in groupby(sorted(chosen), key=lambda index: sentences[index].who)
    )


def _choose(sentences: Sequence[Sentence], max_tokens: float) -> list[int]:
    """Return the indices of the sentences that are most informative together, best first."""
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
    return chosen


def _worth(one: Sentence, seen: set[str], weights: Mapping[str, float]) -> float:
    new = sum(weights[word] for word in one.words - seen)
    return (new / (one.tokens + EXTRA_TOKENS) + FIRST_BONUS / (1 + one.position)) if new else 0.0
