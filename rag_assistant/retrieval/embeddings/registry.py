"""Which embedding model embeds new text, and whose vectors are searched until everything is re-embedded.

A model is identified by its vector for a fixed text, not by its name: an address may serve another one today.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rag_assistant.records import KnownEmbedder
from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings.minilm import FAMILIAR, Familiarity, Vectors

if TYPE_CHECKING:
    from rag_assistant.storage.documents.embeddings import EmbeddingStore

log = logging.getLogger(__name__)

PROBE_TEXT = "A lighthouse keeper counts the geese that rest on the rocks, 17 of them, before the fog comes in."
RETRY_INTERVAL_SECONDS = 30.0
SAME_MODEL = 0.99  # The cosine of two probes above which both are from one model; rounding changes the fourth decimal.

Source = dict[str, Any]


class EmbeddingModel(Protocol):
    """Turns texts into vectors, of any length."""

    name: str

    def load(self) -> None:
        """Load the model. Raises EmbedderFailed."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | Vectors:
        """Return one vector for each text. Raises EmbedderFailed."""

    def close(self) -> None:
        """Release its resources."""


class Embedder:
    """A loaded model whose vectors have length 1. They are stored under its ``key``, once it is recognised."""

    def __init__(self, model: EmbeddingModel) -> None:
        """Load a model and test it. Raises EmbedderFailed."""
        self.name = self.key = model.name
        self._model = model
        self._width: int | None = None
        try:
            model.load()
            (self.probe,) = self.embed([PROBE_TEXT])
        except EmbedderFailed:
            model.close()
            raise
        self._width = len(self.probe)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each text, as float32 rows. Raises EmbedderFailed."""
        return self._checked(texts, self._model.embed)

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return the same for questions, which some models treat differently. Raises EmbedderFailed."""
        return self._checked(texts, getattr(self._model, "embed_questions", self._model.embed))

    def _checked(self, texts: Sequence[str], embed: Callable[[Sequence[str]], Any]) -> Vectors:
        try:
            rows: Vectors = np.asarray(embed(texts), np.float32)
            sound = rows.ndim == 2 and len(rows) == len(texts) and rows.shape[1] > 0 and bool(np.isfinite(rows).all())
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise EmbedderFailed(
                f"The embedding model {self.name} did not give one vector of numbers for each of {len(texts)} texts."
            )
        if self._width is not None and rows.shape[1] != self._width:
            raise EmbedderFailed(
                f"The embedding model {self.name} gives {rows.shape[1]} numbers for a text and gave {self._width} "
                "before: another model stands there now. Restart the server to embed everything anew."
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def similarity(self, cosine: float) -> float:
        """Return a cosine of its vectors, scaled from about 0 for unrelated texts to 1.

        All thresholds and weights of cosines were tuned with a model that spreads them over all of 0 to 1; another
        model's ``cosine_range`` is scaled to that.
        """
        low, high = getattr(self._model, "cosine_range", (0.0, 1.0))
        return float((cosine - low) / (high - low))

    def familiarity(self, text: str) -> Familiarity:
        """Return how well the model knows a text; all of it if the model can't tell. Raises EmbedderFailed."""
        tells = getattr(self._model, "familiarity", None)
        return tells(text) if tells is not None else FAMILIAR

    def close(self) -> None:
        """Release the model's resources."""
        self._model.close()


class Embedders:
    """The configured model (``wanted``), and the one whose vectors are searched (``active``).

    ``make`` returns the model of a source's settings; it may raise EmbedderFailed.
    """

    def __init__(self, store: EmbeddingStore, source: Source, make: Callable[[Source], EmbeddingModel]) -> None:
        self._store = store
        self._source = source
        self._make = make
        self._lock = threading.Lock()
        self._configured: Embedder | None = None
        self._older: dict[str, Embedder] = {}
        self._older_tried: dict[str, float] = {}
        self.problem: str | None = None

    @property
    def loaded(self) -> bool:
        """Whether the configured model is loaded."""
        return self._configured is not None

    def configured(self) -> Embedder:
        """Return the configured model, loading and recognising it on first use. Raises EmbedderFailed."""
        if self._configured is None:
            with self._lock:
                if self._configured is None:
                    self._configured = self._recognise()
        return self._configured

    def serving(self, stored: KnownEmbedder | None = None) -> tuple[KnownEmbedder, Embedder] | None:
        """Return the model whose vectors are searched, with its embedder; ``None`` if it isn't available.

        It is the ``stored`` one, if the caller has read it already. It never waits for a model to load: until then
        there is no vector search.
        """
        if self._configured is None and self.problem is None:
            return None  # It is being loaded.
        stored = stored or self._store.serving()
        if stored is None:
            return None
        if self._configured is not None and stored.key == self._configured.key:
            return stored, self._configured
        if stored.key in self._older:
            return stored, self._older[stored.key]
        # Loaded in the background; an unavailable one is retried after a while.
        if time.monotonic() - self._older_tried.get(stored.key, -RETRY_INTERVAL_SECONDS) >= RETRY_INTERVAL_SECONDS:
            self._older_tried[stored.key] = time.monotonic()
            threading.Thread(target=self._open_older, args=(stored,), name="embedder", daemon=True).start()
        return None

    def close(self) -> None:
        """Release the models' resources."""
        if self._configured is not None:
            self._configured.close()
        for older in self._older.values():
            older.close()

    def _recognise(self) -> Embedder:
        try:
            embedder = Embedder(self._make(self._source))
        except EmbedderFailed as error:
            self.problem = str(error)
            raise
        self.problem = None
        stored = [one for one in self._store.models() if one.key.partition("#")[0] == embedder.name]
        same = (one.key for one in stored if _same(one, embedder.probe))
        # A key is never reused for another model: an external index may still have the old one's vectors.
        fresh = f"{embedder.name}#{hashlib.sha256(embedder.probe.tobytes()).hexdigest()[:8]}"
        key = next(same, fresh)
        self._store.keep(key, self._source, len(embedder.probe), embedder.probe.tobytes())
        embedder.key = key
        return embedder

    def _open_older(self, stored: KnownEmbedder) -> None:
        try:
            embedder = Embedder(self._make(stored.source))
        except EmbedderFailed as error:
            log.warning("Until everything is embedded anew, keywords search alone. %s", error)
            return
        if _same(stored, embedder.probe):
            self._older[stored.key] = embedder
        else:
            embedder.close()


def _same(stored: KnownEmbedder, probe: Vectors) -> bool:
    """Return whether a probe is from a known model."""
    if stored.dimension != len(probe):
        return False
    return stored.probe is None or float(np.frombuffer(stored.probe, np.float32) @ probe) >= SAME_MODEL
