"""Make of the file of all-MiniLM-L6-v2 what is run: a table of tokens, and an encoder that multiplies with 8 bits.

The file has its weights in 8 bits, and makes float32 of them before it multiplies. For a short text that is mostly
reading 43 MB: this takes half the time and a quarter of the memory (docs/benchmarks.md).
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.encoder import Layer, Linear, Norm, encoder_model
from rag_assistant.retrieval.embeddings.onnx_tensors import read_tensors

HEADS, EPSILON = 12, 1e-12
MATRICES_OF_A_LAYER = 6
GIVEN = "inner.embeddings"
MATRIX = re.compile(r"val_\d+_q")
# What reaches further than 5 where half of all stay below 2, in questions and paragraphs of XQuAD: numbers of the
# hidden state, and for each layer of what lies between its two last matrices.
HIDDEN_OUTLIERS = (63, 99, 157, 223)
WIDE_OUTLIERS: tuple[tuple[int, ...], ...] = ((856,), (607,), (218, 1004), (358,), (), ())


class TokenTable(Struct, frozen=True, eq=False, weakref=True):
    """What each token, and each place in a text, begins with. The codes stay in the file, which is ``mapped``."""

    mapped: mmap.mmap
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    places: NDArray[np.float32]

    def embeddings(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return what the encoder gets for a text: tokens x numbers."""
        placed: NDArray[np.float32] = self.codes[ids] * self.scales[ids] + self.places[: len(ids)]
        return placed

    def give_back(self) -> None:
        """Leave the codes to the disk again: around each that is used the system keeps 64 kB in memory."""
        self.mapped.madvise(mmap.MADV_DONTNEED)


def read_minilm(path: Path) -> tuple[TokenTable, bytes]:
    """Return the table of tokens, which stays on the disk until it is looked into, and the encoder as an ONNX model."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    tensors = read_tensors(memoryview(mapped))
    # The matrices have no names of their own; they stand in the order in which they are used.
    matrices = [name for name in tensors if MATRIX.fullmatch(name)]
    layers = [
        _layer(tensors, number, matrices[number * MATRICES_OF_A_LAYER :][:MATRICES_OF_A_LAYER])
        for number in range(len(matrices) // MATRICES_OF_A_LAYER)
    ]
    encoder = encoder_model(_norm(tensors, GIVEN), layers, HEADS, EPSILON)
    return _token_table(mapped, tensors), encoder


def _token_table(mapped: mmap.mmap, tensors: dict[str, NDArray[Any]]) -> TokenTable:
    words, places = f"{GIVEN}.word_embeddings.weight", f"{GIVEN}.position_embeddings.weight"
    kinds = tensors[f"{GIVEN}.token_type_embeddings.weight"]
    placed = tensors[f"{places}_q"] * tensors[f"{places}_scale"] + kinds[0]
    return TokenTable(mapped, tensors[f"{words}_q"], tensors[f"{words}_scale"].copy(), placed)


def _layer(tensors: dict[str, NDArray[Any]], number: int, matrices: list[str]) -> Layer:
    prefix = f"inner.encoder.layer.{number}"

    def linear(names: list[str], biases: list[str], outliers: tuple[int, ...] = ()) -> Linear:
        return Linear(
            np.concatenate([tensors[name] for name in names], axis=1),
            np.concatenate([tensors[name.replace("_q", "_scale")][0] for name in names]),
            np.concatenate([tensors[f"{prefix}.{name}.bias"] for name in biases]),
            outliers,
        )

    *seen, attended, wide, narrow = matrices
    return Layer(
        linear(seen, [f"attention.self.{name}" for name in ("query", "key", "value")], HIDDEN_OUTLIERS),
        linear([attended], ["attention.output.dense"]),
        _norm(tensors, f"{prefix}.attention.output"),
        linear([wide], ["intermediate.dense"], HIDDEN_OUTLIERS),
        linear([narrow], ["output.dense"], WIDE_OUTLIERS[number]),
        _norm(tensors, f"{prefix}.output"),
    )


def _norm(tensors: dict[str, NDArray[Any]], name: str) -> Norm:
    return Norm(tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"])
