"""The default embedding model: all-MiniLM-L6-v2 as int8 ONNX, 384 numbers, on this machine.

Chosen by measurement (docs/benchmarks.md). A text longer than the model reads is embedded window by window and
averaged, so that nothing of it is silently left out.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assistant.errors import EmbedderFailed, ModelFileMissing
from rag_assistant.retrieval.embeddings.familiarity import Familiarity, familiarity
from rag_assistant.runtime.model_files import EMBEDDING_MODEL, EMBEDDING_TOKENIZER

Vectors = NDArray[np.float32]

MAX_TOKENS = 256  # What the model was trained for; two of them are its marks for beginning and end.


class MiniLM:
    """Embeds texts; the model is loaded at the first use. Safe to use from several threads."""

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._session is not None

    def load(self) -> None:
        """Load the model, if it is not. Raises EmbedderFailed."""
        with self._lock:
            if self._session is None:
                self._tokenizer, self._session = self._open()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each text, as float32 rows. Raises EmbedderFailed.

        One text at a time: batches padded to their longest text were slower (18 chunks a second against 24).
        """
        self.load()
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed_one(text)
        if len(texts) > 1:
            return_freed_memory()
        return vectors

    def close(self) -> None:
        """There is nothing to give back before the process ends."""

    def familiarity(self, text: str) -> Familiarity:
        """Return how well the model knows a text (its first 256 tokens). Raises EmbedderFailed."""
        self.load()
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        unknown = self._tokenizer.token_to_id("[UNK]")
        seen = max((end for _, end in encoding.offsets), default=0)
        pieces = [
            (*offsets, word)
            for token, offsets, word in zip(encoding.ids, encoding.offsets, encoding.word_ids, strict=True)
            if token != unknown
        ]
        return familiarity(text[:seen], pieces)

    def _embed_one(self, text: str) -> Vectors:
        encoding = self._tokenizer.encode(text)
        windows = [encoding, *encoding.overflowing]
        total = np.zeros(self.dimension, dtype=np.float64)
        for window in windows:
            ids = np.array([window.ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            # No padding, so the mean over all tokens is the model's mean pooling; longer windows weigh more.
            total += self._session.run(None, inputs)[0][0].sum(axis=0)
        length = float(np.linalg.norm(total))
        return (total / length if length else total).astype(np.float32)

    def _open(self) -> tuple[Any, Any]:
        try:
            model, tokenizer_file = EMBEDDING_MODEL.checked(), EMBEDDING_TOKENIZER.checked()
        except ModelFileMissing as error:
            raise EmbedderFailed(f"The embedding model cannot be loaded. {error}") from error
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        session = open_session(str(model), self._threads)
        return_freed_memory()
        return tokenizer, session


def open_session(model: str | bytes, threads: int) -> Any:
    """Return what runs a model, given as a file's path or as its content."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning threads would burn a core between two questions; the arena would keep the largest batch's memory.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def return_freed_memory() -> None:
    """Give what was freed back to the system: after loading 63 of 229 MB, which glibc would keep for itself."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
