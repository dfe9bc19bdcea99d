"""ONNX models out of files: parsed, checked and given shapes; nothing is run, and weights in other files are not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .model_file import FileError, Wanted, matched, member
from .nested import Arguments
from .onnx_shapes import inferred


def ready() -> None:
    """Start the library, before the guards are up."""
    import onnx.inliner
    import onnx.shape_inference  # noqa: F401


class Model:
    """A model with its inputs fixed and its shapes inferred, as far as ONNX can."""

    def __init__(self, proto: Any, where: str) -> None:
        self.proto = proto
        self.where = where


def load(file: Mapping[str, Any], given: Sequence[Any] | None) -> tuple[Model, Arguments]:
    """The model in the file and its inputs. Raises FileError."""
    import onnx
    from google.protobuf.message import DecodeError

    where = member(file["path"])
    try:
        with open(file["path"], "rb") as data:
            proto = onnx.load_model_from_string(data.read())
    except DecodeError as error:
        raise FileError(f"{where} is cut short or damaged: ONNX cannot parse it.") from error
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    held = {tensor.name for tensor in proto.graph.initializer}
    values = [value for value in proto.graph.input if value.name not in held]
    inputs = matched(where, [_wanted(value) for value in values], given)
    for value, known in zip(values, inputs):  # noqa: B905
        del value.type.tensor_type.shape.dim[:]
        for size in known.shape:
            value.type.tensor_type.shape.dim.add().dim_value = size
    del proto.graph.value_info[:]  # was inferred for other inputs
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        proto = inferred(proto)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        first = str(error).strip().splitlines()[0][:200]
        raise FileError(f"{where} cannot be given shapes: {first}.") from error
    return Model(proto, where), (tuple(inputs), {})


def _wanted(value: Any) -> Wanted:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return Wanted(value.name, None, "")
    shape = (
        [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim] if kind.HasField("shape") else None
    )
    return Wanted(value.name, None if shape is None else tuple(shape), dtype_name(kind.elem_type))


def dtype_name(number: int) -> str:
    """``float32`` of TensorProto.FLOAT."""
    import onnx

    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number).name)
    except KeyError:
        return "unknown"
