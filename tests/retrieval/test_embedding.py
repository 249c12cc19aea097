"""The embedding model itself."""

import numpy as np
import pytest

from rag_assistant.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.embeddings.minilm import MiniLM
from rag_assistant.runtime import model_files

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_a_vector_has_length_1(model: MiniLM) -> None:
    rows = model.embed(["A goose.", "", "机器学习", "word " * 2000])
    assert rows.shape == (4, model.dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_near_in_meaning_is_near_in_numbers(model: MiniLM) -> None:
    question, near, far = model.embed(
        ["How do I save a copy of my data?", "To make a backup, copy the folder.", "The boat is painted green."]
    )
    assert question @ near > question @ far + 0.2


def test_the_end_of_a_long_text_counts(model: MiniLM) -> None:
    filling = "The sea is calm today. " * 200
    with_end, without, question = model.embed([filling + "Geese hiss. " * 60, filling, "hissing geese"])
    assert question @ with_end > question @ without + 0.05


def test_a_text_has_the_same_vector_in_whatever_company(model: MiniLM) -> None:
    alone = model.embed(["A goose."])[0]
    assert np.array_equal(model.embed(["A very long text. " * 50, "A goose."])[1], alone)


def test_a_damaged_model_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr(minilm, "EMBEDDING_MODEL", replace(model_files.EMBEDDING_MODEL, sha256="0" * 64))
    with pytest.raises(EmbedderFailed, match="install it again"):
        MiniLM().embed(["A goose."])
