"""Cache embeddings on disk: the benchmark's chunks take ten minutes."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rag_assistant.retrieval.embeddings.minilm import MiniLM, Vectors
from rag_assistant.retrieval.embeddings.multilingual_e5 import MultilingualE5

FILE = Path(__file__).resolve().parents[1] / "results" / "embeddings.sqlite"
MODELS = FILE.parent / "embedders"
TEXTS_AT_ONCE = 64


class KeptVectors:
    """Vectors by a hash of the model and the text."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(file, timeout=60, isolation_level=None, check_same_thread=False)
        self._kept.execute("PRAGMA journal_mode=WAL")
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def of(self, maker: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """Return one vector for each text; ``embed`` computes missing ones."""
        keys = [hashlib.sha256(f"{maker}\0{text}".encode()).digest() for text in texts]
        found = {key: vector for key in keys if (vector := self._read(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        waiting = list(missing.items())
        for start in range(0, len(waiting), TEXTS_AT_ONCE):
            some = waiting[start : start + TEXTS_AT_ONCE]
            rows = embed([text for _, text in some])
            fresh = {key: row for (key, _), row in zip(some, rows, strict=True)}
            self._kept.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(key, row.tobytes()) for key, row in fresh.items()]
            )
            found |= fresh
        return np.stack([found[key] for key in keys]) if keys else np.empty((0, 0), np.float32)

    def _read(self, key: bytes) -> Vectors | None:
        row = self._kept.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)


class CachedMiniLM(MiniLM):
    """The product's embedder, with cached vectors."""

    def __init__(self, file: Path = FILE) -> None:
        super().__init__(MODELS)
        self._kept = KeptVectors(file)

    @property
    def loaded(self) -> bool:
        """Always True: cached vectors need no model."""
        return True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each text."""
        return self._kept.of(self.name, texts, super().embed)


class CachedMultilingualE5(MultilingualE5):
    """The multilingual embedder, with cached vectors."""

    def __init__(self, file: Path = FILE) -> None:
        super().__init__()
        self._kept = KeptVectors(file)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each passage."""
        return self._kept.of(self.name, texts, super().embed)

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each question."""
        return self._kept.of(f"{self.name} question", texts, super().embed_questions)


Cached = CachedMiniLM | CachedMultilingualE5
