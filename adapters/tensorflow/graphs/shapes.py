"""Specialises function bodies of a graph to the shapes of each call, where their definition leaves sizes open.

A saved graph holds its functions as definitions, with the shapes of the original trace: a batch that was open then is open
in every loop body, whatever size is fed now.  Python 3.6, TensorFlow 2.x.
"""

from importlib.util import find_spec
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .graph import definition

OPAQUE = ("resource", "variant")

Sizes = Union[None, bytes, Tuple[Optional[int], ...]]
"""A shape, None for an unknown rank; for a resource or a list of tensors, the known shapes of its tensors."""


def sizes(tensor: Any) -> Sizes:
    """Static shape of a tensor, or of the tensors that it holds."""
    if tensor.dtype.base_dtype.name in OPAQUE:
        from tensorflow.python.ops import handle_data_util

        data = handle_data_util.get_resource_handle_data(tensor)
        if tensor.op.type == "TensorListFromTensor" and len(data.shape_and_type) == 1:
            data.shape_and_type[0].shape.CopyFrom(
                tensor.op.inputs[0].shape[1:].as_proto()
            )  # more than TensorFlow records
        return bytes(data.SerializeToString(deterministic=True)) if data is not None and data.is_set else None
    if tensor.shape.ndims is None:
        return None
    return tuple(getattr(d, "value", d) for d in tensor.shape.dims)


def merge_sizes(own: Sizes, handed: Sizes) -> Sizes:
    """The sizes that either shape knows. If they contradict each other, the first."""
    if isinstance(own, bytes) and isinstance(handed, bytes):
        return own if _contents(own) == _contents(handed) else handed
    if isinstance(own, bytes) or isinstance(handed, bytes):
        return handed or own
    if own is None or handed is None:
        return own if handed is None else handed
    if len(own) != len(handed):
        return own
    return tuple(b if a is None else a for a, b in zip(own, handed))


def _contents(data: bytes) -> List[Tuple[int, Optional[List[int]]]]:
    """dtype and shape of each tensor that a resource or a list holds."""
    tensors = _handle_data().FromString(data).shape_and_type
    return [(t.dtype, None if t.shape.unknown_rank else [d.size for d in t.shape.dim]) for t in tensors]


def _handle_data() -> Any:
    """The message that holds the shapes inside a resource; its module was in python/framework until TensorFlow 2.13."""
    try:
        from tensorflow.core.framework import cpp_shape_inference_pb2 as inference
    except ImportError:
        from tensorflow.python.framework import cpp_shape_inference_pb2 as inference
    return inference.CppShapeInferenceResult.HandleData


def available() -> bool:
    """Whether this TensorFlow tells the shapes inside resources; before 2.4 it does not, and bodies stay unchanged."""
    return find_spec("tensorflow.python.ops.handle_data_util") is not None


class Bodies:
    """Specialised bodies by function and shapes: each is made once and kept, because tensors are compared by identity."""

    def __init__(self) -> None:
        self._made: Dict[Tuple[int, str, Tuple[Sizes, ...]], Any] = {}
        self._available = available()

    def shape_body(self, graph: Any, name: str, body: Any, operands: Sequence[Any]) -> Any:
        """The body of a call, with the shapes of its operands."""
        if not self._available:
            return body
        wanted = [merge_sizes(sizes(parameter), sizes(operand)) for parameter, operand in zip(body.inputs, operands)]
        return self._with(graph, name, body, wanted)

    def loop(self, graph: Any, names: Tuple[str, str], cond: Any, body: Any, operands: Sequence[Any]) -> List[Any]:
        """Condition and body of a loop: a variable has its first value's shape only if every iteration keeps it."""
        if not self._available:
            return [cond, body]
        own = [sizes(tensor) for tensor in body.inputs]
        wanted = [merge_sizes(size, sizes(operand)) for size, operand in zip(own, operands)]
        while True:
            made = self._with(graph, names[1], body, wanted)
            grows = [i for i, out in enumerate(made.outputs) if wanted[i] != own[i] and sizes(out) != wanted[i]]
            if not grows:
                break
            wanted = [own[i] if i in grows else size for i, size in enumerate(wanted)]
        return [cond if made is body else self._with(graph, names[0], cond, wanted), made]

    def _with(self, graph: Any, name: str, body: Any, wanted: List[Sizes]) -> Any:
        if len(wanted) != len(body.inputs) or all(sizes(t) == size for t, size in zip(body.inputs, wanted)):
            return body
        key = (id(graph), name, tuple(wanted))
        if key not in self._made:
            self._made[key] = (graph, _make_body(graph, name, body, wanted))
        return self._made[key][1]


def _make_body(graph: Any, name: str, body: Any, wanted: List[Sizes]) -> Any:
    """The function's graph built again with these input shapes."""
    import tensorflow as tf
    from tensorflow.python.framework import function_def_to_graph as convert
    from tensorflow.python.framework.func_graph import FuncGraph
    from tensorflow.python.ops import handle_data_util

    function = definition(graph, name)
    if function is None:
        return body
    with graph.as_default():
        made = FuncGraph(name)
        made.shaped_from = body
        inside, flat = convert.function_def_to_graph_def(function)
        _drop_colocation(inside)
    arguments = function.signature.input_arg
    shapes = {a.name: tf.TensorShape(s).as_proto() for a, s in zip(arguments, wanted) if not isinstance(s, bytes)}
    holders = {}
    with made.as_default():
        for argument, parameter, size in zip(arguments, body.inputs, wanted):
            if isinstance(size, bytes):
                holder = tf.compat.v1.placeholder(parameter.dtype, parameter.shape, name=argument.name)
                handle_data_util.set_handle_data(holder, _handle_data().FromString(size))
                holders[argument.name] = holder
        nodes = [node for node in inside.node if node.name not in holders]
        del inside.node[:]
        inside.node.extend(nodes)
        for node in inside.node:
            node.attr.pop("_output_shapes", None)
            if node.name in shapes:
                node.attr["shape"].shape.CopyFrom(shapes[node.name])
        used = {text.split(":")[0] for node in inside.node for text in node.input}
        given = {key + ":0": holder for key, holder in holders.items() if key in used}
        tf.import_graph_def(inside, input_map=given, name="")
        made.inputs = [
            holders[a.name] if a.name in holders else made.get_tensor_by_name(flat[a.name]) for a in arguments
        ]
        ends = [flat[function.ret[a.name]] for a in function.signature.output_arg]
        made.outputs = [
            holders[e.split(":")[0]] if e.split(":")[0] in holders else made.get_tensor_by_name(e) for e in ends
        ]
        controls = [function.control_ret[c] for c in function.signature.control_output]
        made.control_outputs = [made.get_operation_by_name(c) for c in controls]
    return made


LOC = b"loc:@"
"""What a colocation begins with."""


def _drop_colocation(graph_def: Any) -> None:
    """Drop the wish of a node to be beside one that is not there, of which no graph is made.

    Keras 2.15 exports an Embedding so: beside a handle that has another number in the file.
    """
    names = {node.name for node in graph_def.node}
    for node in graph_def.node:
        beside = node.attr["_class"].list.s if "_class" in node.attr else ()
        if [each for each in beside if each.startswith(LOC) and each[len(LOC) :].decode() not in names]:
            del node.attr["_class"]
