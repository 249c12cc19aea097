"""Write an ONNX model: the few parts of its file format (onnx.proto) that a transformer needs.

The package onnx would do it, too, and take 20 MB for these lines.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 9
OPSETS = {"": 20, "com.microsoft": 1}
FLOAT, UINT8, INT8, INT64 = 1, 2, 3, 7
TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int64": INT64}
# How a value of the protocol begins: a number, four bytes, or a length with so many bytes.
NUMBER, BYTES, FOUR_BYTES = 0, 2, 5
FLOAT_ATTRIBUTE, INT_ATTRIBUTE, INTS_ATTRIBUTE = 1, 2, 7


class Graph:
    """Collects nodes and weights; ``model`` returns the file."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        # What a weight begins with, and its content, which is copied only into the file.
        self._weights: list[tuple[bytes, memoryview]] = []
        self._count = 0

    def weight(self, values: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        name = self._fresh_name()
        dims = b"".join(_number(1, size) for size in values.shape)
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        described = dims + _number(2, TYPES[values.dtype.name]) + _text(8, name)
        self._weights.append((described + _head(9, len(content)), content))
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node and return the name of its output, or a list of names where it has several."""
        names = [self._fresh_name() for _ in range(outputs)]
        node = b"".join(_text(1, name) for name in inputs) + b"".join(_text(2, name) for name in names)
        node += _text(4, op) + b"".join(_bytes(5, _attribute(*one)) for one in attributes.items())
        self._nodes.append(node + (_text(7, domain) if domain else b""))
        return names if outputs > 1 else names[0]

    def model(self, inputs: dict[str, Sequence[int | str]], output: str) -> bytes:
        """Return the file of a model with these inputs of float32, by their shapes, and one output."""
        graph: list[bytes | memoryview] = [_bytes(1, node) for node in self._nodes]
        graph.append(_text(2, "graph"))
        for begin, content in self._weights:
            graph += [_head(5, len(begin) + len(content)) + begin, content]
        graph += [_bytes(11, _value(name, shape)) for name, shape in inputs.items()]
        graph.append(_bytes(12, _value(output, None)))
        opsets = b"".join(_bytes(8, _text(1, name) + _number(2, version)) for name, version in OPSETS.items())
        return b"".join([_number(1, IR_VERSION), opsets, _head(7, sum(map(len, graph))), *graph])

    def _fresh_name(self) -> str:
        self._count += 1
        return f"v{self._count}"


def _value(name: str, shape: Sequence[int | str] | None) -> bytes:
    """Return the description of an input or output; without a shape it may be any."""
    tensor = _number(1, FLOAT)
    if shape is not None:
        dims = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape)
        tensor += _bytes(2, b"".join(_bytes(1, dim) for dim in dims))
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + bytes([2 << 3 | FOUR_BYTES]) + struct.pack("<f", value) + _number(20, FLOAT_ATTRIBUTE)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, INT_ATTRIBUTE)
    return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, INTS_ATTRIBUTE)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | NUMBER) + _varint(value & (1 << 64) - 1)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _head(field, len(value)) + value


def _head(field: int, size: int) -> bytes:
    """Return what stands before so many bytes."""
    return _varint(field << 3 | BYTES) + _varint(size)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
