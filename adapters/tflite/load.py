"""Loads a TensorFlow Lite model from a file: its graphs as plain data, by the schema that TensorFlow ships; runs nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...core.protocol import ModelFile
from ...core.records import Shape
from ...products.files.model_file import FileError, Wanted, match_inputs, member, show_name
from ..shared.nested import Arguments
from .operators import attributes

ELEMENTS = 4096
"""The largest number of elements of a constant that is kept, since it may be a size or the limit of a loop."""
KEPT = ("int32", "int64", "bool", "float32")


class Value(NamedTuple):
    """A tensor as a file declares it. A size is None where it is open, the shape where even the rank is; ``constant`` is its
    array if it is a small constant, ``scales`` the number of its scales, 0 if it is not quantised; ``sparse`` says whether it is
    stored by its values alone."""

    name: str
    shape: Shape
    dtype: str
    constant: Any
    scales: int
    sparse: bool


class Operator(NamedTuple):
    """An operator: its name in the schema, its attributes (operators.py), and the indices of its tensors, -1 for none."""

    name: str
    attrs: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Graph(NamedTuple):
    """A graph, its operators in the order in which they run."""

    values: tuple[Value, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Model(NamedTuple):
    """The graphs of a file, which of them a call runs, and the shapes of its inputs."""

    where: str
    graphs: tuple[Graph, ...]
    main: int
    shapes: tuple[Shape, ...]


def ready() -> None:
    """Start the library before the guards are up."""
    _schema()


def _schema() -> Any:
    """The module of the schema's classes, which the FlatBuffers compiler wrote."""
    try:
        from tensorflow.lite.python import schema_py_generated
    except ImportError:  # it moves there
        from ai_edge_litert import schema_py_generated
    return schema_py_generated


@contextmanager
def refuse_damage(where: str) -> Iterator[None]:
    """Within this block, whatever reading a wrong offset, index or size raises becomes a FileError."""
    try:
        yield
    except (struct.error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise FileError(f"{where} is cut short or damaged: it cannot be read ({show_name(error)}).") from error


def load(file: ModelFile, given: Sequence[Any] | None) -> tuple[Model, Arguments]:
    """The model in the file and its inputs. Raises FileError."""
    with open(file.path, "rb") as data:
        return read_model(data.read(), member(file.path), given, file.signature)


def read_model(data: bytes, where: str, given: Sequence[Any] | None, signature: str = "") -> tuple[Model, Arguments]:
    """The model in these bytes, which come from ``where``, and its inputs: of its first graph, or of the one that a signature
    names. Raises FileError."""
    schema = _schema()
    with refuse_damage(where):
        proto = schema.ModelT.InitFromPackedBuf(data, 0)
        graphs = tuple(_read_graph(schema, proto, graph) for graph in proto.subgraphs)
        known = {each.signatureKey.decode(): each.subgraphIndex for each in proto.signatureDefs or ()}
        if signature and signature not in known:
            names = ", ".join(map(show_name, known)) or "none"
            raise FileError(f"{where} has no signature {signature!r}; it has {names}.")
        main = known.get(signature, 0)
        values = [pick(graphs[main].values, index) for index in pick(graphs, main).inputs]
    inputs = match_inputs(where, [Wanted(value.name, value.shape, value.dtype) for value in values], given)
    return Model(where, graphs, main, tuple(each.shape for each in inputs)), (tuple(inputs), {})


def pick(items: Sequence[Any], index: int) -> Any:
    """An item. Raises LookupError for an index below 0, too."""
    if index < 0:
        raise LookupError(f"there is no index {index}")
    return items[index]


def _read_graph(schema: Any, proto: Any, graph: Any) -> Graph:
    types = {number: name.lower() for name, number in vars(schema.TensorType).items() if name.isupper()}
    names = {number: name for name, number in vars(schema.BuiltinOperator).items() if name.isupper()}
    values = tuple(_read_value(types, proto, tensor) for tensor in graph.tensors or ())
    operators = []
    for each in graph.operators or ():
        code = pick(proto.operatorCodes, each.opcodeIndex)
        name = names[max(code.builtinCode, code.deprecatedBuiltinCode)]  # older files have the second alone
        if name == "CUSTOM":
            name = f"CUSTOM.{show_name(code.customCode.decode())}"
        options = each.builtinOptions if each.builtinOptions is not None else each.builtinOptions2
        attrs = attributes(vars(options) if options is not None else {})
        operators.append(Operator(name, attrs, _indices(each.inputs), _indices(each.outputs)))
    return Graph(values, tuple(operators), _indices(graph.inputs), _indices(graph.outputs))


def _indices(found: Any) -> tuple[int, ...]:
    return tuple(int(index) for index in (() if found is None else found))


def _read_value(types: dict[int, str], proto: Any, tensor: Any) -> Value:
    shape, signature, dtype = _indices(tensor.shape), _indices(tensor.shapeSignature), types[tensor.type]
    data = pick(proto.buffers, tensor.buffer).data
    held = data is not None and len(data) > 0
    sizes: Shape = tuple(None if open_ == -1 else size for size, open_ in zip(shape, signature or shape, strict=True))
    if any(size is not None and size < 0 for size in sizes or ()):
        raise ValueError(f"a size of {list(shape)} is below 0")
    if not (shape or held or tensor.hasRank):
        sizes = None
    scale = tensor.quantization.scale if tensor.quantization is not None else None
    return Value(
        tensor.name.decode() if tensor.name else "",
        sizes,
        dtype,
        _read_constant(data, dtype, shape) if held and dtype in KEPT and tensor.sparsity is None else None,
        0 if scale is None else len(scale),
        tensor.sparsity is not None,
    )


def _read_constant(data: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import numpy

    kind = numpy.dtype(dtype)
    if len(data) > ELEMENTS * kind.itemsize:
        return None
    return numpy.frombuffer(bytes(data), kind).reshape(shape)
