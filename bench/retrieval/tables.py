"""The tables of docs/retrieval-benchmarks.md."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.evidence import evidence
from bench.retrieval.leaning import FOLDS, learn, left_out, rows_of, set_left_out, table_of
from bench.retrieval.measures import hit_at_1, holds_answer, holds_spans, mean, ndcg_at_10, recall_at_5
from bench.retrieval.progress import say
from bench.retrieval.sets import Asked, Collection, Exchange
from bench.retrieval.shelf import LOOKED_AT, CollectionShelf, names_of, shelf_of
from rag_assistant.records import EVERYTHING, Passage
from rag_assistant.retrieval.follow_up import MIN_SHARE, SearchQuery, context_of, share_of
from rag_assistant.retrieval.search import SURELY_ALONE
from rag_assistant.retrieval.tokenize import content_words

Measure = Callable[[Callable[[int], list[Passage]], Asked], float]
Way = Callable[[str, int], list[Passage]]

ELSEWHERE = ("cranfield", "xquad en", "covidqa", "doc2dial", "mtrag")
MAX_ASKED_ELSEWHERE = 200
MAX_REWRITTEN = 400
MAX_ALONE = 400
# So many passages of mtrag stand beside those that its questions need: a quarter of it in all.
OTHERS = 1335


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
    "declaration": {"hit@1": by_document(hit_at_1)},
    "covidqa": {"answer in 1": answer_in(1), "answer in 5": answer_in(5), "answer in 10": answer_in(10)},
    "mtrag": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
    "cast": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
    "canard": {"R@5": by_document(recall_at_5), "nDCG@10": by_document(ndcg_at_10)},
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
    return rows_of_ways(
        collection, shelf.size, (shelf.by_plain_bm25, shelf.by_keywords, shelf.by_vectors, shelf.by_both)
    )


def rows_of_ways(collection: Collection, chunks: int, ways: Sequence[Way]) -> list[str]:
    """Return a row for each measure, with a column for each way to search for questions that stand alone."""
    measures = measures_of(collection)
    columns = [
        score(collection.questions, lambda asked, limit, way=way: way(asked.rewrite or asked.text, limit), measures)  # type: ignore[misc]
        for way in ways
    ]
    name = f"{collection.name} ({len(collection.questions):,} questions, {chunks:,} chunks)"
    return [
        f"| {name} | {measure} | " + " | ".join(f"{column[measure]:.3f}" for column in columns) + " |"
        for measure in measures
    ]


def follow_ups(collection: Collection, shelf: CollectionShelf, ways: dict[str, dict[str, SearchQuery]]) -> list[str]:
    """Return the rows of a set of conversations: last turn, ours by what was left out, a person's rewrite.

    Only questions with something before them count. Behind ours: the fold that gains least.
    """
    measures, questions = measures_of(collection), [asked for asked in collection.questions if asked.exchanges]
    found = {"last turn": values(questions, lambda asked, limit: shelf.by_both(asked.text, limit), measures)}
    for way, queries in ways.items():
        found[way] = values(questions, partial(_asked_as, shelf, queries), measures)
    if questions[0].rewrite:
        found["rewrite"] = values(questions, lambda asked, limit: shelf.by_both(asked.rewrite, limit), measures)
    rows = []
    for measure in measures:
        means = [f"{mean([one[measure] for one in of_each.values()]):.3f}" for of_each in found.values()]
        worst = _worst_fold(questions, found["last turn"], next(iter(list(found.values())[1:])), measure)
        cells = [*means[:2], f"{worst:+.3f}", *means[2:], *[""] * (4 - len(means))]
        rows.append(f"| {collection.name} ({len(questions):,}) | {measure} | {' | '.join(cells)} |")
    return rows


def _asked_as(shelf: CollectionShelf, queries: dict[str, SearchQuery], asked: Asked, limit: int) -> list[Passage]:
    return shelf.by_both(queries[asked.id], limit)


def _worst_fold(
    questions: Sequence[Asked], before: dict[str, dict[str, float]], after: dict[str, dict[str, float]], measure: str
) -> float:
    """Return by how much the fold gains that gains least."""
    gains: dict[int, list[float]] = {}
    for asked in questions:
        fold = zlib.crc32(asked.conversation.encode()) % FOLDS
        gains.setdefault(fold, []).append(after[asked.id][measure] - before[asked.id][measure])
    return min(mean(one) for one in gains.values())


def behind_another(collection: Collection, shelf: CollectionShelf, queries: dict[str, SearchQuery]) -> list[str]:
    """Return the rows of questions that stand alone, with a conversation about something else in front."""
    measures = measures_of(collection)
    alone = score(collection.questions, lambda asked, limit: shelf.by_both(asked.text, limit), measures)
    behind = score(collection.questions, lambda asked, limit: shelf.by_both(queries[asked.id], limit), measures)
    leaning = mean([queries[asked.id].is_follow_up for asked in collection.questions])
    return [
        f"| {collection.name} ({len(collection.questions):,}) | {measure} | {alone[measure]:.3f} "
        f"| {behind[measure]:.3f} | {behind[measure] - alone[measure]:+.3f} | {leaning:.1%} |"
        for measure in measures
    ]


def behind_conversations(collection: Collection, conversations: Sequence[tuple[Exchange, ...]]) -> Collection:
    """Return a collection whose questions have a conversation about something else in front, drawn at random."""
    chance = random.Random(1)
    some = chance.sample(collection.questions, min(MAX_ALONE, len(collection.questions)))
    return replace(collection, questions=[replace(one, exchanges=chance.choice(conversations)) for one in some])


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


def spared(collection: Collection, shelf: CollectionShelf) -> list[str]:
    """Return the row of how many questions are told apart without embedding their context, and what that changes."""
    told: list[tuple[bool, float]] = []
    for asked in collection.questions:
        quick, whole = (
            shelf.retriever.similarity(asked.text, asked.exchanges, EVERYTHING, least) for least in (SURELY_ALONE, 0.0)
        )
        if quick is not None and whole is not None:
            told.append((quick != whole, share_of(asked.text, context_of(asked.exchanges), whole)))
    leaning = [mean([is_spared and share >= limit for is_spared, share in told]) for limit in (0.3, 0.4, MIN_SHARE)]
    shares = [mean([is_spared for is_spared, _ in told]), *leaning]
    return [f"| {collection.name} ({len(told):,}) | " + " | ".join(f"{share:.1%}" for share in shares) + " |"]


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
    """Print the tables. What goes on is said on the screen, so that the tables may go into a file."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    mtrag, doc2dial = sets.mtrag(), sets.each(sets.doc2dial(), 3)
    some = replace(sets.pool(mtrag, OTHERS), name="mtrag pool")
    talks = [some, doc2dial, sets.cast_2021(some), sets.each(sets.canard(), 3)]
    single = [sets.judged("cranfield"), sets.judged("cacm"), sets.covidqa(), *map(sets.xquad, sets.xquad_languages())]
    conversations = [asked.exchanges[-3:] for asked in mtrag.questions if len(asked.exchanges) > 1]
    behind = [behind_conversations(one, conversations) for one in single]
    embedder = CachedMiniLM(2)
    with ExitStack() as open_shelves:
        shelves: dict[str, CollectionShelf] = {}
        for collection in [*talks, *single, mtrag]:
            say(f"Embedding and indexing {len(collection.documents):,} documents of {collection.name} ...")
            shelves[collection.name] = open_shelves.enter_context(shelf_of(collection, embedder))
        learnt = _print_conversations(talks, behind, shelves)
        _print("\n| set | measure | plain BM25 | keywords | vectors | both |\n|---|---|---|---|---|---|")
        for collection in [mtrag, doc2dial, *single]:
            _print(*halves(collection, shelves[collection.name]))
        _print("\n| follow-ups of | passages | questions | right documents | spans | tokens |")
        _print("|---|---|---|---|---|---|")
        for collection in (some, doc2dial):
            queries = learnt[collection.name]
            _print(*evidence(collection, shelves[collection.name], lambda asked, queries=queries: queries[asked.id]))  # type: ignore[misc]
        _print("\n| set | context not embedded | leaning by 0.3 | by 0.4 | by 0.5 |\n|---|---|---|---|---|")
        for collection in [*talks, *behind]:
            _print(*spared(collection, shelves[collection.name]))
        _print("\n| set | told to lean where a person added words | where not |\n|---|---|---|")
        _print(*leaning(shelves["mtrag"]))
        everything = {one.name: one for one in [mtrag, doc2dial, *single] if one.name in ELSEWHERE}
        _print("", *nothing_there({name: shelves[name] for name in ELSEWHERE}, everything))


def _print_conversations(
    talks: Sequence[Collection], behind: Sequence[Collection], shelves: dict[str, CollectionShelf]
) -> dict[str, dict[str, SearchQuery]]:
    """Learn how much the context counts, and print what the folds and the sets have that were left out.

    Returns for each set what its questions are searched with by what the other folds taught.
    """
    rows = []
    for collection in [*talks, *behind]:
        say(f"Trying shares of the context on {collection.name} ...")
        rows += rows_of(collection.name, collection.questions, shelves[collection.name], alone=collection in behind)
    say("Learning ...")
    asked_as: dict[str, dict[str, dict[str, SearchQuery]]] = {}
    for way, queries in (("fold", left_out(rows)), ("set", set_left_out(rows))):
        for one in [*talks, *behind]:
            asked_as.setdefault(one.name, {})[way] = {
                asked.id: queries.get(f"{one.name} {asked.id}")
                or shelves[one.name].retriever.follow_up(asked.text, asked.exchanges)
                for asked in one.questions
            }
    _print("\n| follow-ups of | measure | last turn | ours, fold left out | worst fold | set left out | a rewrite |")
    _print("|---|---|---|---|---|---|---|")
    for collection in talks:
        _print(*follow_ups(collection, shelves[collection.name], asked_as[collection.name]))
    _print("\n| set | measure | alone | behind another conversation | difference | told to lean |")
    _print("|---|---|---|---|---|---|")
    for collection in behind:
        _print(*behind_another(collection, shelves[collection.name], asked_as[collection.name]["fold"]))
    _print("", "Learnt from all of them, for rag_assistant/retrieval/leaning.py:", "", table_of(learn(rows)))
    return {name: ways["fold"] for name, ways in asked_as.items()}


def _print(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)
