"""The quality of a search on a collection: each set's measures, and their means over its questions."""

from collections.abc import Callable, Sequence
from functools import cache, partial

from bench.retrieval.measures import hit_at_1, holds_answer, holds_spans, mean, ndcg_at_10, recall_at_5
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import LOOKED_AT, names_of
from rag_assistant.records import Passage

Measure = Callable[[Callable[[int], list[Passage]], Asked], float]


def by_document(measure: Callable[[Sequence[str], dict[str, int]], float]) -> Measure:
    """Return a measure over the documents that a search finds."""
    return lambda search, asked: measure(names_of(search(LOOKED_AT)), dict(asked.relevant))


def answer_in(limit: int) -> Measure:
    """Return the measure of whether the first ``limit`` chunks hold the answer."""
    return lambda search, asked: holds_answer(search(limit), asked)


def spans_in_five(search: Callable[[int], list[Passage]], asked: Asked) -> float:
    """Return whether the first five chunks cover the gold spans."""
    return holds_spans(search(5), asked)


STAND_ALONE: dict[str, dict[str, Measure]] = {
    "cranfield": {"nDCG@10": by_document(ndcg_at_10)},
    "cacm": {"nDCG@10": by_document(ndcg_at_10)},
    "xquad": {"hit@1": by_document(hit_at_1)},
    "declaration": {"hit@1": by_document(hit_at_1)},
    "covidqa": {"answer in 1": answer_in(1), "answer in 5": answer_in(5), "answer in 10": answer_in(10)},
    "mtrag": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
    "cast": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
    "canard": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
    "doc2dial": {"document R@5": by_document(recall_at_5), "spans in 5": spans_in_five},
}


def measures_of(collection: Collection) -> dict[str, Measure]:
    """Return the measures of a collection by name."""
    return STAND_ALONE[collection.name.split(" ")[0]]


def values(
    questions: Sequence[Asked], search: Callable[[Asked, int], list[Passage]], measures: dict[str, Measure]
) -> dict[str, dict[str, float]]:
    """Return each measure for each question, by id; each search runs once."""
    result: dict[str, dict[str, float]] = {}
    for asked in questions:
        once = cache(partial(search, asked))
        result[asked.id] = {name: measure(once, asked) for name, measure in measures.items()}
    return result


def score(
    questions: Sequence[Asked], search: Callable[[Asked, int], list[Passage]], measures: dict[str, Measure]
) -> dict[str, float]:
    """Return the mean of each measure over some questions."""
    of_each = values(questions, search, measures)
    return {name: mean([one[name] for one in of_each.values()]) for name in measures}
