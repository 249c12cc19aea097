"""Choose what of some passages answers a question, to be quoted: up to three sentences, or what stands for one.

A sentence's score adds up, without weights, three figures between 0 and 1: its cosine with the question, the share of
the question's words that stand in it (rare ones count more), and its passage's score against that of the best passage.
A part of its better neighbour's figures comes on top: what follows the sentence that names a thing says more about it.
Where the question leans on what was said before, the words of that count as well, as much as they do in the search.
Measured in docs/retrieval-benchmarks.md, and the constants were chosen there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import log1p

from msgspec import Struct

from rag_assistant.records import Source
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.sentences import Sentence, sentences_of
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import content_words, query_words, search_words

MAX_SENTENCES = 3
# How far behind the best one a sentence may be to be quoted beside it.
MARGIN = 0.5
NEIGHBOUR_WEIGHT = 0.2
# Fewer words than these say too little: what stands behind them is quoted with them.
MIN_WORDS = 10
# So many sentences are embedded, those with the most of the question's words: 3 to 7 ms of CPU each.
MAX_EMBEDDED = 8

_Place = tuple[int, int]
# Returns how near each of some texts is to a question, 0 to 1.
Compare = Callable[[str, Sequence[str]], Sequence[float]]


class Quote(Struct, frozen=True):
    """Sentences that stand side by side in a source, in their order; ``n`` is the source's number."""

    n: int
    sentences: tuple[Sentence, ...]


class _Candidate(Struct, frozen=True):
    """A sentence, the number of its source and its position in it."""

    place: _Place
    sentence: Sentence
    passage_score: float

    @property
    def text(self) -> str:
        """The sentence behind what is needed to understand it: on structured text that finds more (the guide)."""
        return "\n".join(filter(None, (self.sentence.heading, self.sentence.lead, self.sentence.text)))


def choose_quotes(query: SearchQuery, sources: Sequence[Source], compare: Compare | None) -> list[Quote]:
    """Return what to quote of the sources, the best source first, each in its reading order.

    Where ``compare`` is ``None``, because vectors say nothing, the words decide.
    """
    scores = _scores(query, sources, compare)
    candidates = list(scores)
    if not candidates:
        return []
    best_first = sorted(candidates, key=lambda one: -scores[one])[:MAX_SENTENCES]
    chosen = [one for one in best_first if scores[one] >= scores[best_first[0]] - MARGIN]
    if sum(len(search_words(one.sentence.text)) for one in chosen) < MIN_WORDS:
        n, position = chosen[-1].place
        chosen += [one for one in candidates if one.place == (n, position + 1) and one not in chosen]
    return _side_by_side(chosen)


def nearest_range(query: SearchQuery, source: Source, compare: Compare | None) -> tuple[int, int] | None:
    """Return from where to where in a source's text the sentence goes that is nearest to a question.

    ``None`` if none is nearer than the others.
    """
    scores = _scores(query, [source], compare)
    if len(set(scores.values())) < 2:
        return None
    best = max(scores, key=lambda one: scores[one])
    # In the source it may go over several lines.
    match = re.search(r"\s*".join(map(re.escape, "".join(best.sentence.text.split()))), source.text)
    return match.span() if match else None


def _scores(query: SearchQuery, sources: Sequence[Source], compare: Compare | None) -> dict[_Candidate, float]:
    """Return how well each sentence of the sources answers a question."""
    candidates = _candidates(sources)
    similarities = _similarities(query, candidates, compare) if candidates else {}
    return {one: _score(one, similarities) for one in candidates}


def _candidates(sources: Sequence[Source]) -> list[_Candidate]:
    """Return the sentences of the sources, each text once."""
    best = max((source.score for source in sources), default=0.0) or 1.0
    candidates: dict[str, _Candidate] = {}
    for source in sources:
        position = 0
        for _, below in groupby(sentences_of(source.text), key=lambda sentence: sentence.heading):
            for sentence in below:
                candidates.setdefault(sentence.text, _Candidate((source.n, position), sentence, source.score / best))
                position += 1
            position += 1  # Across a heading nothing is side by side.
    return list(candidates.values())


def _similarities(query: SearchQuery, candidates: Sequence[_Candidate], compare: Compare | None) -> dict[_Place, float]:
    """Return how near each sentence is to a question: by its words, and the best by these also by their cosine."""
    texts = [one.text for one in candidates]
    # A question that leans and has no content words ("And when?") is as near as what it leans on.
    own_text = query.context if query.is_follow_up and not content_words(query.text) else query.text
    shares = zip(_word_shares(own_text, texts), _word_shares(query.context, texts), strict=True)
    by_words = [own + query.share * context for own, context in shares]
    similarities = {one.place: share for one, share in zip(candidates, by_words, strict=True)}
    if compare is not None:
        best_first = sorted(candidates, key=lambda one: -similarities[one.place] - one.passage_score)[:MAX_EMBEDDED]
        for one, similarity in zip(best_first, compare(own_text, [one.text for one in best_first]), strict=True):
            similarities[one.place] += max(0.0, similarity)
    return similarities


def _word_shares(question: str, texts: Sequence[str]) -> list[float]:
    """Return for each text its share of those words of the question that any text has; rare ones weigh more."""
    words_of_texts = [search_words(text) for text in texts]
    language = language_of(set().union(*words_of_texts))
    vocabularies = [frozenset(stems(words, language)) for words in words_of_texts]
    frequency = Counter(word for vocabulary in vocabularies for word in vocabulary)
    # As BM25 weighs them.
    weights = {
        word: log1p((len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
        for word in stems(query_words(question), language)
        if word in frequency
    }
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in weights if word in vocabulary) / total for vocabulary in vocabularies]


def _score(one: _Candidate, similarities: Mapping[_Place, float]) -> float:
    n, position = one.place
    neighbour = max(similarities.get((n, position + step), 0.0) for step in (-1, 1))
    return similarities[one.place] + one.passage_score + NEIGHBOUR_WEIGHT * neighbour


def _side_by_side(chosen: Sequence[_Candidate]) -> list[Quote]:
    """Return the chosen sentences, those that follow one another in a source as one quote."""
    sources = list(dict.fromkeys(one.place[0] for one in chosen))
    in_order = sorted(chosen, key=lambda one: (sources.index(one.place[0]), one.place[1]))
    # Where sentences follow one another, position and index grow by the same.
    runs = groupby(enumerate(in_order), key=lambda pair: (pair[1].place[0], pair[1].place[1] - pair[0]))
    return [Quote(n, tuple(one.sentence for _, one in run)) for (n, _), run in runs]
