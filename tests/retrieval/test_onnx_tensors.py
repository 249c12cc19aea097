"""Reading the weights of an ONNX model."""

import tracemalloc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.onnx_graph import Graph
from rag_assistant.retrieval.embeddings.onnx_tensors import read_tensors


def test_weights_are_read_as_they_were_written_and_in_their_order() -> None:
    given: list[NDArray[Any]] = [
        np.arange(-300, 300, dtype=np.float32).reshape(2, 300),
        np.array([[-128], [127]], np.int8),
        np.array([], np.int64),
        np.array(2.5, np.float32),
    ]
    graph = Graph()
    names = [graph.weight(one) for one in given]
    total = graph.add("ReduceSum", "x", keepdims=0)
    tensors = read_tensors(memoryview(graph.model({"x": (1, "tokens", 300)}, total)))
    assert list(tensors) == names
    for name, one in zip(names, given, strict=True):
        assert tensors[name].dtype == one.dtype
        assert np.array_equal(tensors[name], one)


def test_a_model_is_written_with_its_weights_in_memory_once_more() -> None:
    weights = np.zeros(2**20, np.float32)
    graph = Graph()
    graph.weight(weights)
    tracemalloc.start()
    graph.model({"x": (1,)}, "x")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.1 * weights.nbytes
