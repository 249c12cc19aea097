"""The weight of the conversation in a question's search: learns the tables of rag_assistant/retrieval/follow_up.py.

Reported results are from held-out data: each fifth of the conversations, or of the documents of standalone questions,
is searched with what the others taught, and each set with what the other sets taught.
"""

import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from bench.retrieval.measures import hit_at_1, mean, ndcg_at_10, recall_at_5
from bench.retrieval.sets import Asked
from bench.retrieval.shelf import CollectionShelf
from rag_assistant.records import EVERYTHING
from rag_assistant.retrieval.follow_up import (
    MIN_SHARE,
    SHARE_WITHOUT_WORDS,
    WEIGHTS,
    SearchQuery,
    context_of,
    features,
    is_about_something_else,
    leaning,
)
from rag_assistant.retrieval.tokenize import content_words

SHARES = np.array([0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0])
FOLDS = 5
# A fold of some forty questions has little significance: the conversations are grouped in several ways.
GROUPINGS = 5
# A loss of ranks alone has no slope where no ranks change; this share of a loss by scores has one.
SCORES_COUNT, SHARPNESS, MIN_PROBABILITY = 0.1, 25.0, 1e-4
# A standalone question must not be harmed: a set of such counts as much as this many others.
ALONE_COUNTS = 4.0
PENALTY, STEPS, STEP = 0.02, 1500, 0.03

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A question with its history, and the loss for each share of the context.

    With ``alone`` the history is about something else. ``query`` has the context, whatever its share will be. ``told``
    is how much the product weighs the context; ``quick_figures`` are its features before it embeds the context, if it
    does that.
    """

    collection: str
    asked: Asked
    query: SearchQuery
    figures: Floats
    losses: Floats
    alone: bool
    told: float
    quick_figures: Floats | None

    @property
    def id(self) -> str:
        """The question's id among those of all sets."""
        return f"{self.collection} {self.asked.id}"

    @property
    def about(self) -> str:
        """The unit that is held out as a whole: its conversation, or the document it is about."""
        return min(self.asked.relevant) if self.alone else self.asked.conversation

    def fold(self, grouping: int) -> int:
        """Return the fifth it belongs to."""
        return fold_of(self.about, grouping)

    def query_at(self, share: float) -> SearchQuery:
        """Return the search query with this weight of the context."""
        share = max(share, 0.0 if content_words(self.asked.text) else SHARE_WITHOUT_WORDS)
        if share < MIN_SHARE:
            return SearchQuery(self.asked.text, leaning=share)
        return structs.replace(self.query, share=share, leaning=share)


@dataclass(frozen=True)
class Learnt:
    """A weight for each feature, in order, and a constant."""

    weights: Floats
    constant: float

    def share(self, row: Row) -> float:
        """Return the weight of a question's context."""
        return float(1 / (1 + np.exp(-self.constant - row.figures @ self.weights)))


def rows_of(name: str, questions: Sequence[Asked], shelf: CollectionShelf, *, alone: bool) -> list[Row]:
    """Return a row for each question whose history vectors, not words, decide.

    What is about something else is standalone in any case, and teaches nothing.
    """
    rows: list[Row] = []
    search = shelf.keywords.search
    for asked in questions:
        context = context_of(asked.exchanges)
        similarity, quick = (
            shelf.retriever.similarity(asked.text, asked.exchanges, EVERYTHING, min_share) for min_share in (0, inf)
        )
        unknown = shelf.retriever.unknown(content_words(asked.text))
        if similarity is None or quick is None or is_about_something_else(asked.text, context, unknown):
            continue
        shelf.keywords.search = _remembered(search)  # type: ignore[method-assign]
        query = SearchQuery(asked.text, context, nearest=(similarity.library, similarity.context_library))
        losses = [_loss(asked, shelf, structs.replace(query, share=float(share)), alone) for share in SHARES]
        figures, quick_figures = (
            np.array(list(features(asked.text, context, one).values())) for one in (similarity, quick)
        )
        told = leaning(asked.text, context, similarity)
        by_questions = quick_figures if quick.by_questions else None
        rows.append(Row(name, asked, query, figures, np.array(losses), alone, told, by_questions))
    shelf.keywords.search = search  # type: ignore[method-assign]
    return rows


def fold_of(about: str, grouping: int) -> int:
    """Return the fifth of a conversation or document; the first grouping is that of earlier tables."""
    if grouping == 0:
        return zlib.crc32(about.encode()) % FOLDS
    return random.Random(f"{grouping} {about}").randrange(FOLDS)


def left_out(rows: Sequence[Row], grouping: int) -> dict[str, SearchQuery]:
    """Return each question's search query, by id, learned from the other four fifths."""
    shares = shares_left_out(rows, grouping)
    return {row.id: row.query_at(shares[row.id]) for row in rows}


def shares_left_out(rows: Sequence[Row], grouping: int) -> dict[str, float]:
    """Return the weight of each question's context, by id, learned from the other four fifths."""
    shares: dict[str, float] = {}
    for fold in range(FOLDS):
        learnt = learn([row for row in rows if row.fold(grouping) != fold])
        shares |= {row.id: learnt.share(row) for row in rows if row.fold(grouping) == fold}
    return shares


def without_context(rows: Sequence[Row]) -> list[Row]:
    """Return the questions as the product sees them before it embeds a context: its features are learned."""
    return [
        replace(row, figures=row.quick_figures, losses=(SHARES - row.told) ** 2)
        for row in rows
        if row.quick_figures is not None
    ]


def set_left_out(rows: Sequence[Row]) -> dict[str, SearchQuery]:
    """Return each question's search query, by id, learned from the other sets."""
    queries: dict[str, SearchQuery] = {}
    for name in {row.collection for row in rows}:
        learnt = learn([row for row in rows if row.collection != name])
        queries |= {row.id: row.query_at(learnt.share(row)) for row in rows if row.collection == name}
    return queries


def learn(rows: Sequence[Row]) -> Learnt:
    """Return the weights with the least loss over all sets, which count equally whatever their size (Adam)."""
    figures, losses = np.stack([row.figures for row in rows]), np.stack([row.losses for row in rows])
    sizes = Counter(row.collection for row in rows)
    counts = np.array([(ALONE_COUNTS if row.alone else 1.0) / sizes[row.collection] for row in rows])
    means, deviations = figures.mean(axis=0), figures.std(axis=0) + 1e-6
    inputs = np.column_stack([(figures - means) / deviations, np.ones(len(rows))])
    weights, first, second = (np.zeros(inputs.shape[1]) for _ in range(3))
    for step in range(1, STEPS + 1):
        share = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (counts * _slopes(losses, share) * share * (1 - share))
        slope[:-1] += PENALTY * weights[:-1]
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        weights -= STEP * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-9)
    raw = weights[:-1] / deviations
    return Learnt(raw, float(weights[-1] - raw @ means))


def table_of(name: str, learnt: Learnt) -> str:
    """Return a table as in rag_assistant/retrieval/follow_up.json."""
    weights = zip(WEIGHTS, (learnt.constant, *learnt.weights), strict=True)
    lines = ",\n".join(f'    "{figure}": {weight:.3f}' for figure, weight in weights)
    return f'  "{name}": {{\n{lines}\n  }},'


def _slopes(losses: Floats, shares: Floats) -> Floats:
    """Return the slope of each question's loss at its share, between the shares that were tried."""
    place = np.clip(np.searchsorted(SHARES, shares, side="right") - 1, 0, len(SHARES) - 2)
    each = np.arange(len(shares))
    slopes: Floats = (losses[each, place + 1] - losses[each, place]) / (SHARES[place + 1] - SHARES[place])
    return slopes


def _loss(asked: Asked, shelf: CollectionShelf, query: SearchQuery, alone: bool) -> float:
    """Return the loss in the ranks of the right documents, and a little in their scores."""
    hits, _ = shelf.retriever.ranked(query)
    names = list(dict.fromkeys(shelf.document_of[chunk_id] for chunk_id, _ in hits))
    measures = (hit_at_1, ndcg_at_10) if alone else (recall_at_5, ndcg_at_10)
    scores = np.exp(SHARPNESS * (np.array([score for _, score in hits]) - hits[0][1]))
    of_document: Counter[str] = Counter()
    for (chunk_id, _), score in zip(hits, scores / scores.sum(), strict=True):
        of_document[shelf.document_of[chunk_id]] += score
    surprise = mean([-float(np.log(max(of_document[name], MIN_PROBABILITY))) for name in asked.relevant])
    return 1 - mean([measure(names, asked.relevant) for measure in measures]) + SCORES_COUNT * surprise


def _remembered(search: Callable[..., Any]) -> Callable[..., Any]:
    """Return a memoised keyword search."""
    known: dict[Any, Any] = {}

    def found(words: Sequence[str], *rest: Any) -> Any:
        key = (tuple(words), *rest)
        if key not in known:
            known[key] = search(words, *rest)
        return known[key]

    return found
