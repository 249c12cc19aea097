"""The words of chunks in an in-memory tantivy index: Lucene's BM25, with k1 = 1.2 and b = 0.75.

It examines a fraction of the chunks that contain a word, since it has score bounds for blocks of them (Ding and Suel
2011, "Faster top-k document retrieval using block-max indexes"). FTS5 ranks every one of them.
"""

from collections.abc import Collection, Iterable, Sequence
from math import log
from typing import Literal

from tantivy import (
    Document,
    FieldType,
    Filter,
    Index,
    Occur,
    Query,
    SchemaBuilder,
    Searcher,
    TextAnalyzerBuilder,
    Tokenizer,
)

from rag_assistant.retrieval.hybrid import Hit

# FTS5's, for a word in half of all rows and more.
MIN_IDF = 1e-6
# Names have spelling variants: Lindqvist, Lindquist. Such a hit gets a part of the rarest word's weight. So does one in
# a compound (Jahresurlaub): searching these in the words of more chunks takes tens of milliseconds.
MIN_FUZZY_CHARS, MIN_TWO_WRONG_CHARS, FUZZY_SHARE, MAX_FOR_PARTS = 6, 10, 0.4, 5_000
# Uncommitted data. tantivy's minimum, 15 MB, makes more segments, whose merging takes a quarter of the CPU of a start.
WRITER_BYTES = 60_000_000

# As in FTS5, accents are ignored on Latin letters.
ANALYZER = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.ascii_fold()).build()
SCHEMA = (
    SchemaBuilder()
    .add_unsigned_field("id", indexed=True, fast=True)
    .add_text_field("words", tokenizer_name="words", index_option="freq")
    .build()
)

# How a word matches: as it is, an unknown one also alike, or also as part of another.
Match = Literal["exact", "alike", "parts"]


class TantivyWords:
    """Finds chunks by words, best first, as of the last ``change``. Only one thread changes it."""

    def __init__(self) -> None:
        self._index = Index(SCHEMA)
        self._index.register_tokenizer("words", ANALYZER)
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return self._searcher.num_docs

    def change(self, ranges: Iterable[tuple[int, int, Iterable[tuple[int, str]]]]) -> None:
        """Replace the chunks of ranges of ids, ends included, by (id, words). In overlaps, the later counts."""
        # Kept open, it would hold its memory and two threads.
        writer = self._index.writer(WRITER_BYTES, num_threads=1)
        for first, last, words in ranges:
            writer.delete_documents_by_query(Query.range_query(SCHEMA, "id", FieldType.Unsigned, first, last))
            for chunk_id, text in words:
                document = Document()
                document.add_unsigned("id", chunk_id)
                document.add_text("words", _separated(text))
                writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def best(
        self, words: Sequence[str], limit: int, among: Collection[int] | None = None, how: Match = "alike"
    ) -> list[Hit]:
        """Return up to ``limit`` ids of chunks that contain any of ``words``, with their score, best first.

        An unknown word or id matches those that differ in one letter, long ones in two, and with "parts" compounds of
        it, unless "exact". With ``among``, a small set, only of these.
        """
        searcher = self._searcher
        terms = dict.fromkeys(ANALYZER.analyze(_separated(" ".join(words))))
        query = Query.boolean_query([(Occur.Should, _weighed(searcher, term, how)) for term in terms])
        if among is not None:
            these = Query.const_score_query(Query.term_set_query(SCHEMA, "id", sorted(among)), 0.0)
            query = Query.boolean_query([(Occur.Must, these), (Occur.Must, query)])
        hits = searcher.search(query, limit, count=False).hits
        ids = searcher.fast_field_values("id", [address for _, address in hits])
        return [(int(chunk_id or 0), score) for chunk_id, (score, _) in zip(ids, hits, strict=True)]


def _separated(words: str) -> str:
    """Return words as in FTS5, where one with an apostrophe is two. On 300,000 chunks, ``translate`` takes 9 s more."""
    return words.replace("'", " ").replace("\u2019", " ")


def _weighed(searcher: Searcher, term: str, how: Match) -> Query:
    """Return the query for a term, weighted as in FTS5: with Lucene's weights, cranfield's passages rank lower."""
    rows = searcher.doc_freq("words", term)  # Some of them may be deleted.
    if not (rows or how == "exact" or term.isdigit()) and len(term) >= MIN_FUZZY_CHARS:
        alike = [Query.fuzzy_term_query(SCHEMA, "words", term, 1 if len(term) < MIN_TWO_WRONG_CHARS else 2)]
        if how == "parts" and searcher.num_docs <= MAX_FOR_PARTS and term.isalpha():
            alike.append(Query.regex_query(SCHEMA, "words", f".*{term}.*"))
        weight = FUZZY_SHARE * log(1 + searcher.num_docs)
        return Query.boost_query(Query.disjunction_max_query(alike), weight)
    ratio = (max(searcher.num_docs, rows) - rows + 0.5) / (rows + 0.5)
    weight = max(log(ratio), MIN_IDF) / log(1 + ratio)
    return Query.boost_query(Query.term_query(SCHEMA, "words", term, "freq"), weight)
