"""Loads an ONNX model from a file or bytes: parsed, checked, inputs fixed, shapes inferred; runs nothing, opens no other file.

``check_expansion`` refuses a model whose functions call themselves or expand to more than NODES nodes (denial of service).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...core.protocol import ModelFile
from ...products.files.model_file import FileError, Wanted, match_inputs, member, show_name
from ..shared.nested import Arguments
from . import external_data
from .shapes import infer_types


def ready() -> None:
    """Start the library before the guards are up."""
    import onnx.checker
    import onnx.inliner
    import onnx.shape_inference  # noqa: F401


class Model:
    """A model with its inputs fixed and its shapes inferred, as far as ONNX can; ``constants`` are its values that can be
    computed, as tensors by name."""

    def __init__(self, proto: Any, where: str, constants: Mapping[str, Any]) -> None:
        self.proto = proto
        self.where = where
        self.constants = constants


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Model, Arguments]:
    """The model in the file and its inputs. Raises FileError."""
    with open(file.path, "rb") as data:
        return read_model(data.read(), member(file.path), given)


def read_model(data: bytes, where: str, given: Sequence[Any] | None) -> tuple[Model, Arguments]:
    """The model in these bytes, which come from ``where``, and its inputs. Raises FileError."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise FileError(f"{where} is cut short or damaged: ONNX cannot parse it.") from error
    check_expansion(where, proto)
    far = external_data.remove_references(proto)
    _check(where, proto, far)
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    initialized = {tensor.name for tensor in proto.graph.initializer}
    values = [value for value in proto.graph.input if value.name not in initialized]
    inputs = match_inputs(where, [_wanted_input(value) for value in values], given)
    for value, known in zip(values, inputs):  # noqa: B905
        del value.type.tensor_type.shape.dim[:]
        for size in known.shape or ():
            value.type.tensor_type.shape.dim.add().dim_value = size
    del proto.graph.value_info[:]  # these were inferred for other inputs
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        constants = infer_types(proto)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise FileError(
            _not_inferred(where, str(error), far) or f"{where} has shapes that ONNX cannot infer: {_first(error)}."
        ) from error
    except (LookupError, TypeError) as error:  # raised by the tables of types in ONNX
        raise FileError(f"{where} is damaged: a tensor in it has a type that ONNX does not know.") from error
    return Model(proto, where, constants), (tuple(inputs), {})


def _check(where: str, proto: Any, far: Collection[str]) -> None:
    """Let ONNX check a model, without the tensors that are stored in other files. Raises FileError with the message of ONNX."""
    import onnx

    if far:
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        proto = copy
        for tensor in filter(external_data.is_external, external_data.find_tensors(proto)):
            if any(size < 0 for size in tensor.dims):
                raise FileError(
                    f"{where} is not a valid ONNX model: its tensor {show_name(tensor.name)} has a size below 0."
                )
            tensor.dims[:] = [0]  # there is nothing to read
    try:
        onnx.checker.check_model(proto)
    except UnicodeDecodeError as error:
        raise FileError(f"{where} is damaged: a name in it is not text.") from error
    except (onnx.checker.ValidationError, ValueError) as error:
        raise FileError(f"{where} is not a valid ONNX model: {_first(error)}.") from error


def _not_inferred(where: str, message: str, far: Collection[str]) -> str:
    """The sentence on a shape that depends on a value in another file; '' if ONNX's message names no such value."""
    name = next((name for name in far if f"Tensor: {name} expected" in message), "")
    return name and (
        f"{where} keeps {show_name(name)} in another file, which is not opened, and the value decides a shape: save the model in "
        "one file (onnx.save with save_as_external_data=False)."
    )


def _first(error: Exception) -> str:
    """The first line of the message of ONNX, without its full stop."""
    return str(error).strip().splitlines()[0][:200].rstrip(".")


def _wanted_input(value: Any) -> Wanted:
    """An input as the file declares it; a size of 0 or below is open: exporters write it for a size that they do not know."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return Wanted(value.name, None, "")
    shape = [d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim] if kind.HasField("shape") else None
    return Wanted(value.name, None if shape is None else tuple(shape), dtype_name(kind.elem_type))


def dtype_name(number: int) -> str:
    """``float32`` of TensorProto.FLOAT."""
    import onnx

    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number).name)
    except KeyError:
        return "unknown"


NODES = 200_000
"""The most nodes of a model whose functions are written out. A large language model has fewer than a tenth of them."""

Name = tuple[str, str, str]
"""Domain, name and overload of a function, or of the operation that a node calls."""


def check_expansion(where: str, proto: Any) -> None:
    """Raise FileError for functions that call themselves, and for those that give more than NODES nodes: ten functions, each of
    which calls the next ten times, are 10^10."""
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in proto.functions}
    if not functions:
        return
    calls = {name: list(_called_functions(function.node)) for name, function in functions.items()}
    nodes: dict[Name, int] = {}
    for first in functions:
        pending, open_ = [first], set[Name]()
        while pending:
            name = pending[-1]
            inner = [call for call in calls[name] if call in functions and call not in nodes]
            looped = next((call for call in inner if call in open_ or call == name), None)
            if looped is not None:
                raise FileError(f"{where} is not a valid ONNX model: its function {show_name(looped[1])} calls itself.")
            if name not in nodes and inner:
                open_.add(name)
                pending.append(inner[0])
            else:
                nodes.setdefault(name, sum(nodes.get(call, 1) for call in calls[name]))
                open_.discard(name)
                pending.pop()
    total = sum(nodes.get(call, 1) for call in _called_functions(proto.graph.node))
    if total > NODES:
        raise FileError(
            f"{where} has {total:,} nodes if its functions are written out, more than the limit of {NODES:,}: export the model "
            "without functions, or a smaller one."
        )


def _called_functions(nodes: Any) -> Iterator[Name]:
    """What these nodes call, those of the graphs inside them included."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node.domain, node.op_type, getattr(node, "overload", "")
            for attribute in node.attribute:
                pending += [graph.node for graph in (attribute.g, *attribute.graphs) if graph.node]
