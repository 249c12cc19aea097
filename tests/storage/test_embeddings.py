"""Several embedding models side by side: one is searched, another is on its way to be."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import func, select

from rag_assistant.errors import EmbedderFailed
from rag_assistant.retrieval.embedders import Embedders
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import embeddings
from tests.fakes import WordHashEmbedder
from tests.shelf import Shelf


class OtherEmbedder(WordHashEmbedder):
    """Says other numbers under the same name, as when another model stands behind an address."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:  # type: ignore[override]
        """Return the vectors with their numbers in another order."""
        return np.ascontiguousarray(super().embed(texts)[:, ::-1])


class Nameless(OtherEmbedder):
    """A model with another name."""

    name = "other"


def opened(shelf: Shelf, make: type[WordHashEmbedder]) -> Embedders:
    """Return the embedders as they are after a start with another model in the settings."""
    return Embedders(shelf.embeddings, {"embedder": make.__name__}, lambda _source: make())


def embed_all(shelf: Shelf, key: str) -> None:
    for document_id in shelf.embeddings.documents_without(key):
        rows = [(one.chunk_id, b"\0" * 1536) for one in shelf.embeddings.without_embedding(document_id, key)]
        assert shelf.embeddings.keep_embeddings(document_id, key, rows)


def test_the_first_model_is_searched_at_once(database: Database) -> None:
    shelf = Shelf(database)
    assert shelf.embedders.active() is None
    assert shelf.embedders.wanted().key == "word-hash"
    active = shelf.embeddings.active()
    assert active is not None
    assert (active.key, active.dimension, active.version) == ("word-hash", 384, (0, 0))


def test_the_same_model_is_known_again(database: Database) -> None:
    shelf = Shelf(database)
    shelf.embedders.wanted()
    assert opened(shelf, WordHashEmbedder).wanted().key == "word-hash"
    assert len(shelf.embeddings.known()) == 1


@pytest.mark.parametrize(("other", "key"), [(OtherEmbedder, "word-hash#2"), (Nameless, "other")])
def test_another_model_is_recognised_by_what_it_makes_of_a_text(
    database: Database, other: type[WordHashEmbedder], key: str
) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss", "geese eat")
    embedders = opened(shelf, other)
    assert embedders.wanted().key == key
    active = shelf.embeddings.active()
    assert active is not None
    assert active.key == "word-hash"
    assert embedders.active() is None, "the model that was used before is not there any more"
    assert len(shelf.embeddings.known()) == 2


def test_the_switch_waits_for_every_chunk_and_happens_in_one_step(database: Database) -> None:
    shelf = Shelf(database)
    first, second = shelf.shelve("geese hiss"), shelf.shelve("geese eat")
    key = opened(shelf, Nameless).wanted().key
    assert shelf.embeddings.documents_without(key) == [first.id, second.id]
    assert shelf.embeddings.progress(key) == (0, 2)
    assert not shelf.embeddings.activate(key)
    embed_all(shelf, key)
    assert shelf.documents.get(first.id).embedded == 1
    assert shelf.embeddings.activate(key)
    active = shelf.embeddings.active()
    assert active is not None
    assert (active.key, active.version) == ("other", (2, 0))
    shelf.embeddings.forget("word-hash")
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(embeddings)).scalar() == 2


def test_the_model_that_is_searched_is_never_forgotten(database: Database) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss")
    shelf.embeddings.forget("word-hash")
    assert len(shelf.embeddings.vectors_after("word-hash", 0, 10)) == 1


def test_search_goes_over_to_the_new_model_without_a_start(database: Database) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss")
    made: list[str] = []

    def make(source: dict[str, str]) -> WordHashEmbedder:
        made.append(source["embedder"])
        return Nameless() if source["embedder"] == "Nameless" else WordHashEmbedder()

    shelf.embedders._source, shelf.embedders._make, shelf.embedders._wanted = {"embedder": "Nameless"}, make, None
    key = shelf.embedders.wanted().key
    assert len(shelf.nearest("geese")) == 1
    assert made == ["Nameless", "test"]
    embed_all(shelf, key)
    shelf.embeddings.activate(key)
    before = shelf.vectors._space
    assert len(shelf.nearest("geese")) == 1
    assert shelf.vectors._space is not before


def test_while_the_older_model_is_away_keywords_search_alone(database: Database) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss")

    def make(source: dict[str, str]) -> WordHashEmbedder:
        if source["embedder"] == "test":
            raise EmbedderFailed("It is gone.")
        return Nameless()

    shelf.embedders._source, shelf.embedders._make, shelf.embedders._wanted = {"embedder": "Nameless"}, make, None
    shelf.embedders.wanted()
    assert shelf.vectors.now() is None
    assert shelf.found("geese") == ["geese hiss"]


def test_a_model_that_gives_no_vectors_is_refused(database: Database) -> None:
    class Broken(WordHashEmbedder):
        def embed(self, texts: list[str]) -> list[list[float]]:  # type: ignore[override]
            return [[float("nan")] * 3 for _ in texts]

    shelf = Shelf(database)
    embedders = opened(shelf, Broken)
    with pytest.raises(EmbedderFailed, match="did not give one vector of numbers for each of 1 texts"):
        embedders.wanted()
    assert embedders.problem is not None
    assert shelf.embeddings.known() == []
