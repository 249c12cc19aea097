"""The embedding model itself."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.embeddings.minilm import MiniLM, quantised

pytestmark = pytest.mark.model

TEXTS = (
    "geese",
    "How many geese does the keeper of the lighthouse feed?",
    "Wie viele Gänse füttert der Leuchtturmwärter?",
    "灯塔看守人喂养多少只鹅",
    "for (int i = 0; i < 17; i++) { feed(&geese[i]); }",
    "The storm surge of 1872 flooded the village and broke fourteen boats. " * 10,
)
# Of a text that the model does not know; of ordinary ones .993.
SAME = 0.97


@pytest.fixture(scope="module")
def model(embedders: Path) -> MiniLM:
    return MiniLM(embedders)


def test_a_vector_has_length_1(model: MiniLM) -> None:
    rows = model.embed(["A goose.", "", "机器学习", "word " * 600])
    assert rows.shape == (4, model.dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_near_in_meaning_is_near_in_numbers(model: MiniLM) -> None:
    question, near, far = model.embed(
        ["How do I save a copy of my data?", "To make a backup, copy the folder.", "The boat is painted green."]
    )
    assert question @ near > question @ far + 0.2


def test_the_end_of_a_long_text_counts(model: MiniLM) -> None:
    filling = "The sea is calm today. " * 100
    with_end, without, question = model.embed([filling + "Geese hiss. " * 60, filling, "hissing geese"])
    assert question @ with_end > question @ without + 0.05


def test_a_text_has_the_same_vector_in_whatever_company(model: MiniLM) -> None:
    alone = model.embed(["A goose."])[0]
    assert np.array_equal(model.embed(["A very long text. " * 50, "A goose."])[1], alone)


def test_several_texts_at_once_have_the_vectors_that_each_has_alone(
    model: MiniLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [model.embed([text])[0] for text in TEXTS]
    met, embed_one = threading.Barrier(2), model._embed_one

    def together(text: str) -> minilm.Vectors:
        met.wait(60)  # Broken, and so raised, if one is embedded alone.
        return embed_one(text)

    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(model, "_embed_one", together)
    assert np.array_equal(model.embed(TEXTS), alone)


def test_vectors_are_those_of_the_model_file_as_it_is(model: MiniLM) -> None:
    import onnxruntime
    import tokenizers

    session = onnxruntime.InferenceSession(str(minilm.EMBEDDING_MODEL.checked()))
    tokenizer = tokenizers.Tokenizer.from_file(str(minilm.EMBEDDING_TOKENIZER.checked()))
    tokenizer.no_padding()
    for text in TEXTS:
        ids = np.array([tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        original = session.run(None, inputs)[0][0].mean(axis=0)
        assert float(model.embed([text])[0] @ original) / np.linalg.norm(original) >= SAME, text


def test_a_damaged_model_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msgspec.structs import replace

    monkeypatch.setattr(minilm, "EMBEDDING_MODEL", replace(minilm.EMBEDDING_MODEL, sha256="0" * 64))
    with pytest.raises(EmbedderFailed, match="install it again"):
        MiniLM(tmp_path).embed(["A goose."])


def test_the_model_is_quantised_once(embedders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = embedders.glob("*.onnx")
    monkeypatch.setattr("subprocess.run", None)
    assert quantised(minilm.EMBEDDING_MODEL.checked(), embedders) == made


@pytest.mark.long
def test_the_model_is_quantised_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(EmbedderFailed, match="cannot be quantised: .*broken.onnx"):
        quantised(tmp_path / "broken.onnx", tmp_path / "embedders")
    assert list((tmp_path / "embedders").iterdir()) == []


@pytest.mark.long
def test_a_disk_without_room_for_quantising_is_named_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"cut short, as a full disk leaves it")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(EmbedderFailed, match="cannot be quantised: the disk has only 0 MB left"):
        quantised(tmp_path / "broken.onnx", tmp_path / "embedders")
