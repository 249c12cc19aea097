"""Compare the multilingual embedding model with the default one in English: python -m bench.retrieval.multilingual."""

from contextlib import ExitStack
from dataclasses import replace

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM, CachedMultilingualE5
from bench.retrieval.progress import say
from bench.retrieval.shelf import shelf_of
from bench.retrieval.tables import OTHERS, rows_of_ways


def main() -> None:
    """Print a table: a row for each set and measure."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    print("| set | measure | keywords | MiniLM alone | + MiniLM | multilingual-e5 alone | + multilingual-e5 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    pool = replace(sets.pool(sets.mtrag(), OTHERS), name="mtrag pool")
    for collection in (sets.judged("cranfield"), sets.judged("cacm"), pool):
        say(f"Embedding {len(collection.documents):,} documents of {collection.name} ...")
        with ExitStack() as open_shelves:
            one, other = (
                open_shelves.enter_context(shelf_of(collection, embedder))
                for embedder in (CachedMiniLM(), CachedMultilingualE5())
            )
            ways = (one.by_keywords, one.by_vectors, one.by_both, other.by_vectors, other.by_both)
            print(*rows_of_ways(collection, one.size, ways), sep="\n", flush=True)


if __name__ == "__main__":
    main()
