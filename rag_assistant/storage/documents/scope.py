"""Which documents are searched, as SQL conditions."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, true

from rag_assistant.records import Scope
from rag_assistant.storage.database import Bound, Database
from rag_assistant.storage.full_text import holds
from rag_assistant.storage.ownership import readable
from rag_assistant.storage.tables import chunks, document_tags, documents

Ids = NDArray[np.int64]


class IdRanges:
    """Sorted ranges of ids, or of positions, that don't overlap; ends are excluded."""

    def __init__(self, starts: Ids, ends: Ids) -> None:
        self._starts, self._ends = starts, ends

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> IdRanges:
        """Return ranges given in any order, each from start to end."""
        return cls(*np.array(sorted(ranges), np.int64).reshape(-1, 2).T)

    def __len__(self) -> int:
        return int(np.sum(self._ends - self._starts))

    def all(self) -> Ids:
        """Return all ids, smallest first."""
        lengths = self._ends - self._starts
        before = np.cumsum(lengths) - lengths
        return np.repeat(self._starts - before, lengths) + np.arange(len(self))

    def hold(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        numbers = np.array(ids, np.int64)
        begun, ended = (np.searchsorted(some, numbers, side="right") for some in (self._starts, self._ends))
        return begun > ended

    def joined(self, min_gap: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges, joining those with gaps shorter than ``min_gap``."""
        apart = np.flatnonzero(self._starts[1:] - self._ends[:-1] >= min_gap)
        if len(self):
            yield from zip(self._starts[[0, *(apart + 1)]].tolist(), self._ends[[*apart, -1]].tolist(), strict=True)


def ranges_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return ids as sorted ranges, each from start to end."""
    numbers = np.array(ids, np.int64)
    return list(IdRanges(numbers, numbers + 1).joined(1))


class ChunksInScope:
    """The readable chunks of a scope, for one search: as ids, or as an SQL condition."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self.database = database
        self._scope = scope

    @cached_property
    def ids(self) -> IdRanges:
        """Their ids, including those of documents still being read."""
        # Those of a document are stored in order.
        own = select(chunks.c.id).where(chunks.c.document_id == documents.c.id).limit(1)
        first_of = own.order_by(chunks.c.position, chunks.c.id).scalar_subquery()
        last_of = own.order_by(chunks.c.position.desc(), chunks.c.id.desc()).scalar_subquery()
        query = select(documents.c.id, documents.c.chunks, first_of, last_of)
        query = query.where(in_scope(self.database, documents.c.id, self._scope))
        with self.database.read() as connection:
            ranges, scattered = [], []
            for document_id, count, first, last in connection.execute(query).all():
                if first is not None and last - first + 1 == count:
                    ranges.append((first, last + 1))
                elif first is not None:  # Others were stored in between, or the count is wrong.
                    scattered.append(document_id)
            if scattered:
                those = select(chunks.c.id).where(chunks.c.document_id.in_(scattered)).order_by(chunks.c.id)
                ranges += ranges_of(connection.execute(those).scalars().all())
        return IdRanges.of(ranges)

    def holds(self, chunk_id: ColumnElement[int]) -> ColumnElement[bool]:
        """Return the condition that a chunk is in the scope."""
        return chunk_id.in_(self._query)

    def has_more_than(self, count: int, connection: Connection) -> bool:
        some = self._query.limit(count + 1).subquery()
        return connection.execute(select(func.count()).select_from(some)).scalar_one() > count

    @property
    def _query(self) -> Select[int]:
        return select(chunks.c.id).where(in_scope(self.database, chunks.c.document_id, self._scope))


def in_scope(bound: Bound, document_id: ColumnElement[int], scope: Scope) -> ColumnElement[bool]:
    """Return the condition that a document is in the scope and readable."""
    conditions = [readable(bound, document_id)]
    if scope.document_ids or scope.library_ids:
        in_one = select(documents.c.id).where(documents.c.library_id.in_(scope.library_ids))
        conditions.append(or_(document_id.in_(scope.document_ids), document_id.in_(in_one)))
    if scope.tags:
        tagged = select(document_tags.c.document_id).where(document_tags.c.tag.in_(scope.tags))
        conditions.append(document_id.in_(tagged))
    date = documents.c.date
    if scope.after:
        later = date >= func.substr(scope.after, 1, func.length(date))
        conditions.append(document_id.in_(select(documents.c.id).where(later)))
    if scope.before:
        earlier = func.substr(date, 1, len(scope.before)) <= scope.before
        conditions.append(document_id.in_(select(documents.c.id).where(earlier)))
    return and_(true(), *conditions)


def named_or_tagged(bound: Bound, sought: str) -> ColumnElement[bool]:
    """Return the condition that each word of a text is in a document's name or one of its tags."""
    conditions: list[ColumnElement[bool]] = [true()]
    for word in unicodedata.normalize("NFC", sought).split():
        tagged = select(document_tags.c.document_id).where(holds(bound, document_tags.c.tag, word))
        conditions.append(or_(holds(bound, documents.c.name, word), documents.c.id.in_(tagged)))
    return and_(*conditions)
