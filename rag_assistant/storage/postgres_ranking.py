"""BM25 on PostgreSQL: its full text finds rows, and we rank them, since its own ranks ignore how rare a word is.

Formula and constants are those of FTS5 and of the in-memory index, so that SQLite and PostgreSQL rank alike (Robertson
and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
"""

from collections.abc import Mapping, Sequence
from math import log

import sqlalchemy as sa
from msgspec import Struct

Hit = tuple[int, float]

# Ranking reads each candidate's words. Beyond this many, only the rarest words select candidates.
MAX_CANDIDATES = 3_000
# For a larger table, the row counts come from PostgreSQL's statistics: counting would take longer than all the rest.
MAX_COUNTED_ROWS = 2_000
ROWS_FOR_USUAL_LENGTH = 1_000
MAX_COUNTED = 10_000
K1, B = 1.2, 0.75
MIN_WEIGHT = 1e-6
# No function of PostgreSQL returns term frequency; but for one word with all weights 1, ts_rank gives the sum of 1 / n
# ** 2 up to that number, divided by its limit. These are the borders between the numbers.
MAX_OFTEN = 50
_BORDERS = [(sum(n**-2 for n in range(1, often + 1)) - often**-2 / 2) / 1.64493406685 for often in range(1, MAX_OFTEN)]
BORDERS: sa.ColumnElement[list[float]] = sa.literal_column(
    f"'{{{','.join(f'{one:.6f}' for one in _BORDERS)}}}'::float8[]"
)
AS_IT_IS: sa.ColumnElement[str] = sa.literal_column("'simple'::regconfig")
ALL_EQUAL: sa.ColumnElement[list[float]] = sa.literal_column("'{1,1,1,1}'::real[]")

ROWS = sa.text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(:name)")
COMMON = sa.text(
    "SELECT lexeme, share FROM pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) "
    "AS common(lexeme, share) WHERE schemaname = current_schema() AND tablename = :name AND attname = 'words' "
    "AND lexeme = ANY(CAST(:stems AS text[]))"
)


class RankedWords(Struct, frozen=True):
    """A table with PostgreSQL's full text: ``key`` is its column for the row's id, ``held`` that of the words."""

    table: sa.TableClause
    key: sa.ColumnElement[int]
    held: sa.ColumnElement[str]
    config: sa.ColumnElement[str]

    def best(
        self, connection: sa.Connection, words: Sequence[str], limit: int, only: sa.ColumnElement[bool] | None
    ) -> list[Hit]:
        """Return up to ``limit`` (id, score) of rows with any of ``words`` and the condition ``only``, best first."""
        stems = sa.func.unnest(sa.func.tsvector_to_array(sa.func.to_tsvector(self.config, " ".join(words))))
        total = self._rows(connection)
        rows_with = self._rows_with(connection, list(connection.execute(sa.select(stems)).scalars()), total)
        counts = {stem: rows for stem, rows in rows_with.items() if rows}
        if not counts:
            return []
        # A sample of rows says how long they usually are.
        share = min(100.0, 100.0 * ROWS_FOR_USUAL_LENGTH / max(1, total))
        some = sa.tablesample(self.table, sa.func.system(share), seed=sa.literal(1), name="some")
        usual_length = float(connection.execute(sa.select(sa.func.avg(some.c.length))).scalar() or 1.0)
        idf = {stem: log((max(0, total - rows) + 0.5) / (rows + 0.5)) for stem, rows in counts.items()}
        ranked_rows = self._scored({stem: max(weight, MIN_WEIGHT) for stem, weight in idf.items()}, usual_length)
        ranked_rows = ranked_rows.where(holds_any(self.held, rarest(counts, MAX_CANDIDATES)))
        if only is not None:
            ranked_rows = ranked_rows.where(only)
        ranked = ranked_rows.order_by(sa.text("score DESC"), self.key).limit(limit)
        return [(row[0], row[1]) for row in connection.execute(ranked)]

    def _scored(self, weights: Mapping[str, float], usual_length: float) -> sa.Select[int, float]:
        length = K1 * (1 - B + B * self.table.c.length / usual_length)
        score: sa.ColumnElement[float] = sa.literal(0.0, sa.Double)
        for stem, weight in weights.items():
            rank = sa.cast(sa.func.ts_rank(ALL_EQUAL, self.held, query_of([stem])), sa.Double)
            often = sa.func.width_bucket(rank, BORDERS)
            score = score + weight * (K1 + 1) * often / (often + length)
        return sa.select(self.key, score.label("score"))

    def _rows(self, connection: sa.Connection) -> int:
        estimated = connection.execute(ROWS, {"name": self.table.name}).scalar() or 0
        if estimated > MAX_COUNTED_ROWS:
            return int(estimated)
        return connection.execute(sa.select(sa.func.count()).select_from(self.table)).scalar_one()

    def _rows_with(self, connection: sa.Connection, stems: Sequence[str], total: int) -> dict[str, int]:
        """Return how many rows contain each stem; in a large table, estimated for common ones."""
        common: dict[str, int] = {}
        if total > MAX_COUNTED_ROWS:
            shares = connection.execute(COMMON, {"name": self.table.name, "stems": list(stems)})
            common = {row.lexeme: int(row.share * total) for row in shares if row.share * total > MAX_CANDIDATES}
        rest = [stem for stem in stems if stem not in common]
        if not rest:
            return common
        counts = [
            sa.select(sa.func.count())
            .select_from(sa.select(self.key).where(holds_any(self.held, [stem])).limit(MAX_COUNTED + 1).subquery())
            .scalar_subquery()
            for stem in rest
        ]
        return common | dict(zip(rest, connection.execute(sa.select(*counts)).one(), strict=True))


def rarest(rows_with: Mapping[str, int], max_rows: int) -> list[str]:
    """Return the rarest words, at least one, that together occur in up to ``max_rows`` rows."""
    chosen: list[str] = []
    left = max_rows
    for word, rows in sorted(rows_with.items(), key=lambda one: one[1]):
        left -= rows
        if chosen and left < 0:
            break
        chosen.append(word)
    return chosen


def query_of(stems: Sequence[str]) -> sa.ColumnElement[str]:
    """Return PostgreSQL's query for any of some stems, without stemming them again."""
    any_stem = " | ".join("'" + stem.replace("\\", "\\\\").replace("'", "''") + "'" for stem in stems)
    return sa.func.to_tsquery(AS_IT_IS, any_stem)


def holds_any(held: sa.ColumnElement[str], stems: Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition that a full text contains any of some stems."""
    return held.op("@@", is_comparison=True)(query_of(stems))
