"""The tables of docs/retrieval-benchmarks.md."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.evidence import evidence
from bench.retrieval.measures import hit_at_1, holds_answer, holds_spans, mean, ndcg_at_10, recall_at_5
from bench.retrieval.sets import Asked, Collection, Exchange
from bench.retrieval.shelf import LOOKED_AT, CollectionShelf, names_of, shelf_of
from rag_assistant.document_records import Passage
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.tokenize import content_words

Measure = Callable[[Callable[[int], list[Passage]], Asked], float]

ELSEWHERE = ("cranfield", "xquad en", "covidqa", "doc2dial", "mtrag")
MAX_ASKED_ELSEWHERE = 200
MAX_REWRITTEN = 400
EACH_OF_DOC2DIAL = 3  # A third of its questions tells the same in a third of the time.


def by_document(measure: Callable[[Sequence[str], dict[str, int]], float]) -> Measure:
    """Return a measure over the documents that a search finds."""
    return lambda search, asked: measure(names_of(search(LOOKED_AT)), dict(asked.relevant))


def answer_in(limit: int) -> Measure:
    """Return the measure of whether the first ``limit`` chunks hold the answer."""
    return lambda search, asked: holds_answer(search(limit), asked)


def spans_in_five(search: Callable[[int], list[Passage]], asked: Asked) -> float:
    """Return whether the first five chunks cover the gold spans."""
    return holds_spans(search(5), asked)


STAND_ALONE: dict[str, dict[str, Measure]] = {
    "cranfield": {"nDCG@10": by_document(ndcg_at_10)},
    "cacm": {"nDCG@10": by_document(ndcg_at_10)},
    "xquad": {"hit@1": by_document(hit_at_1)},
    "covidqa": {"answer in 1": answer_in(1), "answer in 5": answer_in(5), "answer in 10": answer_in(10)},
    "mtrag": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
    "doc2dial": {"document R@5": by_document(recall_at_5), "spans in 5": spans_in_five},
}


def measures_of(collection: Collection) -> dict[str, Measure]:
    """Return the measures of a collection by name."""
    return STAND_ALONE[collection.name.split(" ")[0]]


def values(
    questions: Sequence[Asked], search: Callable[[Asked, int], list[Passage]], measures: dict[str, Measure]
) -> dict[str, dict[str, float]]:
    """Return each measure for each question, by the question's id; each search is made once."""
    result: dict[str, dict[str, float]] = {}
    for asked in questions:
        once = cache(partial(search, asked))
        result[asked.id] = {name: measure(once, asked) for name, measure in measures.items()}
    return result


def score(
    questions: Sequence[Asked], search: Callable[[Asked, int], list[Passage]], measures: dict[str, Measure]
) -> dict[str, float]:
    """Return the mean of each measure over some questions."""
    of_each = values(questions, search, measures)
    return {name: mean([one[name] for one in of_each.values()]) for name in measures}


def halves(collection: Collection, shelf: CollectionShelf) -> list[str]:
    """Return the rows of the main table: plain BM25, keywords, vectors and both, on questions that stand alone."""
    measures = measures_of(collection)
    ways = (shelf.by_plain_bm25, shelf.by_keywords, shelf.by_vectors, shelf.by_both)
    columns = [
        score(collection.questions, lambda asked, limit, way=way: way(asked.rewrite or asked.text, limit), measures)  # type: ignore[misc]
        for way in ways
    ]
    name = f"{collection.name} ({len(collection.questions):,} questions, {shelf.size:,} chunks)"
    return [
        f"| {name} | {measure} | " + " | ".join(f"{column[measure]:.3f}" for column in columns) + " |"
        for measure in measures
    ]


def follow_ups(collection: Collection, shelf: CollectionShelf) -> list[str]:
    """Return the rows of the conversations' table: last turn, ours, a person's rewrite, by turn."""
    measures = measures_of(collection)
    ways: dict[str, Callable[[Asked, int], list[Passage]]] = {
        "last turn": lambda asked, limit: shelf.by_both(asked.text, limit),
        "ours": lambda asked, limit: shelf.by_both(shelf.retriever.follow_up(asked.text, asked.exchanges), limit),
    }
    if collection.questions[0].rewrite:
        ways["rewrite"] = lambda asked, limit: shelf.by_both(asked.rewrite, limit)
    found = {way: values(collection.questions, search, measures) for way, search in ways.items()}
    rows = []
    for name, questions in by_turn(collection.questions).items():
        for measure in measures:
            means = [mean([of_each[one.id][measure] for one in questions]) for of_each in found.values()]
            cells = [f"{value:.3f}" for value in means] + [""] * (3 - len(means))
            rows.append(f"| {collection.name}, {name} ({len(questions):,}) | {measure} | {' | '.join(cells)} |")
    return rows


def by_turn(questions: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Return questions by how much was said before them."""
    parts: dict[str, list[Asked]] = {"all": list(questions)}
    for asked in questions:
        number = len(asked.exchanges) + 1
        parts.setdefault(
            f"turn {number}" if number < 4 else "turn 4 to 6" if number < 7 else "turn 7 and later", []
        ).append(asked)
    return dict(sorted(parts.items()))


def behind_another(
    collection: Collection, shelf: CollectionShelf, conversations: Sequence[tuple[Exchange, ...]]
) -> list[str]:
    """Return the rows of questions that stand alone, with a conversation about something else in front."""
    chance = random.Random(1)
    before = {asked.id: chance.choice(conversations) for asked in collection.questions}
    queries = {asked.id: shelf.retriever.follow_up(asked.text, before[asked.id]) for asked in collection.questions}
    leaning = mean([query.is_follow_up for query in queries.values()])
    measures = measures_of(collection)
    alone = score(collection.questions, lambda asked, limit: shelf.by_both(asked.text, limit), measures)
    behind = score(collection.questions, lambda asked, limit: shelf.by_both(queries[asked.id], limit), measures)
    return [
        f"| {collection.name} | {measure} | {alone[measure]:.3f} | {behind[measure]:.3f} "
        f"| {behind[measure] - alone[measure]:+.3f} | {leaning:.0%} |"
        for measure in measures
    ]


def nothing_there(shelves: dict[str, CollectionShelf], collections: dict[str, Collection]) -> list[str]:
    """Return the rows of how often nothing is found: by questions of one set (row) in another (column)."""
    rows = [f"| questions of | {' | '.join(f'in {name}' for name in shelves)} |", "|---|" + "---|" * len(shelves)]
    for name, collection in collections.items():
        chance = random.Random(2)
        questions = [asked for asked in collection.questions if asked.rewrite or not asked.exchanges]
        some = chance.sample(questions, min(MAX_ASKED_ELSEWHERE, len(questions)))
        shares = [mean([not shelf.by_both(one.rewrite or one.text, 1) for one in some]) for shelf in shelves.values()]
        rows.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return rows


def leaning(shelf: CollectionShelf) -> list[str]:
    """Return the rows of whether a question is told to lean where a person had to add words to it."""
    chance = random.Random(3)
    rows = []
    for name, asked in rewritten().items():
        some = chance.sample(asked, min(MAX_REWRITTEN, len(asked)))
        added = {True: [0, 0], False: [0, 0]}
        for question, rewrite, exchanges in some:
            query: SearchQuery = shelf.retriever.follow_up(question, exchanges)
            kind = bool(set(content_words(rewrite)) - set(content_words(question)))
            added[kind][0] += query.is_follow_up
            added[kind][1] += 1
        cells = [f"{leans / count:.0%} of {count}" for leans, count in (added[True], added[False])]
        rows.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return rows


def rewritten() -> dict[str, list[tuple[str, str, tuple[Exchange, ...]]]]:
    """Return the questions of cast and canard with a person's rewrite and the exchanges before them."""
    cast20 = [
        (row["utterance"], row["rewrite"], tuple((asked, "") for asked in row["history_user"]))
        for row in sets.lines("cast/cast2020_queries.jsonl")
        if row["history_user"]
    ]
    cast21 = [
        (row["utterance"], row["rewrite"], sets.exchanges_of(row["history"]))
        for row in sets.lines("cast/cast2021_queries.jsonl")
        if row["history"]
    ]
    canard = []
    for row in sets.lines("canard/dev.jsonl"):
        said = row["history"][2:]
        if said:
            canard.append((row["utterance"], row["rewrite"], tuple(zip(said[::2], said[1::2], strict=False))))
    return {"cast 2020": cast20, "cast 2021": cast21, "canard": canard}


def main() -> None:
    """Print the tables: of all sets, or of those that the command line names."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    doc2dial = sets.doc2dial()
    talks = [sets.mtrag(), replace(doc2dial, questions=doc2dial.questions[::EACH_OF_DOC2DIAL])]
    single = [sets.judged("cranfield"), sets.judged("cacm"), sets.covidqa(), *map(sets.xquad, sets.xquad_languages())]
    conversations = [asked.exchanges[-3:] for asked in talks[0].questions if len(asked.exchanges) > 1]
    all_of = {"doc2dial": doc2dial}
    embedder = CachedMiniLM(2)
    wanted = sys.argv[1:]
    if wanted:
        talks, single = ([one for one in some if one.name in wanted] for some in (talks, single))
    with ExitStack() as open_shelves:
        shelves: dict[str, CollectionShelf] = {}
        _print("| set | measure | plain BM25 | keywords | vectors | both |\n|---|---|---|---|---|---|")
        for collection in [*talks, *single]:
            shelves[collection.name] = open_shelves.enter_context(shelf_of(collection, embedder))
            _print(*halves(collection, shelves[collection.name]))
        _print("\n| questions of | measure | last turn | ours | a person's rewrite |\n|---|---|---|---|---|")
        for collection in talks:
            _print(*follow_ups(collection, shelves[collection.name]))
        _print(
            "\n| follow-ups of | passages | questions | right documents | spans | tokens |\n|---|---|---|---|---|---|"
        )
        for collection in talks:
            _print(*evidence(all_of.get(collection.name, collection), shelves[collection.name]))
        _print("\n| set | measure | alone | behind another conversation | difference | told to lean |")
        _print("|---|---|---|---|---|---|")
        for collection in single:
            _print(*behind_another(collection, shelves[collection.name], conversations))
        if not wanted:
            _print("\n| set | told to lean where a person added words | where not |\n|---|---|---|")
            _print(*leaning(shelves["mtrag"]))
            everything = {one.name: one for one in [*talks, *single] if one.name in ELSEWHERE}
            _print("", *nothing_there({name: shelves[name] for name in ELSEWHERE}, everything))


def _print(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)
