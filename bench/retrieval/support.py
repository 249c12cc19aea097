"""Does the product say when the documents have no answer? Questions of one set, asked in libraries of others, of
several sizes.

``python -m bench.retrieval.support`` prints for each library the results of its own questions and of other sets'. The
limits were tuned in the libraries of xquad and of covidqa.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import CollectionShelf, shelf_of
from rag_assistant.conversations.model_profile import PASSAGES
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.support import Support

QUESTIONS = 120
OTHERS_OF_MTRAG = 2_200
ANSWERS: tuple[Support, ...] = ("found", "near", "nothing_found")


def main() -> None:
    """Print a row for each library, with the questions that it answers and those it does not."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    xquad, covidqa, doc2dial = sets.xquad("en"), sets.covidqa(), sets.doc2dial()
    mtrag = sets.pool(sets.mtrag(), OTHERS_OF_MTRAG)
    every = (xquad, covidqa, doc2dial, sets.judged("cranfield"), sets.judged("cacm"), mtrag)
    questions = {one.name: some_of(one) for one in every}
    libraries = (
        ("part of xquad en", [sets.part(xquad, 80)]),
        ("xquad en", [xquad]),
        ("covidqa", [covidqa]),
        ("doc2dial", [doc2dial]),
        ("doc2dial, covidqa, xquad en", [doc2dial, covidqa, xquad]),
        ("these and mtrag", [doc2dial, covidqa, xquad, mtrag]),
    )
    print(
        "| library | chunks | own questions: found, near, nothing | others: found, near, nothing |\n|---|---|---|---|"
    )
    embedder = CachedMiniLM()
    for name, collections in libraries:
        documents = {key: one for collection in collections for key, one in collection.documents.items()}
        with shelf_of(Collection(name, documents), embedder) as shelf:
            shelf.keywords.load()
            own = [
                one for c in collections for one in questions[c.name] if not documents.keys().isdisjoint(one.relevant)
            ]
            names = {collection.name for collection in collections}
            others = [one for other, some in questions.items() if other not in names for one in some]
            print(
                f"| {name} | {shelf.size:,} | {shares(results(shelf, own))} | {shares(results(shelf, others))} |",
                flush=True,
            )


def some_of(collection: Collection) -> list[Asked]:
    """Return some standalone questions of a set, in a fixed random choice."""
    alone = [one for one in collection.questions if one.rewrite or not one.exchanges]
    return random.Random(5).sample(alone, min(QUESTIONS, len(alone)))


def results(shelf: CollectionShelf, questions: Sequence[Asked]) -> Counter[Support]:
    """Return how many questions have each result."""
    return Counter(shelf.retriever.find(SearchQuery(one.rewrite or one.text), PASSAGES)[1] for one in questions)


def shares(counts: Counter[Support]) -> str:
    """Return the share of each result."""
    return ", ".join(f"{counts[answer] / max(1, counts.total()):.3f}" for answer in ANSWERS)


if __name__ == "__main__":
    main()
