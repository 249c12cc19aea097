"""The encoder of a BERT whose weights have 8 bits, written as an ONNX model. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.onnx_graph import Graph

MICROSOFT = "com.microsoft"
MEAN_OVER = np.array([1], np.int64)  # The tokens.
# Processors without VNNI add two products of 8 bits in 16, and cut off what does not fit. 255 * 128 always does; this
# does unless two neighbours both reach far, and comes nearest to the original (docs/benchmarks.md).
MAX_OF_TWO_WEIGHTS = 160


class Linear(Struct, frozen=True):
    """Weights of 8 bits (inputs x outputs) with a scale and a bias for each output.

    What comes in is rounded to 8 bits, too, over the range of a whole text. ``outliers`` are the inputs whose range is
    many times that of all others: they are multiplied as float32, so that they do not take the others' precision
    (Dettmers et al., LLM.int8(), 2022).
    """

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]
    outliers: tuple[int, ...] = ()


class Norm(Struct, frozen=True):
    """What a layer normalisation multiplies with, and what it adds."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


class Layer(Struct, frozen=True):
    """One layer: attention (queries, keys and values side by side), and what makes it wide and narrow again."""

    attention: Linear
    attended: Linear
    attended_norm: Norm
    wide: Linear
    narrow: Linear
    norm: Norm


def encoder_model(first: Norm, layers: Sequence[Layer], heads: int, epsilon: float) -> bytes:
    """Return an ONNX model from ``embeddings`` of one text (1 x tokens x numbers) to the mean of its tokens."""
    graph = Graph()

    def normalised(value: str, norm: Norm) -> str:
        scale, bias = graph.weight(norm.weight), graph.weight(norm.bias)
        return str(graph.add("LayerNormalization", value, scale, bias, axis=-1, epsilon=epsilon))

    state = normalised("embeddings", first)
    for layer in layers:
        joined = _linear(graph, state, layer.attention)
        query, key, value = graph.add("Split", joined, outputs=3, axis=-1, num_outputs=3)
        seen = graph.add("MultiHeadAttention", query, key, value, domain=MICROSOFT, num_heads=heads)
        state = normalised(graph.add("Add", state, _linear(graph, seen, layer.attended)), layer.attended_norm)
        wide = graph.add("Gelu", _linear(graph, state, layer.wide), domain=MICROSOFT)
        state = normalised(graph.add("Add", state, _linear(graph, wide, layer.narrow)), layer.norm)
    mean = graph.add("ReduceMean", state, graph.weight(MEAN_OVER), keepdims=0)
    return graph.model({"embeddings": (1, "tokens", len(first.weight))}, mean)


def _linear(graph: Graph, value: str, linear: Linear) -> str:
    """Add a multiplication with 8 bits, and one as float32 for the outliers."""
    codes, scales = without_overflow(linear.codes, linear.scales, linear.outliers)
    weights = (graph.weight(codes), graph.weight(scales), "", graph.weight(linear.bias))
    if not linear.outliers:
        return str(graph.add("DynamicQuantizeMatMul", value, *weights, domain=MICROSOFT))
    outliers = np.array(linear.outliers, np.int64)
    others = np.ones(len(linear.codes), np.float32)
    others[outliers] = 0
    rest = graph.add("DynamicQuantizeMatMul", graph.add("Mul", value, graph.weight(others)), *weights, domain=MICROSOFT)
    few = graph.add("Gather", value, graph.weight(outliers), axis=-1)
    return str(graph.add("Add", rest, graph.add("MatMul", few, graph.weight(linear.codes[outliers] * linear.scales))))


def without_overflow(
    codes: NDArray[np.int8], scales: NDArray[np.float32], unused: Sequence[int] = ()
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return weights (inputs x outputs) and their scales, rounded anew where two neighbours are too large together.

    ``unused`` inputs are always 0: their weights become 0.
    """
    codes = codes.copy()
    codes[list(unused)] = 0
    sizes = np.abs(codes).view(np.uint8)  # At most 127.
    largest = (sizes[0::2] + sizes[1::2]).max(axis=0, initial=1)
    factors = np.minimum(1, (MAX_OF_TWO_WEIGHTS - 1) / largest.astype(np.float32))  # Rounding adds up to 1.
    return np.rint(codes * factors).astype(np.int8), scales / factors
