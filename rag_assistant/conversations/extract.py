"""A record of some turns without a model: whole sentences of them, each line under its turn's number. Pure.

Those sentences are kept that say most that is new, for their length; what stands at the beginning of a message counts
more. Measured beside other choices in bench/history.md, and the constants were chosen there.
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
# What leads an answer of quotes.
LEAD = "No language model is connected, so here is what your documents say:"
LEAD_NEAR = "Nothing in your documents answers this directly. The nearest is:"
LEAD_INSTEAD = "The model did not answer, so here is what your documents say:"
# Of the turns' length so much is kept; a few short turns may be kept nearly whole.
SHARE_KEPT = 0.25
MIN_TOKENS_KEPT = 120
# A sentence of a few words is not worth much more than one of twice as many.
EXTRA_TOKENS = 4
# What the first sentence of a message counts more; the second half of that, the third a third.
FIRST_BONUS = 2.0
SPEAKERS = {"user": "User", "assistant": "Assistant"}
QUOTED = re.compile(r"^> ?", re.MULTILINE)
CITED = re.compile(rf" *{CITATION.pattern}")
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
    """Return an answer without the line that leads quotes: it says nothing about the conversation."""
    for lead in (LEAD, LEAD_NEAR, LEAD_INSTEAD):
        answer = answer.removeprefix(lead)
    return answer.lstrip()


def extract(turns: Sequence[PastTurn], max_tokens: float, elsewhere: Collection[str] = ()) -> str:
    """Return a record of some turns: a quarter of their length, at most ``max_tokens``, but one sentence always.

    Lines that are recorded ``elsewhere`` are left out.
    """
    sentences = [one for turn in turns for one in sentences_in(turn) if f"{one.who}: {one.text}" not in elsewhere]
    return _record(sentences, min(max_tokens, max(MIN_TOKENS_KEPT, SHARE_KEPT * sum(one.tokens for one in sentences))))


def shortened_record(record: str, max_tokens: float) -> str:
    """Return what says most of a record that was made here; what a person or a model wrote into it stays in front."""
    before, *rest = LINE.split(record)
    sentences = [
        one for who, text in zip(rest[::2], rest[1::2], strict=True) for one in _spoken(who, " ".join(text.split()))
    ]
    room = max_tokens - estimate_tokens(before)
    return "\n".join(filter(None, (before.strip(), _record(sentences, room))))


def sentences_in(turn: PastTurn) -> Iterator[Sentence]:
    """Yield what was asked and answered in a turn, sentence by sentence."""
    for message in turn.messages:
        speaker = SPEAKERS.get(message["role"])
        if speaker and (text := text_in(message)):
            yield from _spoken(f"Turn {turn.number}, {speaker}", _plain(text))


def _plain(answer: str) -> str:
    """Return an answer without its citations and the marks of what it quotes."""
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
    """Return the indices of the sentences that say most together, the best first."""
    weights = word_weights([one.words for one in sentences])
    words_chosen: set[str] = set()
    waiting = [(-_worth(one, words_chosen, weights), index) for index, one in enumerate(sentences)]
    heapify(waiting)
    chosen: list[int] = []
    while waiting:
        _, index = heappop(waiting)
        one = sentences[index]
        worth = -_worth(one, words_chosen, weights)
        if waiting and worth > waiting[0][0]:  # Others have said a part of it meanwhile.
            heappush(waiting, (worth, index))
        elif (worth < 0 and one.tokens <= max_tokens) or not chosen:
            chosen.append(index)
            words_chosen |= one.words
            max_tokens -= one.tokens
    return chosen


def _worth(one: Sentence, seen: set[str], weights: Mapping[str, float]) -> float:
    new = sum(weights[word] for word in one.words - seen)
    return (new / (one.tokens + EXTRA_TOKENS) + FIRST_BONUS / (1 + one.position)) if new else 0.0
