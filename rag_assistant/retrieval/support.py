"""Tell whether passages answer a question, only come near, or have nothing to do with it. Pure.

Three figures between 0 and 1 are added up: the cosine of the nearest chunk, that of the nearest sentence, and the share
of the question's content words that stand in one passage. What is about something else comes nearer in a larger
library, so that the limit grows with its size. Measured in bench/retrieval/README.md, where the constants were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Literal

from rag_assistant.records import Passage
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.quotes import Compare
from rag_assistant.retrieval.sentences import split_text
from rag_assistant.retrieval.table_answers import names_row
from rag_assistant.retrieval.tokenize import content_words, query_words, search_words, stem

Support = Literal["found", "near", "nothing_found"]

# The least for a library of one chunk, and how much more for ten times as many.
MIN_SUM, MORE_FOR_TEN_TIMES = 0.91, 0.09
# So far above the least it is only near; farther where a word of the question stands in no passage, unless it names a
# row of a table: what is asked of that needs not be called as its column is.
NEAR, NEAR_WITHOUT_A_WORD = 0.15, 0.4
# A sentence of what answers a question is at least so near: where the sum is reached with that, none is embedded.
USUAL_SENTENCE = 0.2
# Of so many passages, so many sentences are embedded, those with the most of the question's words, and so much of
# each, by which a third of the questions pays some 8 ms of CPU.
MAX_PASSAGES, MAX_SENTENCES, MAX_SENTENCE_CHARS = 3, 2, 100
# "How many cars?" is about cars.
QUANTITIES = frozenset({"many", "much"})
# What the words of a question count that is in another language than the passages, since none of them can stand there
# (bench/retrieval/README.md).
SHARE_ACROSS_LANGUAGES = 0.7
# Where no vector says anything, so many of the words.
MIN_SHARE_ALONE = 0.15


def support_of(
    query: SearchQuery,
    passages: Sequence[Passage],
    best_cosine: float | None,
    chunks: int,
    compare: Compare | None,
    min_share: float = 0.0,
) -> Support:
    """Return what passages of a library of so many ``chunks`` are to a question.

    ``best_cosine`` and ``compare`` are ``None`` where vectors say nothing. The question's words count ``min_share`` at
    least.
    """
    words = _words(f"{query.context} {query.text}")
    vocabularies = [set(map(stem, search_words(f"{one.document} {one.section or ''} {one.text}"))) for one in passages]
    # What leans on the conversation need not say again what that is about.
    word_sets = [some for some in (words, _words(query.text) if content_words(query.text) else set()) if some]
    share = max((len(one & some) / len(one) for one in word_sets for some in vocabularies), default=0.0)
    if best_cosine is None or compare is None:
        return "found" if share >= MIN_SHARE_ALONE else "nothing_found"
    share = max(share, min_share)
    least = MIN_SUM + MORE_FOR_TEN_TIMES * log10(max(1, chunks))
    has_all = share == 1 or any(names_row(query.text, one.text) for one in passages)
    enough = least + (NEAR if has_all else NEAR_WITHOUT_A_WORD)
    total = best_cosine + share + USUAL_SENTENCE
    if total < enough:
        total = best_cosine + share + _nearest_sentence(query, words, passages, compare)
    if total < least:
        return "nothing_found"
    return "near" if total < enough else "found"


def _words(question: str) -> set[str]:
    words = query_words(question)
    return {stem(word) for word in words if word not in QUANTITIES} or set(map(stem, words))


def _nearest_sentence(query: SearchQuery, words: set[str], passages: Sequence[Passage], compare: Compare) -> float:
    """Return how near the nearest sentence is, of those that have the most words of the question."""
    lines = (line for passage in passages[:MAX_PASSAGES] for line in passage.text.splitlines())
    sentences = dict.fromkeys(one[:MAX_SENTENCE_CHARS] for line in lines for one in split_text(line))
    best_first = sorted(sentences, key=lambda text: -len(words & set(map(stem, search_words(text)))))
    return max(compare(query, best_first[:MAX_SENTENCES]), default=0.0) if best_first else 0.0
