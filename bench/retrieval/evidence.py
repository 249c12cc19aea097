"""What the passages cited by earlier answers add to a follow-up question, and what they cost."""

from collections.abc import Callable, Sequence

from bench.retrieval.measures import holds_spans, mean
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import CollectionShelf
from rag_assistant.answering.recall import MIN_LEANING, TURNS_WITH_EVIDENCE, cited_passages
from rag_assistant.history import estimate_tokens
from rag_assistant.records import EVERYTHING, Source
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.postprocess import number_sources

FOUND = 5
Given = tuple[Asked, Sequence[Source]]


def evidence(
    collection: Collection, shelf: CollectionShelf, query_of: Callable[[Asked], SearchQuery] | None = None
) -> list[str]:
    """Return the rows of a set of conversations: some passages, more of them, and some with those cited before.

    ``query_of`` gives a question's search query, if it isn't the product's. An answer is assumed to cite those of the
    five passages of its question that contain the answer.
    """
    cited: dict[str, dict[int, list[Source]]] = {asked.conversation: {} for asked in collection.questions}
    ways: dict[str, list[Given]] = {}
    for asked in sorted(collection.questions, key=lambda one: len(one.exchanges)):
        query = query_of(asked) if query_of else shelf.retriever.follow_up(asked.text, asked.exchanges)
        found = {count: number_sources(shelf.by_both(query, count)) for count in (FOUND, FOUND + 1, FOUND + 2)}
        before = cited[asked.conversation]
        leans = found[FOUND] and query.leaning >= MIN_LEANING
        newest = dict(sorted(before.items(), reverse=True)[:TURNS_WITH_EVIDENCE] if leans else ())
        more = cited_passages(shelf.retriever, newest, found[FOUND], EVERYTHING, None)
        if asked.exchanges:
            for count, sources in found.items():
                ways.setdefault(f"{count} found", []).append((asked, sources))
            for count in (1, 2):
                ways.setdefault(f"{FOUND} found, {count} cited", []).append((asked, found[FOUND] + more[:count]))
        before[len(asked.exchanges) + 1] = [one for one in found[FOUND] if holds(one, asked)]
    return [f"| {collection.name} | {way} | {' | '.join(figures(given))} |" for way, given in ways.items()]


def holds(source: Source, asked: Asked) -> bool:
    """Return whether a passage contains the answer to a question, or a part of it."""
    if source.document not in asked.relevant:
        return False
    return not asked.spans or any(source.start < end and start < source.end for start, end in asked.spans)


def figures(given: Sequence[Given]) -> list[str]:
    """Return the cells of a row: questions, right documents among all passages, spans in them, tokens."""
    named = [({one.document for one in sources}, asked.relevant) for asked, sources in given]
    right = mean([len(documents & relevant.keys()) / len(relevant) for documents, relevant in named])
    spans = [holds_spans(sources, asked) for asked, sources in given if asked.spans]
    tokens = mean([sum(estimate_tokens(one.text) for one in sources) for _, sources in given])
    return [f"{len(given):,}", f"{right:.3f}", f"{mean(spans):.3f}" if spans else "", f"{tokens:,.0f}"]
