"""Search: both halves together, and what is left when one half is away."""

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from rag_assistant.errors import EmbedderFailed, IndexUnavailable
from rag_assistant.records import Chunk, ExtractedText
from rag_assistant.retrieval.embedding import Vectors
from rag_assistant.retrieval.exact import ExactIndex
from rag_assistant.retrieval.search import Retriever
from rag_assistant.retrieval.vectors import VectorSearch
from rag_assistant.retrieval.words import search_words
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents import DocumentStore
from rag_assistant.storage.keywords import KeywordIndex
from tests.fakes import WordHashEmbedder


class NoChroma:
    """An index that is always away."""

    def start(self) -> None:
        """Nothing starts."""

    def search(self, vector: Vectors, limit: int, version: tuple[int, int]) -> list[tuple[int, float]]:
        raise IndexUnavailable("away")


class House:
    """A library of short documents, with the parts that search it."""

    def __init__(self, database: Database) -> None:
        self.store = DocumentStore(database, "here")
        self.embedder = WordHashEmbedder()
        self.exact = ExactIndex(self.store, self.embedder.name, self.embedder.dimension)
        vectors = VectorSearch(self.store, self.exact, NoChroma(), 0)  # type: ignore[arg-type]
        self.retriever = Retriever(self.store, KeywordIndex(database), self.embedder, vectors)

    def add(self, *texts: str, embed: bool = True) -> int:
        """Keep a document of one chunk for each text, and return its id."""
        name = f"{texts[0]}.txt"
        document, _ = self.store.add(name, "text/plain", 1, name, name)
        whole, pieces = "\n".join(texts), []
        for place, text in enumerate(texts):
            start = whole.index(text)
            pieces.append(Chunk(place, start, start + len(text), text, None))
        words = [" ".join(search_words(text)) for text in texts]
        self.store.keep_text(document.id, ExtractedText(whole, "text/plain"), pieces, words)
        if embed:
            self.embed(document.id)
        return document.id

    def embed(self, document_id: int) -> None:
        """Embed what is not embedded."""
        missing = self.store.without_embedding(document_id, self.embedder.name)
        rows = self.embedder.embed([text for _, text in missing])
        pairs = [(chunk_id, row.tobytes()) for (chunk_id, _), row in zip(missing, rows, strict=True)]
        self.store.keep_embeddings(document_id, self.embedder.name, pairs)

    def found(self, query: str, limit: int = 5, document_ids: Sequence[int] = ()) -> list[str]:
        """Return the texts that are found."""
        return [passage.text for passage in self.retriever.search(query, limit, document_ids)]

    def nearest(self, text: str, chunk_ids: Collection[int] | None = None) -> list[int]:
        """Return the chunks that the exact index finds."""
        self.exact.refresh(self.store.library_version())
        return [number for number, _ in self.exact.search(self.embedder.embed([text])[0], 5, chunk_ids)]


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


def test_the_best_passage_comes_first(house: House) -> None:
    house.add("the keeper feeds geese", "the boat is green")
    house.add("lamps burn oil")
    assert house.found("what does the keeper feed the geese")[0] == "the keeper feeds geese"


def test_only_the_chosen_documents_are_searched(house: House) -> None:
    house.add("the keeper feeds geese")
    other = house.add("geese hiss")
    assert house.found("geese", document_ids=[other]) == ["geese hiss"]


def test_no_passages_are_asked_for(house: House) -> None:
    house.add("the keeper feeds geese")
    assert house.found("geese", limit=0) == []


def test_more_passages_than_there_are(house: House) -> None:
    house.add("geese hiss", "geese eat")
    assert len(house.found("geese", limit=50)) == 2


def test_words_of_the_search_language_are_only_words(house: House) -> None:
    house.add("geese hiss")
    for query in ('geese" OR "boats', "NEAR(geese", "geese*", "col:geese", "geese & ! | :*", "'); DROP TABLE x"):
        house.found(query)
    assert house.found('"geese"') == ["geese hiss"]


def test_keywords_find_what_is_not_embedded_yet(house: House) -> None:
    house.add("the boat is green")
    house.add("geese hiss", embed=False)
    assert "geese hiss" in house.found("geese")


def test_keywords_answer_while_the_embedder_is_broken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.add("the keeper feeds geese. boats float. lamps burn.")

    def broken(_texts: Sequence[str]) -> Vectors:
        raise EmbedderFailed("broken")

    monkeypatch.setattr(house.embedder, "embed", broken)
    assert len(house.found("geese")) == 1
    assert house.retriever.sentences("geese?", ["One. Two. Three."], 2) == ["One.", "Two."]


def test_chinese_is_found_by_words(house: House) -> None:
    house.add("灯塔看守人喂养十七只鹅", "船是绿色的")
    assert house.found("看守人喂养什么")[0] == "灯塔看守人喂养十七只鹅"


def test_the_exact_index_follows_additions_and_deletions(house: House) -> None:
    first = house.add("geese hiss")
    assert len(house.nearest("geese")) == 1
    house.add("geese eat")
    assert len(house.nearest("geese")) == 2
    house.store.delete(first)
    assert len(house.nearest("geese")) == 1


def test_the_exact_index_sees_a_smaller_chunk_that_was_embedded_later(house: House) -> None:
    early = house.add("geese hiss", embed=False)
    house.add("boats float")
    assert len(house.nearest("geese")) == 1
    house.embed(early)
    assert len(house.nearest("geese")) == 2


def test_the_exact_index_agrees_with_every_cosine(house: House) -> None:
    texts = [f"word{n % 7} word{n % 5} word{n % 3} word{n}" for n in range(60)]
    house.add(*texts)
    house.exact.refresh(house.store.library_version())
    query = house.embedder.embed(["word1 word2 word0"])[0]
    cosines = sorted((float(value) for value in house.embedder.embed(texts) @ query), reverse=True)
    found = [cosine for _, cosine in house.exact.search(query, 10)]
    assert np.allclose(found, cosines[:10], atol=1e-6)
