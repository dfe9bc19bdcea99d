"""Ledger of fvcore's FlopCountAnalysis, one entry per module and operator.

fvcore counts the nodes of a TorchScript trace, one by one.  That graph is kept as it goes by, so every node's shapes are
known as fvcore saw them, and what its handle returns for a node is noted with the node's module.  fvcore knows the modules
that ``named_modules`` lists; the layers that Keras holds in lists stand in its trace as well, under scopes that are not shown
to fvcore.  Python 3.6, torch 1.x and later.
"""

from collections import Counter
from numbers import Number
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from ...records import DEAD, MAC, Entry, Ledger, Op, Sighting, Tensor
from ..torch_model import ModulePath, TorchModel, versions
from ..torch_records import distribution_version, plain

COUNTER = "fvcore"
HIDDEN = (
    "fvcore itself books what Keras' layers do on the model around them, since named_modules does not list them; here it "
    "stands by layer"
)
RECURRENT = {"aten::gru": 1, "aten::lstm": 2, "aten::rnn_tanh": 1, "aten::rnn_relu": 1}


def value_record(value):
    # type: (Any) -> Tensor
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


def is_tensor(value):
    # type: (Any) -> bool
    """Whether a graph value is one tensor."""
    return bool(value.type().kind() == "TensorType")


def elements(value):
    # type: (Any) -> List[Any]
    """Tensor values in a graph value: itself, or the elements of a list or tuple made on the spot."""
    if is_tensor(value):
        return [value]
    if value.node().kind() in ("prim::ListConstruct", "prim::TupleConstruct"):
        return [v for part in value.node().inputs() for v in elements(part)]
    return []


def constant(value):
    # type: (Any) -> Any
    """A graph value as a plain argument: constants, lists of them and sizes of tensors whose shape is known, else None."""
    node = value.node()
    if node.kind() == "prim::Constant":
        found = value.toIValue()
        return plain(found)
    if node.kind() == "prim::ListConstruct":
        return [constant(v) for v in node.inputs()]
    if node.kind() in ("aten::Int", "prim::NumToTensor"):  # what a size goes through on its way into an argument
        return constant(next(node.inputs()))
    if node.kind() == "aten::size":
        tensor, axis = node.inputs()
        sizes, place = tensor.type().sizes(), constant(axis)
        return sizes[place] if sizes is not None and place is not None else None
    return None


def argument_names(node):
    # type: (Any) -> List[str]
    """Names of the node's arguments by its operator schema; positions where it has none."""
    try:
        schema = torch._C.parse_schema(node.schema())
        return [a.name for a in schema.arguments]
    except Exception:  # nodes without a schema (prim::PythonOp)
        return ["arg%d" % i for i in range(len(list(node.inputs())))]


def node_record(node, id, layer):
    # type: (Any, str, str) -> Op
    """A graph node as a record, named like the dispatcher's op (``aten.linear``)."""
    kind = node.kind()
    if kind == "prim::PythonOp":
        kind = kind + "." + node.pyname()
    names = argument_names(node)
    inputs = []  # type: List[Tensor]
    attrs = {}  # type: Dict[str, Any]
    values = list(node.inputs())
    if kind in RECURRENT:
        return _recurrent(kind, values, node, id, layer)
    for position, value in enumerate(values):
        found = elements(value)
        if found:
            inputs.extend(value_record(v) for v in found)
        else:
            name = names[position] if position < len(names) else "arg%d" % position
            attrs[name] = constant(value)
    outputs = tuple(value_record(v) for v in node.outputs() if is_tensor(v))
    return Op(id, op_name(kind), layer, tuple(inputs), outputs, attrs)


def op_name(kind):
    # type: (str) -> str
    """``aten.linear`` of ``aten::linear``, no in-place underscore."""
    name = kind.replace("::", ".")
    return name[:-1] if name.startswith("aten.") and name.endswith("_") and not name.endswith("__") else name


def _recurrent(kind, values, node, id, layer):
    # type: (str, List[Any], Any, str, str) -> Op
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


OURS = "layer:"
"""What starts a scope that is not fvcore's."""


class Scopes(ModulePath):
    """Opens a scope of its own in the trace for every module that fvcore does not know of."""

    def __init__(self, root):
        # type: (torch.nn.Module) -> None
        super(Scopes, self).__init__(root)
        self.known = {name: self._names[module] for name, module in root.named_modules()}
        self.hidden = set(self._names) - set(root.modules())
        self.made = []  # type: List[Tuple[str, Op]]  # every node of the trace with its scopes, also what PyTorch drops later

    def _push(self, module, inputs):
        # type: (torch.nn.Module, Any) -> None
        super(Scopes, self)._push(module, inputs)
        if module in self.hidden and torch._C._get_tracing_state():
            torch._C._get_tracing_state().push_scope(OURS + self.current)

    def _pop(self, module, inputs, outputs):
        # type: (torch.nn.Module, Any, Any) -> None
        super(Scopes, self)._pop(module, inputs, outputs)
        state = torch._C._get_tracing_state()
        if module in self.hidden and state:
            state.pop_scope()
        if module is self.root and hasattr(state, "graph"):
            self.made = [(node.scopeName(), node_record(node, "", "")) for node in made(state.graph())]


def made(graph):
    # type: (Any) -> Iterator[Any]
    """Nodes of a graph that is still being made, where scopes are blocks, of which fvcore would see those it keeps."""
    for node in graph.nodes():
        for block in node.blocks():
            for inner in made(block):
                yield inner
        if is_seen(node) and any(map(is_tensor, node.outputs())):
            yield node


def is_seen(node):
    # type: (Any) -> bool
    """Whether a node is an operator, or a call of Python code."""
    kind = str(node.kind())
    return not kind.startswith("prim::") or kind.startswith(("prim::PythonOp", "prim::CallFunction"))


def dropped(made, kept):
    # type: (List[Op], List[Op]) -> List[Op]
    """The floating-point nodes that were made and not kept: no output of the model depends on them.

    PyTorch also gives nodes other names when it cleans the graph; one that is there under another name was kept.
    """
    names, shapes = Counter(map(_kind, kept)), Counter()  # type: Counter[Any], Counter[Any]
    gone = [op for op in made if not _take(names, _kind(op))]
    for kind, count in names.items():
        shapes[kind[1:]] += count
    return [op for op in gone if not _take(shapes, _kind(op)[1:]) and any("float" in t.dtype for t in op.inputs + op.outputs)]


def _kind(op):
    # type: (Op) -> Tuple[Any, ...]
    return op.op, op.layer, op.inputs, op.outputs


def _take(left, kind):
    # type: (Counter[Any], Any) -> bool
    left[kind] -= 1
    return left[kind] >= 0


class Seen(object):
    """A node of the trace as fvcore sees it, without the scopes that are not its own."""

    def __init__(self, node):
        # type: (Any) -> None
        self._node = node

    def __getattr__(self, name):
        # type: (str) -> Any
        return getattr(self._node, name)

    def scopeName(self):
        # type: () -> str
        """Its scopes, from the outermost to the innermost."""
        return "/".join(part for part in self._node.scopeName().split("/") if not part.startswith(OURS))


class Walked(object):
    """The trace as fvcore walks it, node by node; the one it is at is known."""

    def __init__(self, graph):
        # type: (Any) -> None
        self.graph = graph
        self.at = None  # type: Any

    def nodes(self):
        # type: () -> Iterator[Seen]
        """Its nodes, in order."""
        for node in self.graph.nodes():
            self.at = node
            yield Seen(node)


def _whole(amount):
    # type: (Any) -> int
    if amount != int(amount):
        raise ValueError("fvcore reports %r, which is not a whole number" % (amount,))
    return int(amount)


def capture(counter, model):
    # type: (str, TorchModel) -> Ledger
    """Run FlopCountAnalysis on a fresh module (eval, no_grad) on ``model.device``."""
    from fvcore.nn import FlopCountAnalysis, jit_analysis

    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    scopes = Scopes(module)
    walked = []  # type: List[Walked]
    original = jit_analysis._get_scoped_trace_graph

    def kept(*args):
        # type: (*Any) -> Walked
        with scopes:
            walked.append(Walked(original(*args)))
        return walked[-1]

    def layer_of(scope):
        # type: (str) -> str
        innermost = scope.split("/")[-1]
        return (
            innermost[len(OURS) :]
            if innermost.startswith(OURS)
            else scopes.known[analysis.canonical_module_name(innermost)]
        )

    values = {}  # type: Dict[Tuple[str, str], int]

    def noted(kind, handle):
        # type: (str, Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]
        def handled(*values_of):
            # type: (*Any) -> Any
            found = handle(*values_of)
            for name, amount in ({entry_op(kind): found} if isinstance(found, Number) else found).items():
                key = (layer_of(walked[-1].at.scopeName()), name)
                values[key] = values.get(key, 0) + _whole(amount)
            return found

        return handled

    jit_analysis._get_scoped_trace_graph = kept
    try:
        with torch.no_grad():
            analysis = FlopCountAnalysis(module, inputs)
            analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
            analysis.set_op_handle(**{kind: noted(kind, handle) for kind, handle in analysis._op_handles.items()})
            total = _whole(analysis.total())
    finally:
        jit_analysis._get_scoped_trace_graph = original
    calls = {}  # type: Dict[Tuple[str, str], int]
    sightings = []  # type: List[Sighting]
    for node in walked[0].graph.nodes():
        if not is_seen(node):
            continue
        layer = layer_of(node.scopeName())
        op = node_record(node, "node%d" % len(sightings), layer)
        key = (layer, entry_op(node.kind()))
        calls[key] = calls.get(key, 0) + 1
        sightings.append(Sighting(op, "%s|%s" % key))
    all_made = [op._replace(layer=layer_of(scope)) for scope, op in scopes.made]
    for op in dropped(all_made, [s.op for s in sightings]):
        op = op._replace(id="node%d" % len(sightings))
        sightings.append(Sighting(op, "%s|%s" % (op.layer, op.op), DEAD))
    entries = [
        Entry("%s|%s" % key, key[0], key[1], amount, calls.get(key, 0)) for key, amount in values.items() if amount
    ]
    if sum(e.value for e in entries) != total:
        raise RuntimeError("fvcore's entries add up to %d, its total is %d" % (sum(e.value for e in entries), total))
    found = versions(module)
    found["fvcore"] = distribution_version("fvcore")
    unsupported = dict(analysis.unsupported_ops())
    notes = (HIDDEN,) if scopes.hidden else ()
    return Ledger(
        COUNTER, "torch", MAC, model.device, found, total, tuple(entries), tuple(sightings), unsupported, notes
    )


def entry_op(kind):
    # type: (str) -> str
    """The name under which fvcore books a node: without namespace, ``conv`` for _convolution (jit_handles.py:170)."""
    name = kind.split("::")[-1]
    return "conv" if name == "_convolution" else name
