"""What of the found passages is worth sending: each text once, neighbours as one, within a budget, or nothing. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from rag_assistant.history import estimate_tokens
from rag_assistant.records import Passage, Source, lead_of
from rag_assistant.retrieval.quotes import Compare
from rag_assistant.retrieval.sentences import sentences_of
from rag_assistant.retrieval.tokenize import query_words, search_words, stem

Sized = TypeVar("Sized", Passage, Source)

# Two passages are the same if they share this much of their words: the same page saved twice, with another date on it.
SAME = 0.9
MAX_COPIES = 2
# What stands between two passages, counted with each of them.
TOKENS_BETWEEN = 4

# Below both nothing was found: at most 0.5 % of a set's answerable questions, and 82 % of those of cranfield in xquad
# and of xquad in cranfield (docs/retrieval-benchmarks.md).
MIN_COSINE = 0.3
MIN_COVERAGE = 0.5
# Unless a sentence is as near as this: 93 % or more of what was told to have nothing stays so.
MIN_SENTENCE_COSINE = 0.4
# So many sentences are looked at, those with the most of the question's words, and so much of each: 20 to 40 ms of CPU.
MAX_SENTENCES, MAX_SENTENCE_CHARS = 4, 200
# The same where no vector says anything.
MIN_COVERAGE_ALONE = 0.15


def nothing_found(question: str, passages: Sequence[Passage], best_cosine: float | None) -> bool:
    """Return whether no passage has to do with a question; ``best_cosine`` is ``None`` where vectors say nothing."""
    words = query_words(question)
    if not words:
        return best_cosine is None or best_cosine < MIN_COSINE
    if best_cosine is not None and best_cosine >= MIN_COSINE:
        return False
    coverage = max((_coverage(words, passage) for passage in passages), default=0.0)
    return coverage < (MIN_COVERAGE_ALONE if best_cosine is None else MIN_COVERAGE)


def has_near_sentence(question: str, passages: Sequence[Passage], compare: Compare) -> bool:
    """Return whether a sentence that has a word of the question is near to it, though no whole passage is."""
    words = set(map(stem, query_words(question)))
    sentences = {one.text[:MAX_SENTENCE_CHARS] for passage in passages for one in sentences_of(passage.text)}
    shared = {text: len(words & set(map(stem, search_words(text)))) for text in sorted(sentences)}
    best_first = sorted(filter(shared.get, shared), key=lambda text: -shared[text])[:MAX_SENTENCES]
    if not best_first:
        return False
    return max(compare(question, best_first)) >= MIN_SENTENCE_COSINE


def distinct(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Yield the passages without those that repeat a better one: in one document once, in all of them twice.

    The best come first. Paragraphs that several documents share come from two of them, for which one is meant is not
    known: with one copy only, doc2dial loses 0.05 of the right documents.
    """
    better: list[tuple[Passage, frozenset[str]]] = []
    for passage in passages:
        vocabulary = frozenset(search_words(passage.text))
        copies = [one.document_id for one, other in better if _same(vocabulary, other)]
        if len(copies) < MAX_COPIES and passage.document_id not in copies:
            better.append((passage, vocabulary))
            yield passage


def within_budget(passages: Sequence[Sized], budget_tokens: int | None) -> list[Sized]:
    """Return the passages that fit together into a budget, the first one always; one that does not fit is skipped."""
    if budget_tokens is None:
        return list(passages)
    fitting: list[Sized] = []
    left = budget_tokens
    for passage in passages:
        tokens = estimate_tokens(passage.text) + TOKENS_BETWEEN
        if tokens <= left or not fitting:
            fitting.append(passage)
            left -= tokens
    return fitting


def joined(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages with those that touch in one document and page made one, in the place of the better one."""
    best_first = {passage.chunk_id: rank for rank, passage in enumerate(passages)}
    result: list[Passage] = []
    for passage in sorted(passages, key=lambda one: (one.document_id, one.start)):
        both = _join(result[-1], passage, best_first) if result else None
        if both is None:
            result.append(passage)
        else:
            result[-1] = both
    return sorted(result, key=lambda one: best_first[one.chunk_id])


def _join(first: Passage, second: Passage, best_first: dict[int, int]) -> Passage | None:
    """Return two passages as one under the id and score of the better; ``None`` if they do not touch."""
    if second.gap is None or (first.document_id, first.end + len(second.gap)) != (second.document_id, second.start):
        return None
    better = min(first, second, key=lambda one: best_first[one.chunk_id])
    # What a table or a list is about stands in front of the first alone.
    lead = lead_of(second.text, second.start, second.end)
    text = first.text + second.gap + second.text.removeprefix(lead)
    return replace(better, start=first.start, end=second.end, text=text, gap=first.gap)


def _same(words: frozenset[str], others: frozenset[str]) -> bool:
    return words == others or len(words & others) >= SAME * len(words | others)


def _coverage(words: Sequence[str], passage: Passage) -> float:
    there = set(search_words(f"{passage.document} {passage.text}"))
    return sum(word in there for word in words) / len(words)
