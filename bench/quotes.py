"""Quotes from real documents: how often they contain the answer, and how long they are.

``python -m bench.quotes`` measures all sets, or those named.
"""

import random
import sys
from collections.abc import Callable, Sequence

from bench.retrieval import sets
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.measures import mean
from bench.retrieval.sets import Asked, Collection
from bench.retrieval.shelf import CollectionShelf, shelf_of
from rag_assistant.conversations.model_profile import PASSAGES
from rag_assistant.records import Source
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.retrieval.tokenize import search_words

HALF = 0.5
EACH_OF_DOC2DIAL = 3  # A third of its questions gives the same figures in a third of the time.
EXCHANGES = 3
PAIRS = 160
ASKING = ("Who ", "What ", "When ", "Where ", "Which ", "How ", "Why ")


def main(wanted: Sequence[str] = ()) -> None:
    """Print a row for each set, or for those requested."""
    if not sets.DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    makers: dict[str, Callable[[], Collection]] = {
        **{f"xquad {language}": lambda language=language: sets.xquad(language) for language in sets.xquad_languages()},  # type: ignore[misc]
        "covidqa": sets.covidqa,
        "doc2dial": sets.doc2dial,
    }
    embedder = CachedMiniLM()
    print("| set | in the passages | quoted | words | sentences |\n|---|---|---|---|---|")
    for name, make in makers.items():
        if wanted and name not in wanted:
            continue
        collection = make()
        with shelf_of(collection, embedder) as shelf:
            for part, questions in parts(collection).items():
                print(row(part, questions, collection, shelf), flush=True)
            if name == "xquad en":
                print(f"\n{two_in_one(collection, shelf)}\n", flush=True)


def two_in_one(collection: Collection, shelf: CollectionShelf) -> str:
    """Return how often both answers are quoted for two questions in one, from articles not used for tuning."""
    questions = [one for one in collection.questions if one.text.startswith(ASKING) and not _chose(one)]
    random.Random(9).shuffle(questions)
    pairs = [pair for pair in zip(questions[0:PAIRS:2], questions[1:PAIRS:2], strict=True) if _differ(*pair)]
    both = []
    for first, second in pairs:
        query = SearchQuery(f"{first.text.rstrip('?')} and {second.text[0].lower()}{second.text[1:]}")
        sources = number_sources(shelf.by_both(query, PASSAGES))
        texts = [
            (quote.n, one.text) for quote in shelf.retriever.sources.quotes(query, sources) for one in quote.sentences
        ]
        both.append(float(all(holds(one, collection, sources, texts) for one in (first, second))))
    return f"Of {len(pairs)} questions that are two in one, both answers are quoted for {mean(both):.3f}."


def _differ(first: Asked, second: Asked) -> bool:
    return first.relevant != second.relevant


def _chose(asked: Asked) -> bool:
    return int(next(iter(asked.relevant)).split("_")[0]) % 2 == 0


def parts(collection: Collection) -> dict[str, Sequence[Asked]]:
    """Return the questions to ask: of XQuAD English by article, every other one of which was used for tuning."""
    name, questions = collection.name, collection.questions
    if name == "doc2dial":
        return {name: questions[::EACH_OF_DOC2DIAL]}
    if name != "xquad en":
        return {name: questions}
    seen = [asked for asked in questions if _chose(asked)]
    unseen = [asked for asked in questions if asked not in seen]
    return {f"{name}, articles that chose the constants": seen, f"{name}, the other articles": unseen}


def row(name: str, questions: Sequence[Asked], collection: Collection, shelf: CollectionShelf) -> str:
    """Return a row with what is found and quoted for some questions."""
    found, held, words, sentences = [], [], [], []
    for asked in questions:
        query = shelf.retriever.follow_up(asked.text, asked.exchanges[-EXCHANGES:])
        sources = number_sources(shelf.by_both(query, PASSAGES))
        texts = [
            (quote.n, one.text) for quote in shelf.retriever.sources.quotes(query, sources) for one in quote.sentences
        ]
        found.append(holds(asked, collection, sources, [(one.n, one.text) for one in sources]))
        held.append(holds(asked, collection, sources, texts))
        words.append(float(sum(len(search_words(text)) for _, text in texts)))
        sentences.append(float(len(texts)))
    return (
        f"| {name} ({len(questions):,}) | {mean(found):.3f} | {mean(held):.3f} | {mean(words):.0f} "
        f"| {mean(sentences):.1f} |"
    )


def holds(asked: Asked, collection: Collection, sources: Sequence[Source], texts: Sequence[tuple[int, str]]) -> bool:
    """Return whether texts of the right document contain the answer, or half of the gold spans, ignoring blanks."""
    right = {one.n for one in sources if one.document in asked.relevant}
    own = [_squeezed(text) for n, text in texts if n in right]
    if asked.answers:
        return any(_squeezed(answer) in "".join(own) for answer in asked.answers)
    _, document = collection.documents[next(iter(asked.relevant))]
    whole = _squeezed(document)
    covered = {place for text in own if (at := whole.find(text)) >= 0 for place in range(at, at + len(text))}
    spans = [(len(_squeezed(document[:start])), len(_squeezed(document[:end]))) for start, end in asked.spans]
    gold = {place for start, end in spans for place in range(start, end)}
    return len(covered & gold) >= HALF * len(gold)


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
