"""Two questions in one: are the right documents of both among the sources? ``python -m bench.retrieval.pairs``."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import patch

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.measures import mean
from bench.retrieval.sets import Collection
from bench.retrieval.shelf import CollectionShelf, names_of, shelf_of
from rag_assistant.conversations.model_profile import PASSAGES
from rag_assistant.retrieval.follow_up import TWO_QUESTIONS, SearchQuery, parts_of

QUESTIONS = 240


def main() -> None:
    """Print for some sets what is found for the question as a whole, and for each part by itself."""
    embedder = CachedMiniLM()
    print("| pairs from | as one question | each by itself |\n|---|---|---|")
    for collection in (*map(sets.xquad, ("en", "de", "zh")), sets.covidqa(), sets.doc2dial()):
        with shelf_of(collection, embedder) as shelf:
            shelf.keywords.load()
            whole, parts = found(collection, shelf, joined_by_and), found(collection, shelf, parts_of)
            print(f"| {collection.name} | {whole:.3f} | {parts:.3f} |", flush=True)


def joined_by_and(query: SearchQuery) -> list[SearchQuery]:
    """Return the parts of a question only where "and" joins them, as before."""
    return parts_of(query) if TWO_QUESTIONS.fullmatch(query.text.strip()) else []


def found(collection: Collection, shelf: CollectionShelf, parts: Callable[[SearchQuery], list[SearchQuery]]) -> float:
    """Return the share of questions, two in one, with a right document of each among the sources."""
    alone = [one for one in collection.questions if one.rewrite or not one.exchanges]
    drawn = random.Random(7).sample(alone, min(QUESTIONS, len(alone)))
    hits: list[float] = []
    with patch("rag_assistant.retrieval.search.parts_of", parts):
        for pair in zip(drawn[::2], drawn[1::2], strict=True):
            question = "? ".join([*((one.rewrite or one.text).strip().rstrip("?\uff1f") for one in pair), ""]).strip()
            names = set(names_of(shelf.by_both(question, PASSAGES)))
            hits += [float(not names.isdisjoint(one.relevant)) for one in pair]
    return mean(hits)


if __name__ == "__main__":
    main()
