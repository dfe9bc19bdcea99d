"""Reads TensorFlow graphs: nodes as op records, their ids and layers by name, function bodies; and makes sessions for them.

Python 3.6, TensorFlow 1.12 and later.
"""

import re
from typing import Any, Dict, List, Optional, Set, Tuple

from ....core.records import FORWARD, Op, Tensor

CALLS = {
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
}
"""Ops that call functions, and the attributes that name the functions."""

PLUMBING = frozenset(["Const", "Identity", "NoOp", "Placeholder", "ReadVariableOp", "VarHandleOp"])
"""Ops left out of the sightings: no counter has a formula for them and they do nothing."""


def v1() -> Any:
    """TensorFlow's v1 interface: ``tf.compat.v1``, or TensorFlow 1.12 itself, which has no such name."""
    import tensorflow as tf

    return getattr(tf.compat, "v1", tf)


def session_of(graph: Any, every_node: bool = False) -> Any:
    """A session that runs the graph's nodes by their names.

    Grappler's meta optimizer is off: it would fuse and rename nodes, and run counts are matched by name. The session itself
    still merges nodes that compute the same value and folds constants, unless ``every_node`` is set: then each node runs.
    """
    config = v1().ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    if every_node:
        config.graph_options.optimizer_options.opt_level = v1().OptimizerOptions.L0
    return v1().Session(graph=graph, config=config)


def tensor_record(tensor: Any) -> Tensor:
    """Static shape and dtype of a tf.Tensor."""
    shape = tensor.shape
    dims = None if shape.ndims is None else tuple(_dimension(d) for d in shape.dims)
    return Tensor(dims, tensor.dtype.base_dtype.name)


def _dimension(dim: Any) -> Optional[int]:
    value = getattr(dim, "value", dim)
    return None if value is None else int(value)


def attributes(operation: Any) -> Dict[str, Any]:
    """Attributes that formulas read, as JSON values; tensors and shapes are left out, functions kept by name."""
    attrs: Dict[str, Any] = {}
    for name, value in operation.node_def.attr.items():
        if name.startswith("_") and name != "_XlaMustCompile":
            continue
        kind = value.WhichOneof("value")
        if kind in ("i", "f", "b"):
            attrs[name] = getattr(value, kind)
        elif kind == "s":
            attrs[name] = _text(value.s)
        elif kind == "func":
            attrs[name] = value.func.name
        elif kind == "list":
            items = value.list
            attrs[name] = (
                list(items.i)
                or list(items.f)
                or list(items.b)
                or [_text(s) for s in items.s]
                or [f.name for f in items.func]
            )
    if operation.control_inputs:
        attrs["control_inputs"] = len(operation.control_inputs)
    return attrs


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def op_record(
    operation: Any, id: str, layer: str, calls: int = 1, phase: str = FORWARD, within: Tuple[str, ...] = ()
) -> Op:
    """One graph node as a record, shapes as the graph knows them now."""
    inputs = tuple(tensor_record(t) for t in operation.inputs)
    outputs = tuple(tensor_record(t) for t in operation.outputs)
    return Op(id, operation.type, layer, inputs, outputs, attributes(operation), calls, phase, within)


def graph_outputs(func_graph: Any, results: Optional[Set[int]] = None) -> List[Any]:
    """What a function graph is run for: its outputs, or those of these numbers, and its side effects."""
    outputs = [tensor for place, tensor in enumerate(func_graph.outputs) if results is None or place in results]
    return outputs + list(getattr(func_graph, "control_outputs", ()))


def function_names(operation: Any) -> List[str]:
    """The names of the functions that an operation calls, in their order."""
    attrs = attributes(operation)
    found: List[str] = []
    for attribute in CALLS.get(operation.type, ()):
        value = attrs.get(attribute, [])
        found.extend(value if isinstance(value, list) else [value])
    return found


def function_graph(graph: Any, name: str) -> Any:
    """The FuncGraph of a function known to ``graph``, always the same one. Raises LookupError if it is missing."""
    while graph is not None:
        functions = getattr(graph, "_functions", {})
        if name in functions:
            body = getattr(functions[name], "graph", None)
            if body is not None:
                return body
            made = getattr(graph, "made_from_definitions", None)
            if made is None:
                made = graph.made_from_definitions = {}
            if name not in made:  # tensors are compared by identity
                made[name] = _from_definition(graph, name)
            return made[name]
        graph = getattr(graph, "outer_graph", None)
    raise LookupError(f"function {name} is not in the graph")


def _from_definition(graph: Any, name: str) -> Any:
    from tensorflow.python.framework import function_def_to_graph as convert

    for definition in graph.as_graph_def().library.function:
        if definition.signature.name == name:
            return convert.function_def_to_graph(definition)
    raise LookupError(f"function {name} is not in the graph's library")


def definition(graph: Any, name: str) -> Any:
    """The FunctionDef of a function known to ``graph`` or to a graph around it, None if it is missing."""
    while graph is not None:
        function = getattr(graph, "_functions", {}).get(name)
        if function is not None:
            return getattr(function, "cached_definition", None) or getattr(function, "definition", None)
        graph = getattr(graph, "outer_graph", None)
    return None


def canonical(name: str) -> str:
    """Id of a node in the trace, from its name in a graph whose function calls were inlined.

    Lowering names an inlined node ``<call>/<role>/_<n>/<name>``; the trace knows it as ``<call>/<role>/<name>``.
    """
    return INLINED.sub(r"/\1/", name)


INLINED = re.compile(r"/(body|cond|then|else|branch_?\d*)/_\d+/")
"""What lowering puts between the name of a call and that of a node in its body."""
GRADIENTS = re.compile(r"gradients(_\d+)?$")
"""The name scope of ``tf.gradients``."""


class Scopes:
    """Maps name scopes to layer paths, as recorded while the layers were called; without layers, scopes are the paths."""

    def __init__(self, scopes: Dict[str, str]) -> None:
        self._scopes = scopes

    def layer(self, name: str) -> str:
        """Layer path of the node called ``name``: that of the longest recorded scope around it, '' if none.

        An inlined node belongs to the layer of its name in the body, as in the trace, else to that of the call.
        A gradient's node belongs to the layer of the op it is the gradient of: ``tf.gradients`` names it
        ``gradients/<op>_grad/...`` (python/ops/gradients_util.py, _GradientsHelper).
        """
        for body in reversed(list(INLINED.finditer(name)) if self._scopes else []):
            inner = self.layer(name[body.end() :])
            if inner:
                return inner
        parts = name.split("/")
        if GRADIENTS.match(parts[0]):
            parts = [part[:-5] if part.endswith("_grad") else part for part in parts[1:]]
        if not self._scopes:
            return ".".join(parts[:-1])
        for end in range(len(parts) - 1, 0, -1):
            path = self._scopes.get("/".join(parts[:end]))
            if path is not None:
                return path
        return ""
