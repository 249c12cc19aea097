"""Keyword search in SQL: FTS5 on SQLite, full text on PostgreSQL. Words come prepared, separated by blanks.

Chunks of documents and turns of conversations are searchable. On SQLite, those of chunks are only stored, in a plain
table; an in-memory index searches them.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import exp, log
from typing import Any

import sqlalchemy as sa

from rag_assistant.storage.database import Bound
from rag_assistant.storage.postgres_ranking import Hit, RankedWords, rarest

# Words are counted in at most this many rows.
MAX_COUNTED = 10_000
# Somebody is waiting while typing.
MAX_RANKED_WHILE_TYPING = 2_000
# Rows that certainly match contain the rarest words.
MAX_SCORED_FOR_SUREST = 2_000

# How fast certainty grows with the weight of the matching words, in log(rows): one rare word alone is no certainty, and
# the more rows there are, the more of them contain it by chance (bench/history.md).
CERTAINTY_SCALE = 1.3


class WordIndex:
    """The words of the rows of a table.

    ``name`` is the index's table, ``key`` its column for the row's id. ``configuration`` is PostgreSQL's: ``english``
    stems words, as FTS5's tokenizer of the same table does; ``simple`` leaves them unchanged.
    """

    def __init__(self, name: str, key: str, configuration: str) -> None:
        self.name = name
        self._key = key
        self._configuration = configuration
        self._config: sa.ColumnElement[Any] = sa.literal_column(f"'{configuration}'::regconfig")
        self._fts = sa.table(name, sa.column("rowid"), sa.column("words"))
        # FTS5's score is BM25, negated. Ordering by its own rank would score all rows, whatever the other conditions.
        score = (-sa.func.bm25(sa.literal_column(name))).label("score")
        ranked = sa.select(self._fts.c.rowid, score).where(_match(name, sa.bindparam("any_word")))
        self.ranked = ranked.order_by(score.desc()).limit(sa.bindparam("limit"))
        self._full_text = sa.table(name, sa.column(key), sa.column("words"), sa.column("length", sa.Integer))
        self.key, held = self._full_text.c[key], self._full_text.c.words
        self.ranked_words = RankedWords(self._full_text, self.key, held, self._config)

    def insert(self, connection: sa.Connection, rows: Sequence[tuple[int, str]]) -> None:
        """Index the words of rows, given as (id, words)."""
        table, key = self.columns(connection)
        words: sa.ColumnElement[str] = sa.bindparam("new_words", type_=sa.Text)
        if connection.dialect.name != "sqlite":
            words = sa.func.to_tsvector(self._config, words)
        inserting = table.insert().values({key.name: sa.bindparam("new_id", type_=sa.Integer), "words": words})
        connection.execute(inserting, [{"new_id": row_id, "new_words": row_words} for row_id, row_words in rows])

    def copy(self, connection: sa.Connection, pairs: sa.Subquery) -> None:
        """Copy the words of rows: ``pairs`` has an ``old_id`` for each ``new_id``."""
        words, key = self.columns(connection)
        rows = sa.select(pairs.c.new_id, words.c.words).join(words, key == pairs.c.old_id)
        connection.execute(words.insert().from_select([key.name, "words"], rows))

    def text(self, connection: sa.Connection) -> sa.ColumnElement[Any]:
        """Return the words of a row as text; in PostgreSQL, their stems."""
        words, _ = self.columns(connection)
        if connection.dialect.name == "sqlite":
            return words.c.words
        return sa.literal_column(
            "(SELECT string_agg(lexeme, ' ' ORDER BY position) FROM unnest(words) AS held(lexeme, positions, weights), "
            "unnest(positions) AS position)",
            sa.Text,
        )

    def drop(self, connection: sa.Connection, ids: sa.Select[Any] | Sequence[int]) -> None:
        """Delete the words of some rows."""
        words, key = self.columns(connection)
        connection.execute(words.delete().where(key.in_(ids)))

    def columns(self, bound: Bound) -> tuple[sa.TableClause, sa.ColumnElement[Any]]:
        if bound.dialect.name == "sqlite":
            return self._fts, self._fts.c.rowid
        return self._full_text, self.key

    def best(
        self, connection: sa.Connection, words: Sequence[str], limit: int, only: sa.ColumnElement[bool] | None = None
    ) -> list[Hit]:
        """Return up to ``limit`` (id, score) of the rows that contain any of ``words``, best first, by BM25.

        ``only`` is a condition on ``row_id``. ``words`` must not be empty. Higher scores are better; they are
        comparable within one search only.
        """
        if connection.dialect.name == "sqlite":
            ranked = self.ranked if only is None else self.ranked.where(only)
            hits = connection.execute(ranked, {"any_word": _any_of(words), "limit": limit})
            return [(row_id, score) for row_id, score in hits]
        return self.ranked_words.best(connection, words, limit, only)

    def best_or_newest(
        self, connection: sa.Connection, words: Sequence[str], limit: int, only: sa.ColumnElement[bool] | None = None
    ) -> list[int]:
        """Return up to ``limit`` ids of rows that contain any of ``words``, best first.

        Where too many rows match, only the rarest words select and rank; if none is rare, the newest rows are returned.
        ``only`` is a further condition.
        """
        newest = self._newest(connection, words, max(limit, MAX_RANKED_WHILE_TYPING + 1), only)
        ranked = list(words)
        if len(newest) > MAX_RANKED_WHILE_TYPING:
            counted = self.counted(connection, words, MAX_RANKED_WHILE_TYPING)[0] if len(words) > 1 else {}
            rare = {word: rows for word, rows in counted.items() if 0 < rows <= MAX_RANKED_WHILE_TYPING}
            ranked = rarest(rare, MAX_RANKED_WHILE_TYPING)
        return [row_id for row_id, _ in self.best(connection, ranked, limit, only)] if ranked else newest[:limit]

    def row_id(self, connection: sa.Connection) -> sa.ColumnElement[Any]:
        """Return a row's id, for conditions."""
        # With the plus, SQLite evaluates the words first, whatever its statistics say; otherwise once per row.
        return sa.literal_column(f"+{self.name}.rowid") if connection.dialect.name == "sqlite" else self.key

    def surest(
        self, connection: sa.Connection, words: Sequence[str], limit: int, only: sa.ColumnElement[bool]
    ) -> list[tuple[int, float]]:
        """Return up to ``limit`` (id, certainty) of the rows that meet a condition on ``row_id``, best first by BM25.

        The certainty, from 0 to 1, is comparable between searches: the share of the words that the row contains,
        weighted by rarity, and lower if these are few or common.
        """
        counted, rows = self.counted(connection, words, MAX_COUNTED)
        ids = [row_id for row_id, _ in self.best(connection, rarest(counted, MAX_SCORED_FOR_SUREST), limit, only)]
        held = self._held(connection, words, f"IN ({', '.join(map(str, ids))})") if ids else []
        certainties = _certainties(counted, rows, held)
        return [(row_id, certainties[row_id]) for row_id in ids if row_id in certainties]

    def surest_among(
        self, connection: sa.Connection, words: Sequence[str], limit: int, ids: Collection[int], least: float
    ) -> list[tuple[int, float]]:
        """Return up to ``limit`` (id, certainty) of a few rows, best first; none if none has the ``least`` certainty.

        The ids should be close together: all rows from the first to the last are searched.
        """
        between = self._held(connection, words, "BETWEEN :first AND :last", first=min(ids), last=max(ids))
        held = [(word, row_id) for word, row_id in between if row_id in ids]
        if not held:
            return []
        counted, rows = self.counted(connection, words, MAX_COUNTED)
        certainties = _certainties(counted, rows, held)
        if max(certainties.values()) < least:
            return []
        best = self.best(connection, rarest(counted, MAX_SCORED_FOR_SUREST), limit, self.row_id(connection).in_(ids))
        return [(row_id, certainties[row_id]) for row_id, _ in best if row_id in certainties]

    def counted(self, connection: sa.Connection, words: Sequence[str], most: int) -> tuple[dict[str, int], int]:
        """Return how many rows contain each word, counting to at most ``most`` + 1, and the largest id of all rows."""
        last = f"(SELECT coalesce(max({self.columns(connection)[1].name}), 0) FROM {self.name})"
        if connection.dialect.name == "sqlite":
            query = (
                f"SELECT (SELECT count(*) FROM (SELECT 1 FROM {self.name} WHERE {self.name} MATCH word.value "
                f"LIMIT :most)), {last} FROM json_each(:words) AS word ORDER BY word.key"
            )
        else:
            query = (
                f"SELECT (SELECT count(*) FROM (SELECT 1 FROM {self.name} WHERE words @@ "
                f"plainto_tsquery('{self._configuration}', word) LIMIT :most) AS held), {last} "
                "FROM json_array_elements_text(CAST(:words AS json)) WITH ORDINALITY AS asked(word, n) ORDER BY n"
            )
        given = {"words": _as_json(connection, words), "most": most + 1}
        counts = connection.execute(sa.text(query), given).all()
        return {word: rows for word, (rows, _) in zip(words, counts, strict=True)}, counts[0][1] if counts else 0

    def _held(
        self, connection: sa.Connection, words: Sequence[str], those: str, **given: int
    ) -> Iterator[tuple[str, int]]:
        """Yield (word, id) for each word in each of the rows whose id meets a condition, with what is ``given``."""
        if connection.dialect.name == "sqlite":
            query = (
                f"SELECT word.key, {self.name}.rowid FROM json_each(:words) AS word CROSS JOIN {self.name} "
                f"WHERE {self.name} MATCH word.value AND {self.name}.rowid {those}"
            )
        else:
            query = (
                f"SELECT n - 1, {self._key} FROM {self.name}, "
                "json_array_elements_text(CAST(:words AS json)) WITH ORDINALITY AS asked(word, n) "
                f"WHERE words @@ plainto_tsquery('{self._configuration}', word) AND {self._key} {those}"
            )
        for n, row_id in connection.execute(sa.text(query), {"words": _as_json(connection, words), **given}):
            yield words[n], row_id

    def _newest(
        self, connection: sa.Connection, words: Sequence[str], limit: int, only: sa.ColumnElement[bool] | None
    ) -> list[int]:
        """Return up to ``limit`` ids of rows that contain any of ``words``, newest first."""
        table, key = self.columns(connection)
        if connection.dialect.name == "sqlite":
            holds = _match(self.name, _any_of(words))
        else:
            held = table.c.words.op("@@", is_comparison=True)
            holds = sa.or_(*(held(sa.func.plainto_tsquery(self._config, word)) for word in words))
        query = sa.select(key).where(holds) if only is None else sa.select(key).where(holds, only)
        # All at once takes half as long as one after the other.
        return list(connection.execute(query.order_by(key.desc()).limit(limit)).scalars().all())


def holds(bound: Bound, column: sa.ColumnElement[str], word: str) -> sa.ColumnElement[bool]:
    """Return the condition that a text contains a word, ignoring case."""
    # SQLite's LIKE ignores ASCII case, and lower() would double the time.
    in_capitals_or_not = column.contains if bound.dialect.name == "sqlite" else column.icontains
    return in_capitals_or_not(word, autoescape=True)


def _certainties(counted: Mapping[str, int], rows: int, held: Iterable[tuple[str, int]]) -> dict[int, float]:
    """Return the certainty of each row from the words ``held`` in it; ``counted`` as ``WordIndex.counted`` does."""
    # Lucene's idf, which is never negative.
    weights = {word: log(1 + (rows - count + 0.5) / (count + 0.5)) for word, count in counted.items()}
    total, scale = sum(weights.values()), CERTAINTY_SCALE * log(1 + rows)
    weight_of: defaultdict[int, float] = defaultdict(float)
    for word, row_id in held:
        weight_of[row_id] += weights[word]
    return {row_id: weight / total * (1 - exp(-weight / scale)) for row_id, weight in weight_of.items()}


def _quoted(word: str) -> str:
    bare = word.removesuffix("*").replace('"', '""')
    return f'"{bare}"*' if word.endswith("*") else f'"{bare}"'


def _match(name: str, any_word: str | sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    return sa.literal_column(name).op("MATCH", is_comparison=True)(any_word)


def _any_of(words: Sequence[str]) -> str:
    """Return the FTS5 query for rows that contain any of some words."""
    return " OR ".join(map(_quoted, words))


def _as_json(connection: sa.Connection, words: Sequence[str]) -> str:
    return json.dumps([_quoted(word) for word in words] if connection.dialect.name == "sqlite" else list(words))


# Chunks come stemmed in their own language, turns as they were written.
CHUNK_WORDS = WordIndex("chunk_words", "chunk_id", "simple")
TURN_WORDS = WordIndex("turn_words", "turn_id", "english")
