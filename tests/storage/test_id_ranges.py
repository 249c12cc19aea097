"""Ids in ranges are the same as the set of these ids."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_assistant.storage.documents.scope import IdRanges, ranges_of

some_ids = st.sets(st.integers(1, 60))


def in_any_order(ids: set[int]) -> IdRanges:
    return IdRanges.of(reversed(ranges_of(sorted(ids))))


@given(some_ids)
def test_they_are_as_many_and_the_same(ids: set[int]) -> None:
    ranges = in_any_order(ids)
    assert (len(ranges), ranges.all().tolist()) == (len(ids), sorted(ids))


@given(some_ids, st.lists(st.integers(0, 62)))
def test_of_any_id_they_tell_whether_they_hold_it(ids: set[int], asked: list[int]) -> None:
    assert in_any_order(ids).hold(asked).tolist() == [one in ids for one in asked]


@given(some_ids, st.integers(1, 9))
def test_joined_they_hold_no_more_than_what_stands_between_two_of_them(ids: set[int], min_gap: int) -> None:
    joined = list(in_any_order(ids).joined(min_gap))
    assert all(after[0] - before[1] >= min_gap for before, after in pairwise(joined))
    assert {n for start, end in joined for n in range(start, end)} == ids.union(
        *(range(one, other) for one, other in pairwise(sorted(ids)) if other - one <= min_gap)
    )


def test_each_gap_ends_a_range() -> None:
    assert ranges_of([]) == []
    assert ranges_of([3]) == [(3, 4)]
    assert ranges_of([3, 4, 5, 7, 9, 10]) == [(3, 6), (7, 8), (9, 11)]
