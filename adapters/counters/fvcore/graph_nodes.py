"""Nodes of a TorchScript graph as op records (name, shapes, arguments), and the nodes that dead-code elimination removed.

PyTorch eliminates them before fvcore counts. Python 3.8, torch 1.x and later.
"""

from collections import Counter
from typing import Any, Dict, Iterator, List, Tuple

import torch

from ....core.records import ELEMENTWISE, IN_PLACE, Op, Tensor
from ...pytorch.tracing.records import is_in_place, plain

RECURRENT = {"aten::gru": 1, "aten::lstm": 2, "aten::rnn_tanh": 1, "aten::rnn_relu": 1}


def value_record(value: Any) -> Tensor:
    """Shape and dtype of a graph value of tensor type; unknown sizes are None."""
    kind = value.type()
    sizes = kind.sizes()
    dtype = kind.scalarType() if hasattr(kind, "scalarType") else None
    return Tensor(None if sizes is None else tuple(sizes), DTYPES.get(str(dtype), str(dtype)))


DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
}
DTYPES.update({"Bool": "bool", "Byte": "uint8", "Short": "int16", "Char": "int8"})
DTYPES.update({"ComplexHalf": "complex32", "ComplexFloat": "complex64", "ComplexDouble": "complex128"})


def is_tensor(value: Any) -> bool:
    """Whether a graph value is one tensor."""
    return bool(value.type().kind() == "TensorType")


def elements(value: Any) -> List[Any]:
    """Tensor values in a graph value: itself, or the elements of a list or tuple made on the spot."""
    if is_tensor(value):
        return [value]
    if value.node().kind() in ("prim::ListConstruct", "prim::TupleConstruct"):
        return [v for part in value.node().inputs() for v in elements(part)]
    return []


def constant(value: Any) -> Any:
    """A graph value as a plain argument: constants, lists of them and sizes of tensors whose shape is known, else None."""
    node = value.node()
    if node.kind() == "prim::Constant":
        return plain(value.toIValue())
    if node.kind() == "prim::ListConstruct":
        return [constant(v) for v in node.inputs()]
    if node.kind() in ("aten::Int", "prim::NumToTensor"):  # what a size goes through on its way into an argument
        return constant(next(node.inputs()))
    if node.kind() == "aten::size":
        tensor, axis = node.inputs()
        sizes, index = tensor.type().sizes(), constant(axis)
        return sizes[index] if sizes is not None and index is not None else None
    return None


def argument_names(node: Any) -> List[str]:
    """Names of the node's arguments by its operator schema; positions where it has none."""
    try:
        schema = torch._C.parse_schema(node.schema())
        return [a.name for a in schema.arguments]
    except Exception:  # nodes without a schema (prim::PythonOp)
        return [f"arg{i}" for i in range(len(list(node.inputs())))]


def node_record(node: Any, id: str, layer: str) -> Op:
    """A graph node as a record, named like the dispatcher's op (``aten.linear``)."""
    kind = node.kind()
    if kind == "prim::PythonOp":
        kind = kind + "." + node.pyname()
    names = argument_names(node)
    inputs: List[Tensor] = []
    attrs: Dict[str, Any] = {}
    values = list(node.inputs())
    if kind in RECURRENT:
        return _recurrent(kind, values, node, id, layer)
    for position, value in enumerate(values):
        tensors = elements(value)
        if tensors:
            inputs.extend(value_record(v) for v in tensors)
        else:
            name = names[position] if position < len(names) else f"arg{position}"
            attrs[name] = constant(value)
    outputs = tuple(value_record(v) for v in node.outputs() if is_tensor(v))
    if is_in_place(kind.split("::")[-1]):
        attrs[IN_PLACE] = True
    if kind in CONTRACTIONS and multiplies_elements(node):
        attrs[ELEMENTWISE] = True
    return Op(id, op_name(kind), layer, tuple(inputs), outputs, attrs)


CONTRACTIONS = ("aten::tensordot", "aten::inner")
"""Operators that PyTorch runs as a matrix product or, since 2.8 by the operands' strides, element by element."""


def multiplies_elements(node: Any) -> bool:
    """Whether PyTorch runs this contraction element by element: its own gradient of the call on meta tells."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)  # the trace may be under way
    try:
        operands = [_without_memory(v) if is_tensor(v) else constant(v) for v in node.inputs()]
        with torch.enable_grad():
            step = getattr(torch.ops.aten, node.kind()[len("aten::") :])(*operands).grad_fn
    except (RuntimeError, TypeError):  # the graph does not know all sizes
        return False
    finally:
        torch._C._set_tracing_state(state)
    while step is not None and "Mul" not in step.name():
        step = step.next_functions[0][0] if step.next_functions else None
    return step is not None


def _without_memory(value: Any) -> torch.Tensor:
    kind = value.type()
    return torch.empty_strided(kind.sizes(), kind.strides(), device="meta", requires_grad=True)


def op_name(kind: str) -> str:
    """``aten.linear`` of ``aten::linear``, no in-place underscore."""
    name = kind.replace("::", ".")
    return name[:-1] if name.startswith("aten.") and name.endswith("_") and not name.endswith("__") else name


def _recurrent(kind: str, values: List[Any], node: Any, id: str, layer: str) -> Op:
    packed = is_tensor(values[1]) and not is_tensor(values[3]) and bool(elements(values[3]))
    states = elements(values[2] if packed else values[1])
    weights = elements(values[3] if packed else values[2])
    rest = [constant(v) for v in (values[4:] if packed else values[3:])]
    tensors = [values[0]] + ([values[1]] if packed else []) + states
    attrs = {
        "has_biases": bool(rest[0]),
        "num_layers": int(rest[1]),
        "bidirectional": bool(rest[4]),
        "batch_first": False if packed else bool(rest[5]),
        "packed": packed,
        "weights_at": len(tensors),
    }
    inputs = tuple(value_record(v) for v in tensors + weights)
    return Op(id, op_name(kind), layer, inputs, tuple(value_record(v) for v in node.outputs()), attrs)


def iterate_made(graph: Any) -> Iterator[Any]:
    """Nodes of an unfinished graph, whose scopes are still blocks: those that fvcore would see if the graph keeps them."""
    for node in graph.nodes():
        if not is_seen(node):
            for block in node.blocks():
                yield from iterate_made(block)
        elif any(map(is_tensor, node.outputs())):
            yield node


def is_seen(node: Any) -> bool:
    """Whether a node is an operator, or a call of Python code."""
    kind = str(node.kind())
    return not kind.startswith("prim::") or kind.startswith(("prim::PythonOp", "prim::CallFunction"))


def dropped_ops(made: List[Op], kept: List[Op]) -> List[Op]:
    """The floating-point nodes that dead-code elimination removed: no output of the model depends on them.

    PyTorch also gives nodes other names when it cleans the graph; one that is there under another name was kept.
    """
    names: Dict[Any, int] = Counter(map(kind_of, kept))
    shapes: Dict[Any, int] = Counter()
    gone = [op for op in made if not take(names, kind_of(op))]
    for kind, count in names.items():
        shapes[kind[1:]] += max(count, 0)
    return [
        op
        for op in gone
        if not take(shapes, kind_of(op)[1:]) and any("float" in t.dtype for t in op.inputs + op.outputs)
    ]


def kind_of(op: Op) -> Tuple[Any, ...]:
    """What two nodes have in common that do the same in the same module."""
    return op.op, op.layer, op.inputs, op.outputs


def take(left: Dict[Any, int], kind: Any) -> bool:
    """Take one of this kind from those that are left; whether there was one."""
    left[kind] -= 1
    return left[kind] >= 0
