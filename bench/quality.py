"""The quality of answers, as far as it can be counted without a model: one table per promise, below its aim."""

from bench import claims, compaction, questions, quotes, recall
from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.evidence import evidence
from bench.retrieval.shelf import shelf_of


def main() -> None:
    """Print all tables. Takes some ten minutes, the first time twenty: embeddings are cached."""
    for heading, aim, measure in PARTS:
        print(f"\n### {heading}\n\nAim: {aim}.\n", flush=True)
        measure()


def cited_passages() -> None:
    """Print the effect of passages that earlier answers cited."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    print("| set | passages | questions | right documents | spans | tokens |\n|---|---|---|---|---|---|")
    embedder = CachedMiniLM()
    for collection in (sets.mtrag(), sets.each(sets.doc2dial(), 3)):
        with shelf_of(collection, embedder) as shelf:
            print(*evidence(collection, shelf), sep="\n", flush=True)


PARTS = (
    ("Quotes without a model", "0.9 of XQuAD English quoted, in 60 words at most", quotes.main),
    ("Questions about the guide", "24 of 24", questions.main),
    ("What earlier answers cited", "more right documents and spans for few tokens", cited_passages),
    ("The alarm", "10 % missed, 2 % false alarms, AUROC 0.9, 3 ms at 1,000 turns", recall.main),
    ("Citations", "0.9 of false numbers and names, 0.8 on average caught; 0.05 of true ones doubted", claims.main),
    ("Summaries without a model", "as many answers kept as by other ways", compaction.main),
)
