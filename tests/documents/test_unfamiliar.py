"""Documents in languages that the embedding model does not know are noticed, and nothing is said of a few."""

from typing import Any

import pytest

from rag_assistant.documents.embedding import Unfamiliar, unfamiliar_documents
from rag_assistant.retrieval.embeddings.minilm import FAMILIAR, Familiarity
from rag_assistant.storage.database import Database
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.shelf import Shelf


class KnowsEnglish(WordHashEmbedder):
    def familiarity(self, text: str) -> Familiarity:
        return FAMILIAR if text.isascii() else Familiarity(0.9, 0.2)


def looked_at(shelf: Shelf, *texts: str) -> Any:
    for text in texts:
        shelf.shelve(text)
    return unfamiliar_documents(shelf.documents, shelf.chunks, shelf.embedders)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_documents_in_another_language_are_counted(database: Database) -> None:
    shelf = Shelf(database, lambda _: KnowsEnglish())
    assert unfamiliar_documents(shelf.documents, shelf.chunks, shelf.embedders) is None
    shelf.embedders.configured()
    assert looked_at(shelf, "Geese fly.", "Gänse schlüpfen.") is None
    assert looked_at(shelf, "Füße waten.") == Unfamiliar(2, 3)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_model_that_knows_every_language_has_nothing_to_say(database: Database) -> None:
    shelf = Shelf(database)
    shelf.embedders.configured()
    assert looked_at(shelf, "Gänse schlüpfen.", "Füße waten.") is None
