"""How keywords and vectors become one order."""

import numpy as np

from rag_assistant.retrieval.hybrid import add, fuse, mix


def order(*hits: tuple[int, float]) -> list[int]:
    return [chunk_id for chunk_id, _ in hits]


def test_what_both_find_comes_first() -> None:
    assert order(*fuse([(1, 9.0), (2, 8.0)], [(3, 0.8), (2, 0.7), (4, 0.1)]))[0] == 2


def test_everything_found_is_there_once() -> None:
    fused = fuse([(1, 9.0), (2, 1.0)], [(2, 0.5), (3, 0.4)])
    assert sorted(order(*fused)) == [1, 2, 3]


def test_keywords_alone_keep_their_order() -> None:
    assert order(*fuse([(7, 3.0), (5, 2.0), (6, 1.0)], [])) == [7, 5, 6]


def test_vectors_alone_keep_their_order() -> None:
    assert order(*fuse([], [(7, 0.3), (5, 0.2), (6, 0.1)])) == [7, 5, 6]


def test_equal_scores_come_in_the_order_of_their_ids() -> None:
    assert order(*fuse([(3, 1.0), (2, 1.0), (1, 1.0)], [])) == [1, 2, 3]


def test_scores_lie_between_0_and_1() -> None:
    assert all(0 <= score <= 1 for _, score in fuse([(1, 40.0), (2, -3.0)], [(1, 1.00001), (3, -0.2)]))


def test_nothing_found_is_nothing() -> None:
    assert fuse([], []) == []


def test_vectors_without_weight_change_no_order() -> None:
    assert order(*fuse([(1, 9.0), (2, 8.0)], [(2, 0.9), (3, 0.8)], 0.0)) == [1, 2, 3]


def test_two_keyword_searches_are_added_by_their_shares() -> None:
    assert add([(1, 4.0), (2, 2.0)], [(2, 30.0), (3, 15.0)], 0.8) == [(2, 1.3), (1, 1.0), (3, 0.4)]


def test_a_second_keyword_search_that_found_nothing_changes_no_order() -> None:
    assert order(*add([(1, 4.0), (2, 2.0)], [], 0.8)) == [1, 2]


def test_cosines_to_two_vectors_are_added_as_those_to_their_sum() -> None:
    chunks, own, other = np.eye(3), np.array([0.6, 0.8, 0.0]), np.array([0.0, 0.6, 0.8])
    total = own + 0.5 * other
    mixed = mix(list(enumerate(chunks @ own)), list(enumerate(chunks @ other)), 0.5, float(np.linalg.norm(total)))
    assert order(*mixed) == [1, 0, 2]
    assert np.allclose([dict(mixed)[n] for n in range(3)], chunks @ total / np.linalg.norm(total))


def test_what_one_of_two_vectors_does_not_find_counts_as_its_last() -> None:
    assert mix([(1, 0.9), (2, 0.5)], [(2, 0.4), (3, 0.3)], 1.0, 1.0) == [(1, 1.2), (2, 0.9), (3, 0.8)]
    assert mix([], [], 1.0, 1.0) == []
