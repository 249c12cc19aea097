"""The tables of bench/retrieval/README.md."""

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from bench.retrieval import conversations, sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.evidence import evidence
from bench.retrieval.measures import mean
from bench.retrieval.progress import say
from bench.retrieval.scores import measures_of, score
from bench.retrieval.sets import Collection, Exchange
from bench.retrieval.shelf import CollectionShelf, shelf_of
from rag_assistant.records import Passage
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.tokenize import content_words

Way = Callable[[str, int], list[Passage]]

ELSEWHERE = ("cranfield", "xquad en", "covidqa", "doc2dial", "mtrag")
MAX_ASKED_ELSEWHERE = 200
MAX_REWRITTEN = 400
# How many passages of mtrag there are besides those that its questions need: a quarter of it in all.
OTHERS = 1335


def halves(collection: Collection, shelf: CollectionShelf) -> list[str]:
    """Return the rows of the main table: plain BM25, keywords, vectors and both, on standalone questions."""
    return rows_of_ways(
        collection, shelf.size, (shelf.by_plain_bm25, shelf.by_keywords, shelf.by_vectors, shelf.by_both)
    )


def rows_of_ways(collection: Collection, chunks: int, ways: Sequence[Way]) -> list[str]:
    """Return a row for each measure, with a column for each way to search for standalone questions."""
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
    """Return the rows of whether a question is recognised as a follow-up where a person had to add words to it."""
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
    """Return the questions of cast and canard with a human rewrite and the exchanges before them."""
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
    """Print the tables; with the argument "conversations" only those that depend on learned weights.

    Progress is shown on the screen, so that the tables may go into a file.
    """
    whole = sys.argv[1:] != ["conversations"]
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    mtrag, doc2dial = sets.mtrag(), sets.each(sets.doc2dial(), 3)
    some = replace(sets.pool(mtrag, OTHERS), name="mtrag pool")
    talks = [some, doc2dial, sets.cast_2021(some), sets.each(sets.canard(), 3)]
    single = [sets.judged("cranfield"), sets.judged("cacm"), sets.covidqa(), *map(sets.xquad, sets.xquad_languages())]
    said = [asked.exchanges[-3:] for asked in mtrag.questions if len(asked.exchanges) > 1]
    behind = [conversations.behind_conversations(one, said) for one in single]
    embedder = CachedMiniLM()
    with ExitStack() as open_shelves:
        shelves: dict[str, CollectionShelf] = {}
        for collection in [*talks, *single, *([mtrag] if whole else [])]:
            say(f"Embedding and indexing {len(collection.documents):,} documents of {collection.name} ...")
            shelves[collection.name] = open_shelves.enter_context(shelf_of(collection, embedder))
        learnt = conversations.print_what_is_learnt(talks, behind, shelves)
        _print("\n| follow-ups of | passages | questions | right documents | spans | tokens |")
        _print("|---|---|---|---|---|---|")
        for collection in (some, doc2dial):
            queries = learnt[collection.name]
            _print(*evidence(collection, shelves[collection.name], lambda asked, queries=queries: queries[asked.id]))  # type: ignore[misc]
        _print("\n| set | measure | alone | current weights | difference | follow-up |\n|---|---|---|---|---|---|")
        for collection in [*talks, *behind]:
            _print(*conversations.in_force(collection, shelves[collection.name]))
        if not whole:
            return
        _print("\n| set | measure | plain BM25 | keywords | vectors | both |\n|---|---|---|---|---|---|")
        for collection in [mtrag, doc2dial, *single]:
            _print(*halves(collection, shelves[collection.name]))
        _print("\n| set | treated as follow-up where a person added words | where not |\n|---|---|---|")
        _print(*leaning(shelves["mtrag"]))
        everything = {one.name: one for one in [mtrag, doc2dial, *single] if one.name in ELSEWHERE}
        _print("", *nothing_there({name: shelves[name] for name in ELSEWHERE}, everything))


def _print(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)
