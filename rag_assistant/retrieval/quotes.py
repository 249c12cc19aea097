"""Choose what to quote from passages in answer to a question: up to three sentences, or a whole unit around them.

A sentence's score is the unweighted sum of three values between 0 and 1: its cosine with the question, the share of the
question's words in it (rare ones count more), and its passage's score relative to the best one. A part of its better
neighbour's score is added: the sentence after one that names a thing says more about it. So is a bonus for a value of
the requested kind; titles, letterheads and footnotes rank last. For a follow-up, the context's words count as well, as
much as in the search. bench/retrieval/README.md has the results, and the constants were chosen there.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby
from math import log1p

from msgspec import Struct
from msgspec.structs import replace

from rag_assistant.records import Source, lead_of
from rag_assistant.retrieval.chunking import SEPARATOR as HEADING_SEPARATOR
from rag_assistant.retrieval.follow_up import PRONOUNS, SearchQuery
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.sentences import Kind, Sentence, is_in_code, sentences_of
from rag_assistant.retrieval.table_answers import query_for, unexplained
from rag_assistant.retrieval.table_query import QueryTooLarge, TableAnswer, TableQuery, parsed, run
from rag_assistant.retrieval.table_words import POINTS_BACK, asks_for_rows
from rag_assistant.retrieval.tables import Table, Tables, headings_above, lists_of, rows_of
from rag_assistant.retrieval.terms import stems
from rag_assistant.retrieval.tokenize import (
    FORMS,
    content_stems,
    content_words,
    query_words,
    search_words,
    stem,
    words_with_parts,
)
from rag_assistant.retrieval.value_kinds import asked_kind, has_value

MAX_SENTENCES = 3
# How far below the best one another quoted sentence may score.
MARGIN = 0.5
NEIGHBOUR_WEIGHT = 0.2
KIND_BONUS = 0.3
TITLE_PENALTY = 1.0
# Sentences with fewer words are quoted with the next one.
MIN_WORDS = 10
# How many sentences are embedded, those with the most of the question's words: 3 to 7 ms of CPU each.
MAX_EMBEDDED = 8
# Whole units are quoted up to this many rows, lines or items, and characters; of larger ones, the best parts.
MAX_ROWS = 12
MAX_UNIT_CHARS = 1_200
# How many rows are listed if only rows are requested.
MAX_ROWS_LISTED = 50
# What a model gets of a table that it is to query: rows, values of a column, characters of a line.
ROWS_DESCRIBED = 3
MAX_VALUES = 12
MAX_LINE_CHARS = 600
# How far around a passage its unit is searched for.
AROUND_CHARS = 3_000
# How much of a document is read for that.
MAX_TEXT_CHARS = 1_000_000

SEVERAL_TABLES = "Several tables fit this question ({parts}), so nothing was computed."
AND = re.compile(r",? \b(?:and|und|et|y|e|en|och|og)\b ", re.IGNORECASE)

_Place = tuple[int, int]
# Returns the similarity of each text to a question, 0 to 1.
Compare = Callable[[SearchQuery, Sequence[str]], Sequence[float]]


class Quote(Struct, frozen=True):
    """Adjacent sentences of a source, in order; ``n`` is the source's number.

    ``note`` says how much of a table they are, if not all of it. ``computed`` is how many rows or items the answer was
    computed from, 0 if it wasn't.
    """

    n: int
    sentences: tuple[Sentence, ...]
    note: str = ""
    computed: int = 0


class _Candidate(Struct, frozen=True, eq=False):
    """What is quoted together: a sentence or a small unit, with its position among the sentences of its source."""

    place: _Place
    sentences: tuple[Sentence, ...]
    source: Source
    passage_score: float

    @property
    def text(self) -> str:
        """The sentences after their context: on structured text that finds more (the guide)."""
        first = self.sentences[0]
        heading = "" if first.heading == self._title else first.heading
        lead = "" if first.is_section else first.lead
        return "\n".join(filter(None, (heading, lead, *(one.text for one in self.sentences))))

    @property
    def words(self) -> str:
        """The same after the name and title of its document, whose words need not be in each sentence."""
        return f"{self.source.document.rpartition('.')[0].replace('_', ' ')}\n{self._title}\n{self.text}"

    @property
    def _title(self) -> str:
        return (self.source.section or "").split(HEADING_SEPARATOR)[0]


def choose_quotes(
    query: SearchQuery, sources: Sequence[Source], compare: Compare | None, texts: Mapping[int, str] | None = None
) -> list[Quote]:
    """Return what to quote from the sources, best first, each in reading order.

    ``texts`` are those of their documents, in which a unit may continue. If ``compare`` is ``None``, because vectors
    say nothing, words decide.
    """
    texts = texts or {}
    answers = from_tables(query, sources, texts)
    if len(answers) == 1:
        return answers
    scores = _scores(query, sources, compare, texts)
    if not (candidates := list(scores)):
        return []
    best_first = sorted(candidates, key=lambda one: -scores[one])[:MAX_SENTENCES]
    chosen = [one for one in best_first if scores[one] >= scores[best_first[0]] - MARGIN]
    chosen += _of_other_half(query.text, chosen, scores)
    words = sum(len(search_words(one.text)) for each in chosen for one in each.sentences)
    if words < MIN_WORDS and not chosen[-1].sentences[0].unit:
        n, position = chosen[-1].place
        chosen += [one for one in candidates if one.place == (n, position + 1) and one not in chosen]
    quotes = _side_by_side(chosen, texts, content_stems(query.text))
    if answers:
        documents = {one.document: None for one in sources if any(one.n == answer.n for answer in answers)}
        sentence = SEVERAL_TABLES.format(parts=", ".join(documents))
        quotes[0] = replace(quotes[0], note=f"{quotes[0].note}\n{sentence}".lstrip())
    return quotes


def _of_other_half(question: str, chosen: Sequence[_Candidate], scores: Mapping[_Candidate, float]) -> list[_Candidate]:
    """Return the best sentence for each part of a question that no chosen one answers: "the rent and the keys"."""
    parts = [frozenset(map(stem, query_words(part))) for part in AND.split(question)]
    quoted = frozenset().union(*(content_stems(one.text) for one in chosen))
    others = {one: content_stems(one.text) for one in scores if one not in chosen}
    missing = [words for words in parts if quoted.isdisjoint(words)] if all(parts) and others else []
    best = [max(others, key=lambda one: (len(words & others[one]), scores[one])) for words in missing]
    return [one for one, words in zip(best, missing, strict=True) if words & others[one]]


class SourceTable(Struct, frozen=True):
    """A table or list in a source's document; ``n`` is the source's number, ``text`` its document's."""

    n: int
    document: str
    text: str
    table: Table

    @property
    def described(self) -> str:
        """Its columns, some rows, and the values of columns that have few, for whoever is to query it."""
        head, rows = parsed(self.text, self.table)
        lines = [" | ".join(row) for row in (head, *rows[:ROWS_DESCRIBED])]
        for name, column in zip(head, zip(*rows, strict=True), strict=True):
            values = sorted({*column} - {""})
            if len(rows) > ROWS_DESCRIBED and len(values) <= MAX_VALUES:
                lines.append(f"Values of {name}: {'; '.join(values)}")
        title = ": ".join(filter(None, (self.document, *dict.fromkeys(headings_above(self.text, self.table.start)))))
        title += f", {len(rows)} {'items' if self.table.is_list else 'rows'}"
        return "\n".join([title, *(line[:MAX_LINE_CHARS] for line in lines)])

    def queried(self, query: TableQuery) -> Quote | None:
        """Return the result of a query, ``None`` if it can't be run or finds nothing."""
        answer = run(query, self.text, self.table)
        most = MAX_ROWS_LISTED if query.operation == "list" else MAX_ROWS
        return None if answer is None else self.quote(answer, most)

    def unexplained(self, query: TableQuery, question: str) -> list[str]:
        """Return the words of a question that a query doesn't explain."""
        return unexplained(query, question, self.text, self.table, self.document)

    def quote(self, answer: TableAnswer, most: int) -> Quote:
        """Return an answer with up to ``most`` of its rows."""
        kind: Kind = "list" if self.table.is_list else "row"
        rows = [Sentence(row, lead=self.table.head, kind=kind) for row in rows_of(self.text, self.table)]
        more = f"\nThe first {most} are shown." if len(answer.rows) > most else ""
        return Quote(self.n, tuple(rows[n] for n in answer.rows[:most]), f"{answer.note}{more}", len(rows))


def tables_in(sources: Sequence[Source], texts: Mapping[int, str]) -> Iterator[SourceTable]:
    """Yield the tables and lists in the sources, each once."""
    seen: set[tuple[int, int]] = set()
    for source in sources:
        text = texts.get(source.document_id, "")
        for table in chain(Tables(text).all, lists_of(text)):
            # What ends where the text was cut may continue.
            is_in = table.start < source.end and source.start < table.end < MAX_TEXT_CHARS
            if is_in and (source.document_id, table.start) not in seen:
                seen.add((source.document_id, table.start))
                yield SourceTable(source.n, source.document, text, table)


def from_tables(query: SearchQuery, sources: Sequence[Source], texts: Mapping[int, str]) -> list[Quote]:
    """Return the answer of the table or list in the sources that explains a question entirely.

    Of several, it is the one that the question names with most words. If it names two alike, both answers are
    returned, and neither is the answer. A question that asks for no rows ("When is the party?") is one for the best
    source. After another question, one that doesn't say of what it asks ("How many in Perth?") is one for no table.
    """
    answers: list[tuple[int, Quote]] = []
    if query.before and POINTS_BACK.match(query.text):
        return []
    for one in tables_in(sources, texts):
        table_query, words = query_for(query.text, one.text, one.table, one.document)
        with suppress(QueryTooLarge):
            if table_query and (quote := one.queried(table_query)):
                answers.append((words, quote))
    most = max((words for words, _ in answers), default=0)
    best = [quote for words, quote in answers if words == most]
    return best if asks_for_rows(query.text) or any(quote.n == sources[0].n for quote in best) else []


def nearest_range(query: SearchQuery, source: Source, compare: Compare | None) -> tuple[int, int] | None:
    """Return the range of the sentence nearest to a question in a source's text; ``None`` if none stands out."""
    scores = _scores(query, [source], compare, {}, by_sentence=True)
    if len(set(scores.values())) < 2:
        return None
    (best,) = max(scores, key=lambda one: scores[one]).sentences
    return best.start, best.start + len(source.text[best.start : best.end].rstrip())


def _scores(
    query: SearchQuery,
    sources: Sequence[Source],
    compare: Compare | None,
    texts: Mapping[int, str],
    *,
    by_sentence: bool = False,
) -> dict[_Candidate, float]:
    """Return the score of each sentence of the sources, or each small unit of sentences."""
    candidates = _candidates(sources, texts, by_sentence)
    if query.before and not PRONOUNS.isdisjoint(search_words(query.text)):  # "It" is no row of which nobody spoke.
        named = {word for word in content_stems(f"{query.before} {query.context}") if not word.isdigit()}
        candidates = [one for one in candidates if one.sentences[0].kind != "row" or named & content_stems(one.words)]
    similarities = _similarities(query, candidates, compare) if candidates else {}
    kind = asked_kind(query.text)
    return {one: _score(one, similarities) + _by_kind(one, kind, query.text) for one in candidates}


def _by_kind(one: _Candidate, kind: re.Pattern[str] | None, question: str) -> float:
    """Return the bonus of a sentence with the requested kind of value, or the penalty for titles and the like."""
    if all(each.kind in ("title", "note") or each.text.endswith("?") for each in one.sentences):
        return -TITLE_PENALTY
    has_one = kind is not None and any(has_value(kind, each.text, question) for each in one.sentences)
    words = content_stems(question)
    has_key = any((key := content_stems(each.key)) and key <= words for each in one.sentences)
    return KIND_BONUS * (has_one + has_key)


def _candidates(sources: Sequence[Source], texts: Mapping[int, str], by_sentence: bool) -> list[_Candidate]:
    best = max((source.score for source in sources), default=0.0) or 1.0
    candidates: dict[object, _Candidate] = {}
    for source in sources:
        position = 0
        for _, below in groupby(_sentences(source, texts), key=lambda sentence: sentence.heading):
            for sentences in ((one,) for one in below) if by_sentence else _whole(list(below)):
                key = (sentences[0].heading, sentences[0].text)
                candidates.setdefault(key, _Candidate((source.n, position), sentences, source, source.score / best))
                position += 1
            position += 1  # Sentences on both sides of a heading aren't adjacent.
    return list(candidates.values())


def _whole(sentences: Sequence[Sentence]) -> Iterator[tuple[Sentence, ...]]:
    """Yield sentences with the rest of their unit, or alone if that is too long."""
    for unit, group in groupby(sentences, key=lambda one: one.unit):
        whole = tuple(group)
        is_small = len(whole) <= MAX_ROWS and sum(len(one.text) for one in whole) <= MAX_UNIT_CHARS
        yield from [whole] if unit and is_small else ((one,) for one in whole)


def _sentences(source: Source, texts: Mapping[int, str]) -> Iterable[Sentence]:
    """Return the sentences of a source with the neighbours in the same units."""
    text = texts.get(source.document_id, "")
    own = source.text.removeprefix(lead_of(source.text, source.start, source.end))
    if text[source.start : source.end] != own:
        return sentences_of(source.text)
    begin, end = text.rfind("\n", 0, max(0, source.start - AROUND_CHARS)) + 1, source.end + AROUND_CHARS
    end = max(end, text.find("\n", end, end + AROUND_CHARS))  # No row is cut.
    table = Tables(text).at(begin)
    head = f"{table.head.rstrip()}\n" if table is not None and begin >= table.rows else ""
    around = sentences_of(head + text[begin:end], begins_in_code=is_in_code(text, begin))
    begin -= len(head)
    within = [begin + one.start < source.end and begin + one.end > source.start for one in around]
    units = {one.unit for one, is_within in zip(around, within, strict=True) if is_within and one.unit}
    return [
        replace(one, start=begin + one.start, end=begin + one.end)
        for one, is_within in zip(around, within, strict=True)
        if is_within or one.unit in units
    ]


def _similarities(query: SearchQuery, candidates: Sequence[_Candidate], compare: Compare | None) -> dict[_Place, float]:
    """Return the similarity of each sentence to a question: by words, and for the best of these also by cosine."""
    texts = [one.words for one in candidates]
    # A follow-up without content words ("And when?") is compared by its context.
    own_text = query.context if query.is_follow_up and not content_words(query.text) else query.text
    shares = zip(candidates, _word_shares(own_text, texts), _word_shares(query.context, texts), strict=True)
    similarities = {one.place: own + query.share * context for one, own, context in shares}
    if compare is not None:
        best_first = sorted(candidates, key=lambda one: -similarities[one.place] - one.passage_score)[:MAX_EMBEDDED]
        cosines = compare(SearchQuery(own_text), [one.text for one in best_first])
        for one, similarity in zip(best_first, cosines, strict=True):
            similarities[one.place] += max(0.0, similarity)
    return similarities


def _word_shares(question: str, texts: Sequence[str]) -> list[float]:
    """Return each text's share of those words of the question that any text has; rare ones weigh more."""
    words_of_texts = [words_with_parts(text) for text in texts]
    language = language_of(set().union(*words_of_texts))
    vocabularies = [frozenset(stems(words, language)) for words in words_of_texts]
    frequency = Counter(word for vocabulary in vocabularies for word in vocabulary)
    # As BM25 weighs them.
    weights = {
        word: log1p((len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
        for word in stems([form for one in query_words(question) for form in FORMS.get(one, (one,))], language)
        if word in frequency
    }
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in weights if word in vocabulary) / total for vocabulary in vocabularies]


def _score(one: _Candidate, similarities: Mapping[_Place, float]) -> float:
    n, position = one.place
    neighbour = max(similarities.get((n, position + step), 0.0) for step in (-1, 1))
    return similarities[one.place] + one.passage_score + NEIGHBOUR_WEIGHT * neighbour


def _side_by_side(chosen: Sequence[_Candidate], texts: Mapping[int, str], words: Collection[str]) -> list[Quote]:
    """Return the chosen sentences, best first, joining consecutive ones of a source into one quote."""

    # Of rows that end with figures, as in an invoice, the one with most words of the question comes first.
    def asked_first(run: Sequence[_Candidate]) -> tuple[Sentence, ...]:
        rows = [one for each in run for one in each.sentences]
        if {one.kind for one in rows} == {"figures"}:
            best = max(rows, key=lambda one: len(content_stems(one.text).intersection(words)))
            rows.sort(key=lambda one: one is not best)
        return tuple(rows)

    rank = {one.place: rank for rank, one in enumerate(chosen)}
    in_order = sorted(chosen, key=lambda one: one.place)
    # For consecutive sentences, position and index grow equally.
    runs = groupby(enumerate(in_order), key=lambda pair: (pair[1].place[0], pair[1].place[1] - pair[0]))
    quotes = [(n, [one for _, one in run]) for (n, _), run in runs]
    best_first = sorted(quotes, key=lambda quote: min(rank[one.place] for one in quote[1]))
    return [Quote(n, asked_first(run), _how_many(run, texts)) for n, run in best_first]


def _how_many(run: Sequence[_Candidate], texts: Mapping[int, str]) -> str:
    """Say how many rows of a table are quoted, and that they were only found."""
    text = texts.get(run[0].source.document_id, "")
    quoted = [one for each in run for one in each.sentences if one.kind == "row"]
    table = Tables(text).at(quoted[0].start) if quoted else None
    if table is None or table.end >= MAX_TEXT_CHARS:  # What ends where the text was cut may continue.
        return ""
    rows = text.count("\n", table.rows, table.end) + 1
    return f"{len(quoted)} of {rows} rows, found by their words. Nothing was computed."
