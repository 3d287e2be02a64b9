"""ONNX files: a graph of array operations, in the wire format of protocol buffers.

Only what exported policies need is written. The numbers are those of the fields in onnx.proto.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

IR_VERSION, OPSET = 8, 13
_TYPES = {"float32": 1, "float64": 11, "int8": 3, "int32": 6, "int64": 7, "bool": 9}
"""Numbers of the types of tensors."""
_FLOAT, _INT = 1, 2
"""Numbers of the types of attributes."""


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # negative numbers have ten bytes
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """Return a field: an integer, a float, or bytes with their length."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _tensor(name: str, array: np.ndarray) -> bytes:
    dims = b"".join(_field(1, size) for size in array.shape)
    data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    return dims + _field(2, _TYPES[array.dtype.name]) + _field(8, name) + _field(9, data)


def _value(name: str, dtype: Any, shape: Sequence[int]) -> bytes:
    """Return the description of an input or output whose first axis is the batch."""
    dims = [_field(2, "batch"), *(_field(1, size) for size in shape)]
    sizes = b"".join(_field(1, dim) for dim in dims)
    tensor = _field(1, _TYPES[np.dtype(dtype).name]) + _field(2, sizes)
    return _field(1, name) + _field(2, _field(1, tensor))


class Graph:
    """A graph that is built operation by operation."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []

    def input(self, name: str, dtype: Any, shape: Sequence[int]) -> str:
        """Add an input with rows of the given shape, and return its name."""
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, name: str, value: str, dtype: Any, shape: Sequence[int]) -> None:
        """Name a value as an output, with rows of the given shape."""
        self._nodes.append(_field(1, value) + _field(2, name) + _field(4, "Identity"))
        self._outputs.append(_value(name, dtype, shape))

    def constant(self, array: Any) -> str:
        """Add an array, and return its name."""
        name = f"c{len(self._tensors)}"
        self._tensors.append(_tensor(name, np.asarray(array)))
        return name

    def apply(self, operation: str, *inputs: str, **attributes: int | float) -> str:
        """Add an operation, and return the name of its result."""
        name = f"v{len(self._nodes)}"
        node = b"".join(_field(1, value) for value in inputs) + _field(2, name)
        node += _field(4, operation)
        for key, value in attributes.items():
            real = isinstance(value, float)
            content = _field(2 if real else 3, value) + _field(20, _FLOAT if real else _INT)
            node += _field(5, _field(1, key) + content)
        self._nodes.append(node)
        return name

    def model(self, name: str) -> bytes:
        """Return the content of an ONNX file."""
        parts = [(1, node) for node in self._nodes] + [(2, name)]
        parts += [(5, tensor) for tensor in self._tensors]
        parts += [(11, value) for value in self._inputs]
        parts += [(12, value) for value in self._outputs]
        graph = b"".join(_field(*part) for part in parts)
        opset = _field(1, "") + _field(2, OPSET)
        return _field(1, IR_VERSION) + _field(2, "rove") + _field(7, graph) + _field(8, opset)
