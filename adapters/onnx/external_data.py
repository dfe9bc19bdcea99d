"""Removes references to external data files from an ONNX model's tensors, so that no file it names is ever opened.

It does so before anything else reads the model. A tensor keeps its shape and its type, and ``value_of`` gives None for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DATA = frozenset((
    "raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data",
))  # fmt: skip
"""The fields of a tensor that hold its data."""


def remove_references(proto: Any) -> tuple[str, ...]:
    """Remove the references to other files from every tensor in the model, at any depth. Returns the names of these tensors."""
    import onnx

    names = []
    for tensor in find_tensors(proto):
        if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
            names.append(tensor.name)
            for field in ("external_data", "data_location", *DATA):
                tensor.ClearField(field)
    return tuple(names)


def find_tensors(message: Any) -> Iterator[Any]:
    """Every tensor in a message, at any depth."""
    import onnx

    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in [value] if hasattr(value, "ListFields") else value:
                if isinstance(each, onnx.TensorProto):
                    yield each
                else:
                    yield from find_tensors(each)


def is_external(tensor: Any) -> bool:
    """Whether the tensor has elements, but no data in the model's file."""
    return 0 not in tensor.dims and not any(field.name in DATA for field, _ in tensor.ListFields())


def value_of(tensor: Any) -> Any:
    """The tensor as an array; None if its data are in another file."""
    from onnx import numpy_helper

    return None if is_external(tensor) else numpy_helper.to_array(tensor)
