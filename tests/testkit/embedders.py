"""Fakes for our protocols that tests can inspect."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.minilm import FAMILIAR, Familiarity
from rag_assistant.retrieval.tokenize import search_words


class WordHashEmbedder:
    """A deterministic embedder: each word adds to one of 384 numbers, so that texts with common words are near."""

    name = "word-hash"
    dimension = 384

    def __init__(self, folder: Path | None = None) -> None:
        self.embedded: list[str] = []

    def load(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def familiarity(self, text: str) -> Familiarity:
        """Return that every text is familiar."""
        return FAMILIAR

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each text."""
        self.embedded += texts
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in search_words(text) or [""]:
                row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self.dimension] += 1
            row /= np.linalg.norm(row)
        return rows
