"""Add what keywords and vectors found to one order. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Hit = tuple[int, float]

# Chosen on cranfield, cacm, mtrag and xquad: see docs/benchmarks.md.
KEYWORD_WEIGHT = 0.4
VECTOR_WEIGHT = 0.6


def fuse(keyword_hits: Sequence[Hit], vector_hits: Sequence[Hit]) -> list[Hit]:
    """Return all hits with their joint score (0 to 1), the best first.

    A keyword score counts as its share of the best one, a vector's as its cosine. Where only keywords found a chunk,
    its cosine is at most the smallest of those that vectors found, and counts as that.
    """
    best = max((score for _, score in keyword_hits), default=0.0) or 1.0
    by_keyword = {chunk_id: max(0.0, score) / best for chunk_id, score in keyword_hits}
    by_vector = {chunk_id: max(0.0, min(1.0, score)) for chunk_id, score in vector_hits}
    if not by_vector:
        return sorted(by_keyword.items(), key=lambda hit: (-hit[1], hit[0]))
    smallest = min(by_vector.values())
    joint = {
        chunk_id: KEYWORD_WEIGHT * by_keyword.get(chunk_id, 0.0) + VECTOR_WEIGHT * by_vector.get(chunk_id, smallest)
        for chunk_id in by_keyword.keys() | by_vector.keys()
    }
    return sorted(joint.items(), key=lambda hit: (-hit[1], hit[0]))
