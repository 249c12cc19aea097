"""Decide whether passages answer a question, only come near, or are unrelated. Pure.

Three values between 0 and 1 are added: the cosine of the nearest chunk, that of the nearest sentence, and the largest
share of the question's content words in one passage. Unrelated text comes nearer in a larger library, so the threshold
grows with its size. bench/retrieval/README.md has the results, and the constants were chosen there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from math import log10
from typing import Literal

from rag_assistant.records import Passage
from rag_assistant.retrieval import tokenize
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.languages import COMPOUNDING, language_of
from rag_assistant.retrieval.quotes import Compare
from rag_assistant.retrieval.sentences import split_text
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
# Shorter words are parts of others by chance.
MIN_PART_CHARS = 5
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
    *,
    for_model: bool = False,
) -> Support:
    """Return how passages of a library of this many ``chunks`` support a question.

    ``best_cosine`` and ``compare`` are ``None`` if vectors say nothing. The question's words count at least
    ``min_share``. ``for_model``: what comes near is "found", for a model tells the difference better.
    """
    names = [f"{one.document} {one.section or ''}" for one in passages]
    texts = [
        [*tokenize.words_with_parts(name), *tokenize.words_with_parts(one.text)]
        for name, one in zip(names, passages, strict=True)
    ]
    vocabularies = [set(map(tokenize.stem, words)) for words in texts]
    vocabulary = set().union(*vocabularies)
    words = _words(f"{query.context} {query.text}", vocabulary, texts)
    own = _words(query.text, vocabulary, texts) if tokenize.content_words(query.text) else set()
    # A follow-up need not repeat its subject.
    word_sets = [some for some in (words, own) if some]
    share = max((len(one & some) / len(one) for one in word_sets for some in vocabularies), default=0.0)
    best = [f"{name} {one.text}" for name, one in zip(names[:MAX_PASSAGES], passages, strict=False)]
    is_of_kind = has_named_kind(query.text, best)
    if best_cosine is None or compare is None:
        return "nothing_found" if share < MIN_SHARE_ALONE else "found" if is_of_kind else "near"
    share = max(share, min_share)
    least = MIN_SUM + MORE_FOR_TEN_TIMES * log10(max(1, chunks))
    enough = least if for_model else least + (NEAR if share == 1 else NEAR_WITHOUT_A_WORD)
    total = best_cosine + share + USUAL_SENTENCE
    if total < enough:
        total = best_cosine + share + _nearest_sentence(query, words, passages, compare, enough - best_cosine - share)
    if total < least:
        return "nothing_found"
    return "near" if total < enough or (passages and not is_of_kind) else "found"


def _words(question: str, vocabulary: Collection[str], texts: Sequence[Sequence[str]]) -> set[str]:
    """Return the stems of a question's words, in the forms that a vocabulary has, or as a part of a compound."""
    stems = set()
    for word in tokenize.query_words(question):
        forms = tokenize.stems_of_forms(word)
        holding = ((one, words) for words in texts for one in words if len(word) >= MIN_PART_CHARS and word in one)
        compounds = (tokenize.stem(one) for one, words in holding if language_of(words, min_common=1) in COMPOUNDING)
        stems.add(next(chain(filter(vocabulary.__contains__, forms), compounds), forms[0]))
    return stems


def _nearest_sentence(
    query: SearchQuery, words: set[str], passages: Sequence[Passage], compare: Compare, needed: float
) -> float:
    """Return the similarity of the nearest of the sentences with most of the question's words, or the first enough."""
    lines = (line for passage in passages[:MAX_PASSAGES] for line in passage.text.splitlines())
    sentences = dict.fromkeys(one[:MAX_SENTENCE_CHARS] for line in lines for one in split_text(line))
    best_first = sorted(sentences, key=lambda text: -len(words & set(map(tokenize.stem, tokenize.search_words(text)))))
    nearest = 0.0
    for sentence in best_first[:MAX_SENTENCES]:
        if nearest < needed:
            nearest = max(nearest, *compare(query, [sentence]))
    return nearest
