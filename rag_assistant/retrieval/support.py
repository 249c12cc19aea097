"""Decide whether passages answer a question, only come near, or are unrelated. Pure.

Three values between 0 and 1 are added: the cosine of the nearest chunk, that of the nearest sentence, and the largest
share of the question's content words in one passage. Unrelated text comes nearer in a larger library, so the threshold
grows with its size. bench/retrieval/README.md has the results, and the constants were chosen there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log10
from typing import Literal

from rag_assistant.records import Passage
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.quotes import Compare
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.tokenize import content_words, query_words, search_words, stem
from rag_assistant.retrieval.value_kinds import has_named_kind

Support = Literal["found", "near", "nothing_found"]

# The threshold for a library of one chunk, and its increase for ten times as many.
MIN_SUM, MORE_FOR_TEN_TIMES = 0.91, 0.09
# Up to this far above the threshold it is only near; farther if a word of the question is in no passage.
NEAR, NEAR_WITHOUT_A_WORD = 0.15, 0.4
# The minimum for a sentence that answers: if it suffices for the sum, none is embedded.
USUAL_SENTENCE = 0.2
# How many sentences, of how many passages, are embedded, those with the most of the question's words, and how much of
# each; a third of the questions then take some 8 ms of CPU.
MAX_PASSAGES, MAX_SENTENCES, MAX_SENTENCE_CHARS = 3, 2, 100
# The value of the words of a question in another language than the passages, which can't contain any
# (bench/retrieval/README.md).
SHARE_ACROSS_LANGUAGES = 0.7
# The required share of the words if no vector says anything.
MIN_SHARE_ALONE = 0.15


def support_of(
    query: SearchQuery,
    passages: Sequence[Passage],
    best_cosine: float | None,
    chunks: int,
    compare: Compare | None,
    min_share: float = 0.0,
) -> Support:
    """Return how passages of a library of this many ``chunks`` support a question.

    ``best_cosine`` and ``compare`` are ``None`` if vectors say nothing. The question's words count at least
    ``min_share``.
    """
    words = _words(f"{query.context} {query.text}")
    vocabularies = [set(map(stem, search_words(f"{one.document} {one.section or ''} {one.text}"))) for one in passages]
    # A follow-up need not repeat its subject.
    word_sets = [some for some in (words, _words(query.text) if content_words(query.text) else set()) if some]
    share = max((len(one & some) / len(one) for one in word_sets for some in vocabularies), default=0.0)
    if best_cosine is None or compare is None:
        return "found" if share >= MIN_SHARE_ALONE else "nothing_found"
    share = max(share, min_share)
    least = MIN_SUM + MORE_FOR_TEN_TIMES * log10(max(1, chunks))
    enough = least + (NEAR if share == 1 else NEAR_WITHOUT_A_WORD)
    if passages and not has_named_kind(query.text, [one.text for one in passages[:MAX_PASSAGES]]):
        enough = inf
    total = best_cosine + share + USUAL_SENTENCE
    if total < enough:
        needed = (least if enough == inf else enough) - best_cosine - share
        total = best_cosine + share + _nearest_sentence(query, words, passages, compare, needed)
    if total < least:
        return "nothing_found"
    return "near" if total < enough else "found"


def _words(question: str) -> set[str]:
    return set(map(stem, query_words(question)))


def _nearest_sentence(
    query: SearchQuery, words: set[str], passages: Sequence[Passage], compare: Compare, needed: float
) -> float:
    """Return the similarity of the nearest of the sentences with most of the question's words, or the first enough."""
    lines = (line for passage in passages[:MAX_PASSAGES] for line in passage.text.splitlines())
    sentences = dict.fromkeys(one[:MAX_SENTENCE_CHARS] for line in lines for one in split_text(line))
    best_first = sorted(sentences, key=lambda text: -len(words & set(map(stem, search_words(text)))))
    nearest = 0.0
    for sentence in best_first[:MAX_SENTENCES]:
        if nearest < needed:
            nearest = max(nearest, *compare(query, [sentence]))
    return nearest
