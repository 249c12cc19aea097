"""40 questions about 27 tables of real documents: is the row found, with its caption and the names of its columns?

``table_questions.json`` has for each question its file, the beginning of the answering row, and its label: the column,
or the caption of the table. Blanks are ignored. These questions weren't used for tuning.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.documents import DATA
from bench.retrieval.cache import CachedMiniLM
from bench.retrieval.measures import mean
from bench.retrieval.sets import Collection
from bench.retrieval.shelf import CHUNK_CHARS, CollectionShelf
from bench.stage import open_database
from rag_assistant.conversations.model_profile import PASSAGES
from rag_assistant.extraction.extract import extract
from rag_assistant.extraction.formats.kinds import media_type_of
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.chunking import chunk_document
from rag_assistant.retrieval.follow_up import SearchQuery
from rag_assistant.retrieval.postprocess import number_sources

QUESTIONS = Path(__file__).with_name("table_questions.json")


def main() -> None:
    """Print how often a row is found, by keywords and by both methods, with its label, and quoted."""
    if not DATA.exists():
        print("The shared data is not on this machine; nothing to measure.")
        return
    questions = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        shelf = CollectionShelf(database, Collection("tables", {}), CachedMiniLM())
        for name in sorted({one["file"] for one in questions}):
            extracted = read(DATA / name)
            shelf.put(Path(name).name, Path(name).name, extracted, chunk_document(extracted, CHUNK_CHARS))
        figures = [figures_of(shelf, one) for one in questions]
        database.close()
    print("| " + " | ".join(figures[0]) + " |\n|" + "---|" * len(figures[0]))
    print("| " + " | ".join(f"{mean([float(one[name]) for one in figures]):.3f}" for name in figures[0]) + " |")
    for one, found in zip(questions, figures, strict=True):
        missed = [name for name, was in found.items() if not was]
        if missed:
            print(f"{one['question']} {', '.join(missed)}")


def read(path: Path) -> ExtractedText:
    """Return the text of a file as the product reads it."""
    media_type = media_type_of(path.read_bytes()[:4096], path.name)
    return extract(path, media_type, memory_mb=1_000, timeout_seconds=60)


def figures_of(shelf: CollectionShelf, asked: Mapping[str, str]) -> dict[str, bool]:
    """Return the results of a question."""
    query = SearchQuery(asked["question"])
    passages = shelf.by_both(query, PASSAGES)
    sources = number_sources(passages)
    quotes = [
        f"{one.lead}\n{one.text}" for quote in shelf.retriever.sources.quotes(query, sources) for one in quote.sentences
    ]
    by_words = [one.text for one in shelf.by_keywords(asked["question"], PASSAGES)]
    found = [one.text for one in passages]
    return {
        "row first, keywords only": holds(by_words[:1], asked["row"]),
        "row in six, keywords only": holds(by_words, asked["row"]),
        "row first": holds(found[:1], asked["row"]),
        "row in six": holds(found, asked["row"]),
        "named": holds(found, asked["row"], asked["names"]),
        "quoted": holds(quotes, asked["row"]),
    }


def holds(texts: Sequence[str], *wanted: str) -> bool:
    """Return whether one of some texts contains everything expected."""
    squeezed = [" ".join(text.split()) for text in texts]
    return any(all(one in text for one in wanted) for text in squeezed)


if __name__ == "__main__":
    main()
