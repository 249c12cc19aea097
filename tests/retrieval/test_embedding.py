"""The embedding model itself."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings import minilm
from rag_assistant.retrieval.embeddings.encoder import MAX_OF_TWO_WEIGHTS, without_overflow
from rag_assistant.retrieval.embeddings.minilm import MiniLM
from rag_assistant.runtime import courtesy, memory, model_files

pytestmark = pytest.mark.model

TEXTS = (
    "geese",
    "How many geese does the keeper of the lighthouse feed?",
    "Wie viele Gänse füttert der Leuchtturmwärter?",
    "灯塔看守人喂养多少只鹅",
    "for (int i = 0; i < 17; i++) { feed(&geese[i]); }",
    "The storm surge of 1872 flooded the village and broke fourteen boats. " * 10,
)
# Of texts that say one thing over and over; of ordinary ones .999.
SAME = 0.997


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


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

    monkeypatch.setattr(courtesy, "cores_to_take", lambda: 2)
    monkeypatch.setattr(model, "_embed_one", together)
    assert np.array_equal(model.embed(TEXTS), alone)


def test_vectors_are_those_of_the_model_file_as_it_is(model: MiniLM) -> None:
    import onnxruntime
    import tokenizers

    session = onnxruntime.InferenceSession(str(model_files.EMBEDDING_MODEL.checked()))
    tokenizer = tokenizers.Tokenizer.from_file(str(model_files.EMBEDDING_TOKENIZER.checked()))
    tokenizer.no_padding()
    for text in TEXTS:
        ids = np.array([tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        original = session.run(None, inputs)[0][0].mean(axis=0)
        assert float(model.embed([text])[0] @ original) / np.linalg.norm(original) >= SAME, text


def test_neighbouring_weights_are_not_too_large_for_16_bits() -> None:
    codes = np.array([[127, 3, 90, 0], [127, -4, -90, 0], [-127, 5, 0, 0], [1, 120, 127, 0]], np.int8)
    scales = np.array([0.5, 1, 2, 3], np.float32)
    fitting, their_scales = without_overflow(codes, scales)
    sizes = np.abs(fitting.astype(int))
    assert (sizes[0::2] + sizes[1::2]).max() == MAX_OF_TWO_WEIGHTS
    assert np.array_equal(fitting[:, 1], codes[:, 1]), "what fits is left as it is"
    assert (np.abs(fitting * their_scales - codes * scales) <= their_scales / 2).all()


def test_weights_that_are_not_used_take_nobodys_precision() -> None:
    codes, scales = np.array([[127, 127], [100, 20]], np.int8), np.ones(2, np.float32)
    fitting, their_scales = without_overflow(codes, scales, unused=(0,))
    assert fitting.tolist() == [[0, 0], [100, 20]]
    assert their_scales.tolist() == [1, 1]


def test_a_damaged_model_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from msgspec.structs import replace

    monkeypatch.setattr(minilm, "EMBEDDING_MODEL", replace(model_files.EMBEDDING_MODEL, sha256="0" * 64))
    with pytest.raises(EmbedderFailed, match="install it again"):
        MiniLM().embed(["A goose."])


def test_the_table_of_tokens_is_left_to_the_disk_when_memory_is_given_back(model: MiniLM) -> None:
    def mapped_kb() -> int:
        maps = Path("/proc/self/smaps").read_text()
        return sum(map(int, re.findall(r"model\.onnx\n(?:\w+: .*\n)*?Rss: +(\d+) kB", maps)))

    memory.give_back()
    assert mapped_kb() == 0
    vectors = model.embed(TEXTS[:1])
    assert mapped_kb() > 0
    memory.give_back()
    assert np.array_equal(model.embed(TEXTS[:1]), vectors)
