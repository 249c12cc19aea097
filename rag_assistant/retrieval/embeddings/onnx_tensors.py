"""Read the weights of an ONNX model: the few parts of its file format (onnx.proto) that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assistant.retrieval.embeddings.onnx_graph import BYTES, FOUR_BYTES, NUMBER, TYPES

GRAPH, WEIGHT = 7, 5  # Of a model, and of its graph.
DIMENSION, TYPE, NAME, CONTENT = 1, 2, 8, 9  # Of a weight.
NAMES = {number: name for name, number in TYPES.items()}


def read_tensors(content: memoryview) -> dict[str, NDArray[Any]]:
    """Return the weights by their names, in the order of the file of which this is the content; nothing is copied.

    Types that ``onnx_graph`` does not write are left out.
    """
    graphs = (value for field, value in _fields(content) if field == GRAPH)
    weights = (value for graph in graphs for field, value in _fields(graph) if field == WEIGHT)
    return {name: tensor for weight in weights for name, tensor in _tensor(weight)}


def _tensor(data: memoryview) -> Iterator[tuple[str, NDArray[Any]]]:
    fields = list(_fields(data))
    values = dict(fields)
    if values[TYPE] in NAMES:
        shape = [value for field, value in fields if field == DIMENSION]
        yield bytes(values[NAME]).decode(), np.frombuffer(values[CONTENT], NAMES[values[TYPE]]).reshape(shape)


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield what a message holds: the number of each field, and a number or the bytes of its value."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == NUMBER:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        size, place = _varint(data, place) if kind == BYTES else ({FOUR_BYTES: 4}[kind], place)
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return a number and where it ends: seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
