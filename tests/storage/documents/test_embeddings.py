"""Several embedding models side by side: one is searched, another is on its way to be."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import func, select

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import embeddings
from tests.conftest import both_engines
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.shelf import KEY, Shelf, key_of
from tests.web.conftest import until


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
    document_id = 0
    while document_id := shelf.embeddings.next_without(key, document_id) or 0:
        rows = [(one.chunk_id, b"\0" * 1536) for one in shelf.embeddings.without_embedding(document_id, key)]
        assert shelf.embeddings.keep_embeddings(document_id, key, rows)


def test_the_first_model_is_searched_at_once(database: Database) -> None:
    shelf = Shelf(database)
    assert shelf.embedders.serving() is None
    assert shelf.embedders.configured().key == KEY
    active = shelf.embeddings.serving()
    assert active is not None
    assert (active.key, active.dimension, active.version) == (KEY, 384, (0, 0))


def test_the_same_model_is_known_again(database: Database) -> None:
    shelf = Shelf(database)
    shelf.embedders.configured()
    assert opened(shelf, WordHashEmbedder).configured().key == KEY
    assert len(shelf.embeddings.models()) == 1


@pytest.mark.parametrize(("other", "key"), [(OtherEmbedder, key_of(OtherEmbedder())), (Nameless, key_of(Nameless()))])
def test_another_model_is_recognised_by_what_it_makes_of_a_text(
    database: Database, other: type[WordHashEmbedder], key: str
) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss", "geese eat")
    embedders = opened(shelf, other)
    assert embedders.configured().key == key
    active = shelf.embeddings.serving()
    assert active is not None
    assert active.key == KEY
    assert embedders.serving() is None, "the model that was used before is not there any more"
    assert len(shelf.embeddings.models()) == 2


@both_engines
def test_the_switch_waits_for_every_chunk_and_happens_in_one_step(database: Database) -> None:
    shelf = Shelf(database)
    first, second = shelf.shelve("geese hiss"), shelf.shelve("geese eat")
    key = opened(shelf, Nameless).configured().key
    assert shelf.embeddings.next_without(key, 0) == first.id
    assert shelf.embeddings.next_without(key, first.id) == second.id
    assert shelf.embeddings.next_without(key, second.id) is None
    assert shelf.embeddings.progress(key) == (0, 2)
    assert not shelf.embeddings.activate(key)
    embed_all(shelf, key)
    assert shelf.documents.get(first.id).embedded == 1
    assert shelf.embeddings.activate(key)
    active = shelf.embeddings.serving()
    assert active is not None
    assert (active.key, active.version) == (key, (2, 0))
    shelf.embeddings.forget(KEY)
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(embeddings)).scalar() == 2


def test_the_model_that_is_searched_is_never_forgotten(database: Database) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss")
    shelf.embeddings.forget(KEY)
    assert len(shelf.embeddings.vectors_after(KEY, 0, 10)) == 1


def test_search_goes_over_to_the_new_model_without_a_start(database: Database) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss")
    made: list[str] = []

    def make(source: dict[str, str]) -> WordHashEmbedder:
        made.append(source["embedder"])
        return Nameless() if source["embedder"] == "Nameless" else WordHashEmbedder()

    shelf.embedders._source, shelf.embedders._make, shelf.embedders._configured = {"embedder": "Nameless"}, make, None
    key = shelf.embedders.configured().key
    assert shelf.vectors.now() is None, "the older model is opened behind the questions"
    until(lambda: shelf.vectors.now() is not None)
    assert len(shelf.nearest("geese")) == 1
    assert made == ["Nameless", "test"]
    embed_all(shelf, key)
    shelf.embeddings.activate(key)
    before = shelf.vectors._vectors
    assert len(shelf.nearest("geese")) == 1
    assert shelf.vectors._vectors is not before


def test_while_the_older_model_is_away_keywords_search_alone(database: Database) -> None:
    shelf = Shelf(database)
    shelf.shelve("geese hiss")

    def make(source: dict[str, str]) -> WordHashEmbedder:
        if source["embedder"] == "test":
            raise EmbedderFailed("It is gone.")
        return Nameless()

    shelf.embedders._source, shelf.embedders._make, shelf.embedders._configured = {"embedder": "Nameless"}, make, None
    shelf.embedders.configured()
    for _ in range(3):
        assert shelf.vectors.now() is None
    assert shelf.found("geese") == ["geese hiss"]


def test_a_document_that_failed_does_not_keep_the_others_from_the_new_model(database: Database) -> None:
    shelf = Shelf(database)
    poison, other = shelf.shelve("poison"), shelf.shelve("geese hiss")
    key = opened(shelf, Nameless).configured().key
    rows = [(one.chunk_id, b"\0" * 1536) for one in shelf.embeddings.without_embedding(other.id, key)]
    shelf.embeddings.keep_embeddings(other.id, key, rows)
    assert not shelf.embeddings.activate(key)
    shelf.documents.fail(poison.id, "A mistake elsewhere.")
    assert shelf.documents.get(poison.id).state == "ready"
    shelf.documents.fail(poison.id, "It cannot be embedded.", also_ready=True)
    assert shelf.embeddings.activate(key)
    assert not shelf.embeddings.activate("never kept")


def test_a_model_that_gives_another_number_of_numbers_is_refused(database: Database) -> None:
    class Changing(WordHashEmbedder):
        def embed(self, texts: list[str]) -> NDArray[np.float32]:  # type: ignore[override]
            return super().embed(texts)[:, : 384 if len(self.embedded) < 2 else 32]

    shelf = Shelf(database, lambda _source: Changing())
    embedder = shelf.embedders.configured()
    with pytest.raises(EmbedderFailed, match="gives 32 numbers for a text and gave 384 before"):
        embedder.embed(["geese hiss"])


@pytest.mark.parametrize("answer", [["text"], [[1.0], [1.0, 2.0]], [None], [], [[1.0, 2.0], [1.0, 2.0]]])
def test_what_is_no_vector_is_refused(database: Database, answer: list[object]) -> None:
    class Odd(WordHashEmbedder):
        def embed(self, _texts: list[str]) -> list[object]:  # type: ignore[override]
            return answer

    with pytest.raises(EmbedderFailed, match="did not give one vector of numbers"):
        opened(Shelf(database), Odd).configured()


def test_a_model_that_gives_no_vectors_is_refused(database: Database) -> None:
    class Broken(WordHashEmbedder):
        def embed(self, texts: list[str]) -> list[list[float]]:  # type: ignore[override]
            return [[float("nan")] * 3 for _ in texts]

    shelf = Shelf(database)
    embedders = opened(shelf, Broken)
    with pytest.raises(EmbedderFailed, match="did not give one vector of numbers for each of 1 texts"):
        embedders.configured()
    assert embedders.problem is not None
    assert shelf.embeddings.models() == []
