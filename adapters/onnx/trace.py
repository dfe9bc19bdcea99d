"""The trace of an ONNX model: the nodes that its outputs depend on, with the shapes that ONNX infers.

Nothing runs. Constants give the trip count of a loop and the branch that is taken; a scan is as long as its input. If such
a value is not constant, or an operator is not part of ONNX, the trace is incomplete and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...core.records import INSIDE, UNENTERED, Op, Tensor, Trace
from ...products.files.model_file import FileError, show_name
from .external_data import value_of
from .functions import WRITTEN_OUT, write_out
from .load import Model, dtype_name
from .microsoft import INPUTS, MICROSOFT
from .turns import count_turns

OWN = ("", "ai.onnx")
"""The domain of ONNX's own operators."""

SIZES = frozenset([
    "kernel_shape", "strides", "dilations", "group", "num_groups", "hidden_size", "num_heads", "q_num_heads", "kv_num_heads",
    "blocksize", "size", "num_outputs", "num_scan_inputs", "output_height", "output_width", "output_shape",
])  # fmt: skip
"""Attributes of ONNX's own operators that state a size or a number, at least 1."""


def versions() -> dict[str, str]:
    """Version of the onnx package."""
    import onnx

    return {"onnx": str(onnx.__version__)}


class Scope:
    """Values by name in a graph and those around it: their types, and those that are constants."""

    def __init__(self, graph: Any, outer: Scope | None, constants: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.outer = outer
        self.types: dict[str, Tensor] = {}
        self.constants = dict(constants)
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.HasField("tensor_type"):
                self.types[value.name] = _tensor(value.type.tensor_type)
        for tensor in graph.initializer:
            self.types[tensor.name] = Tensor(tuple(tensor.dims), dtype_name(tensor.data_type))
            self.constants[tensor.name] = tensor
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in OWN and node.attribute[0].name == "value":
                tensor = node.attribute[0].t
                self.types.setdefault(node.output[0], Tensor(tuple(tensor.dims), dtype_name(tensor.data_type)))
                self.constants[node.output[0]] = tensor

    def type(self, name: str) -> Tensor:
        """Shape and dtype of a value; an unknown rank if neither is recorded."""
        known = self.types.get(name)
        if known is None:
            return Tensor(None, "float32") if self.outer is None else self.outer.type(name)
        return known

    def constant(self, name: str) -> Any:
        """The tensor that a constant is, None if it is none."""
        return self.constants.get(name, self.outer and self.outer.constant(name))

    def scalar(self, name: str) -> Any:
        """The number in a constant of one element; None for anything else."""
        tensor = self.constant(name)
        value = None if tensor is None or tuple(tensor.dims) not in ((), (1,)) else value_of(tensor)
        return None if value is None else value.reshape(-1)[0].item()


def _tensor(kind: Any) -> Tensor:
    if not kind.HasField("shape"):
        return Tensor(None, dtype_name(kind.elem_type))
    shape = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in kind.shape.dim)
    return Tensor(shape, dtype_name(kind.elem_type))


class Tracer:
    """Walks a graph and the graphs inside it."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        self.opsets = opsets
        self.ops: list[Op] = []
        self.untaken: list[str] = []

    def walk_model(self, model: Model) -> None:
        """Record every node that a model's outputs need."""
        self.walk(model.proto.graph, Scope(model.proto.graph, None, model.constants), "", "", 1, ())

    def walk(self, graph: Any, scope: Scope, prefix: str, layer: str, calls: int, within: tuple[str, ...]) -> None:
        """Record every node that the graph's outputs need."""
        alive = live(graph)
        for index, node in enumerate(graph.node):
            if index not in alive:
                continue
            id = prefix + (node.name or f"{node.op_type}_{index}")
            where = layer_of(node.name) or layer
            self.ops.append(self.record(node, id, where, scope, calls, within))
            if node.op_type in ("If", "Loop", "Scan", "SequenceMap") and node.domain in OWN:
                self._enter(node, id, where, scope, calls, within)

    def record(self, node: Any, id: str, layer: str, scope: Scope, calls: int, within: tuple[str, ...]) -> Op:
        """A node as an op, with the types that ``scope`` has."""
        own = node.domain in OWN
        attrs = {
            a.name: _plain(a) for a in node.attribute if a.type not in (4, 5, 9, 10, 11, 12)
        }  # no tensors, no graphs
        if own:
            _check_sizes(id, attrs)
            attrs["opset"] = self.opsets.get("", self.opsets.get("ai.onnx", 1))
        for name, given in zip(self._names(node), [*node.input, *[""] * 9]):  # noqa: B905
            if not given:
                attrs[name] = None
        if node.op_type in WRITTEN_OUT.get(node.domain, ()):
            attrs[INSIDE] = self._write_out(node, scope)
        if node.op_type == "Pow" and own:
            attrs["exponent"] = scope.scalar(node.input[1])
        inputs = tuple(scope.type(name) for name in node.input if name)
        outputs = tuple(scope.type(name) for name in node.output if name)
        kind = "onnx." + node.op_type if own else f"{node.domain}.{node.op_type}"
        return Op(id, kind, layer, inputs, outputs, attrs, calls, "forward", within)

    def _write_out(self, node: Any, scope: Scope) -> list[dict[str, Any]] | str:
        """The ops that a node's function runs, as data, or why they are not known."""
        inputs = [(name, scope.type(name), scope.constant(name)) for name in dict.fromkeys(node.input) if name]
        try:
            model = write_out(node, inputs, self.opsets)
        except Exception as error:  # whatever ONNX raises: the op has no work then, and says so
            return f"ONNX does not write out its function here ({show_name(error)})"
        inner = Tracer(self.opsets)
        inner.walk_model(model)
        return [op._asdict() for op in inner.ops]

    def _names(self, node: Any) -> list[str]:
        """Names of a node's inputs by its operator's schema."""
        import onnx

        version = self.opsets.get(node.domain, self.opsets.get("ai.onnx", 1))
        try:
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        except onnx.defs.SchemaError:
            return INPUTS.get(node.op_type, "").split() if node.domain == MICROSOFT else []
        return [i.name for i in schema.inputs if i.option != onnx.defs.OpSchema.FormalParameterOption.Variadic]

    def _enter(self, node: Any, id: str, layer: str, scope: Scope, calls: int, within: tuple[str, ...]) -> None:
        graphs = {a.name: a.g for a in node.attribute if a.type == 5}
        times = self._times(node, scope)
        if times is None:
            question = "which branch runs" if node.op_type == "If" else "how often this loop runs"
            self.ops[-1].attrs[UNENTERED] = f"{question} is not constant"
            return
        for name, graph in graphs.items():
            inner = f"{id}/{name}/"
            if times.get(name):
                self.walk(graph, Scope(graph, scope), inner, layer, calls * times[name], (*within, id))
            else:
                self.untaken += [inner + (n.name or f"{n.op_type}_{i}") for i, n in enumerate(graph.node)]

    def _times(self, node: Any, scope: Scope) -> dict[str, int] | None:
        """How often each inner graph runs per execution of the node, None if that is not constant."""
        if node.op_type == "If":
            taken = scope.scalar(node.input[0])
            return None if taken is None else {"then_branch" if taken else "else_branch": 1}
        if node.op_type == "SequenceMap":  # as long as its sequence, of which no length is recorded
            return None
        if (
            node.op_type == "Scan" and self.opsets.get("", 1) < 9
        ):  # over a batch, whose sequences are of their own lengths
            return None
        if node.op_type == "Scan":
            inputs = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
            shape = scope.type(node.input[len(node.input) - inputs]).shape
            axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [0])
            length = shape[axes[0]] if shape else None
            return None if length is None else {"body": length}
        trips = scope.scalar(node.input[0]) if node.input[0] else sys.maxsize
        start = scope.scalar(node.input[1]) if len(node.input) > 1 and node.input[1] else True
        if not isinstance(trips, int) or start is None:
            return None
        body = next(a.g for a in node.attribute if a.name == "body")
        if not start or trips <= 0:
            return {"body": 0}
        inside = Scope(body, scope)
        if not _goes_on(body, inside):
            trips = count_turns(body, trips, node.input[2:], inside.constant, self.opsets)
        elif trips == sys.maxsize:  # no limit
            return None
        return None if trips is None else {"body": trips}


def _check_sizes(id: str, attrs: Mapping[str, Any]) -> None:
    """Raise ValueError for an attribute that should be a size and is not."""
    for name in SIZES & attrs.keys():
        values = attrs[name] if isinstance(attrs[name], list) else [attrs[name]]
        if not all(isinstance(value, int) and value >= 1 for value in values):
            raise ValueError(f"{show_name(id)} has {name} {show_name(attrs[name])}, but a size must be at least 1")


def _goes_on(body: Any, scope: Scope) -> bool:
    """Whether a loop's body always says to go on: its condition is a constant, or its own input passed through."""
    name = body.output[0].name
    makers = {output: node for node in body.node for output in node.output}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    return name == body.input[1].name or bool(scope.scalar(name))


def live(graph: Any) -> set[int]:
    """Indices of the nodes that the outputs depend on; this includes values that an inner graph reads from outside."""
    needed = {output.name for output in graph.output}
    alive = set()
    for index in range(len(graph.node) - 1, -1, -1):  # nodes are in topological order (onnx/onnx.proto, GraphProto)
        node = graph.node[index]
        if needed & set(node.output):
            alive.add(index)
            needed |= set(node.input) | set(_read_names(node))
    return alive


def _read_names(node: Any) -> Iterable[str]:
    for attribute in node.attribute:
        if attribute.type == 5:
            for inner in attribute.g.node:
                yield from inner.input
                yield from _read_names(inner)
            yield from (output.name for output in attribute.g.output)


def _plain(attribute: Any) -> Any:
    import onnx

    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (int, float, str)):
        return value
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]


def layer_of(name: str) -> str:
    """Layer of a node that PyTorch named: ``layer1.0.conv`` of ``/layer1/layer1.0/conv/Conv``."""
    path = ""
    for part in name.split("/")[1:-1]:
        path = part if path and part.startswith(path + ".") else f"{path}.{part}" if path else part
    return path


def trace(model: Model, notes: tuple[str, ...] = ()) -> Trace:
    """Trace of one inference call of a model with its inputs fixed."""
    tracer = Tracer({opset.domain: opset.version for opset in model.proto.opset_import})
    try:
        tracer.walk_model(model)
    except (TypeError, ValueError, LookupError, StopIteration, RecursionError) as error:  # names that are not text, ...
        raise FileError(f"{model.where} is damaged: one of its nodes cannot be read ({show_name(error)}).") from error
    layers = tuple(dict.fromkeys(op.layer for op in tracer.ops))
    return Trace("onnx", versions(), "graph", tuple(tracer.ops), (), tuple(tracer.untaken), layers, notes)
