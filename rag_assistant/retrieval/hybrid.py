"""Hybrid search: fuse keyword and vector hits by adding their scores. Pure."""

from collections.abc import Sequence

Hit = tuple[int, float]

# On a plateau from 0.6 to 0.7 on cranfield, cacm, covidqa, mtrag, doc2dial and xquad: see bench/retrieval/README.md.
VECTOR_WEIGHT = 0.65


def fuse(keyword_hits: Sequence[Hit], vector_hits: Sequence[Hit], vector_weight: float = VECTOR_WEIGHT) -> list[Hit]:
    """Return all hits with their combined score (0 to 1), best first.

    A keyword score counts as its share of the best one, a vector's as its cosine. A chunk found by keywords only gets
    the smallest cosine of the vector hits, an upper bound.
    """
    by_keyword = dict(as_shares(keyword_hits))
    if not vector_hits:
        return _best_first(by_keyword)
    by_vector = {
        chunk_id: vector_weight * (0.0 if cosine < 0 else min(cosine, 1.0)) for chunk_id, cosine in vector_hits
    }
    total = dict.fromkeys(by_keyword, min(by_vector.values())) | by_vector
    return _best_first({one: own + (1 - vector_weight) * by_keyword.get(one, 0.0) for one, own in total.items()})


def add(hits: Sequence[Hit], others: Sequence[Hit], weight: float) -> list[Hit]:
    """Return the hits of two keyword searches combined, the second weighted with ``weight``, best first."""
    first, second = dict(as_shares(hits)), dict(as_shares(others))
    return _best_first({one: first.get(one, 0.0) + weight * second.get(one, 0.0) for one in first | second})


def mix(hits: Sequence[Hit], others: Sequence[Hit], weight: float, length: float) -> list[Hit]:
    """Return the cosines to the sum of two vectors, which has some ``length``, from the cosines to each.

    The other vector is weighted with ``weight``. A chunk missing from one list gets its last score.
    """
    first, second = dict(hits), dict(others)
    least, other_least = min(first.values(), default=0.0), min(second.values(), default=0.0)
    total = {
        chunk_id: (first.get(chunk_id, least) + weight * second.get(chunk_id, other_least)) / length
        for chunk_id in first | second
    }
    return _best_first(total)


def as_shares(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with scores relative to the best one."""
    best = max([score for _, score in hits], default=0.0) or 1.0
    return [(chunk_id, score / best if score > 0 else 0.0) for chunk_id, score in hits]


def _best_first(scores: dict[int, float]) -> list[Hit]:
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
