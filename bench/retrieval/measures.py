"""The measures of the tables, each between 0 and 1, over what a search found for one question."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bench.retrieval.sets import Asked
from rag_assistant.records import Passage, Source

COVERED = 0.8


def ndcg_at_10(found: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return the discounted gain of the first ten documents relative to the best possible."""
    gains = [max(0, relevant.get(name, 0)) / math.log2(rank + 2) for rank, name in enumerate(found[:10])]
    best = [grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(relevant.values(), reverse=True)[:10])]
    return sum(gains) / sum(best) if sum(best) > 0 else 0.0


def recall_at_5(found: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return the share of the relevant documents among the first five."""
    return sum(name in relevant for name in found[:5]) / len(relevant)


def hit_at_1(found: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 if the first document is relevant."""
    return float(bool(found) and found[0] in relevant)


def holds_answer(passages: Sequence[Passage], asked: Asked) -> float:
    """Return 1 if a gold answer is in the passages of the right document, ignoring blanks and case."""
    text = "\n".join(" ".join(one.text.split()).lower() for one in passages if one.document in asked.relevant)
    return float(any(" ".join(answer.split()).lower() in text for answer in asked.answers))


def holds_spans(passages: Sequence[Passage | Source], asked: Asked) -> float:
    """Return 1 if the passages cover at least 80 % of the gold spans' characters."""
    held = {place for one in passages if one.document in asked.relevant for place in range(one.start, one.end)}
    wanted = [place for start, end in asked.spans for place in range(start, end)]
    return float(bool(wanted) and sum(place in held for place in wanted) >= COVERED * len(wanted))


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return sum(values) / len(values) if values else 0.0


def standard_error(values: Sequence[float], groups: Sequence[str]) -> float:
    """Return the standard error of a mean of values that are dependent within groups."""
    middle, of_group = mean(values), defaultdict[str, float](float)
    for value, group in zip(values, groups, strict=True):
        of_group[group] += value - middle
    return math.hypot(*of_group.values()) / len(values) if values else 0.0
