"""Trip counts of while loops, and values of constant tensors, computed from a TensorFlow graph. Python 3.6, TF 1.12 and later.

A loop whose condition is a conjunction of ``counter < bound`` terms runs as often as its tightest term allows, if every
term is constant.  The iterations of any other loop are counted in one run (see run_counts.py).
"""

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from .graph import definition, v1

_LESS = {"Less": 0, "LessEqual": 1}
_GREATER = {"Greater": 0, "GreaterEqual": 1}


FLOW = frozenset(["Enter", "Exit", "Merge", "Switch", "NextIteration", "LoopCond"])
"""Ops of a loop in the graph itself: none of them has a value without the others."""


class Frame(NamedTuple):
    """A function call being traced: the call op, the function's graph, and the frame of the caller.

    ``body`` is the loop's body graph where the call is a While (the same as ``graph`` unless that is the condition).
    ``role`` says which of the call's functions it is (run_counts.py).
    """

    call: Any
    graph: Any
    body: Any
    outer: Any  # Optional[Frame]
    role: str


def strip(tensor: Any) -> Any:
    """The tensor behind any number of Identity ops."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def place_of(graph: Any, tensor: Any) -> Optional[int]:
    """The number of the graph's input that this tensor is; None if it is none."""
    for index, candidate in enumerate(graph.inputs):
        if candidate is tensor:
            return index
    return None


class Constants:
    """Values of tensors that depend only on constants; TensorFlow evaluates them, and they are remembered.

    Each tensor is kept beside its value: the id of one that is gone may be that of another.
    """

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[Any, Optional[int]]] = {}

    def value(self, tensor: Any, frame: Optional[Frame]) -> Optional[int]:
        """The scalar's value as an int (floats that are whole included), or None if it is not constant."""
        tensor = strip(tensor)
        if frame is not None:
            position = place_of(frame.graph, tensor)
            if position is not None:
                return self._argument(position, frame)
        key = id(tensor)
        if key not in self._known:
            self._known[key] = (tensor, _evaluate(tensor))
        return self._known[key][1]

    def learn(self, tensor: Any, value: int) -> None:
        """Remember the value of a tensor."""
        self._known[id(tensor)] = (tensor, value)

    def _argument(self, position: int, frame: Frame) -> Optional[int]:
        """Value of a function argument: that of the caller's operand, unless a loop changes it."""
        if frame.call.type in ("While", "StatelessWhile"):
            body = frame.body
            if position >= len(body.outputs) or strip(body.outputs[position]) is not body.inputs[position]:
                return None
        offset = 1 if frame.call.type in ("If", "StatelessIf", "Case", "StatelessCase") else 0
        return self.value(frame.call.inputs[position + offset], frame.outer)


def _evaluate(tensor: Any) -> Optional[int]:
    from tensorflow.python.framework import tensor_util

    value = tensor_util.constant_value(tensor)
    if value is None:
        value = _run_constant(tensor)
    if value is None or getattr(value, "size", 1) != 1:
        return None
    number = value.item() if hasattr(value, "item") else value
    return int(number) if number % 1 == 0 else None  # an infinity and a NaN have no remainder of 0


def _run_constant(tensor: Any) -> Any:
    """Evaluate a constant subgraph in a session of its own; None if it depends on anything that is not constant, or if
    TensorFlow cannot evaluate it."""
    import tensorflow as tf

    names: Set[str] = set()
    stack: List[Any] = [tensor.op]
    called: Dict[str, Any] = {}
    while stack:
        op = stack.pop()
        if op.name in names:
            continue
        if (not op.inputs and op.type != "Const") or len(names) > 64 or op.type in FLOW or _unsafe(op):
            return None
        if not _add_functions(tensor.graph, [op.node_def], called):
            return None
        names.add(op.name)
        stack.extend(t.op for t in op.inputs)
    part = v1().GraphDef()
    part.library.function.extend(called.values())
    for op in tensor.graph.get_operations():
        if op.name in names:
            node = part.node.add()
            node.CopyFrom(op.node_def)
            del node.input[:]
            node.input.extend(t.name for t in op.inputs)
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf.import_graph_def(part, name="")
        with v1().Session(graph=graph) as session:
            return session.run(tensor.name)
    except (tf.errors.OpError, ValueError):
        return None


def _add_functions(graph: Any, nodes: Iterable[Any], called: Dict[str, Any]) -> bool:
    """Add to ``called`` the definition of every function that the nodes call, and of those that these call. False if one is
    missing."""
    for node in nodes:
        for attribute in node.attr.values():
            listed = [attribute.func] if attribute.HasField("func") else list(attribute.list.func)
            for name in [function.name for function in listed]:
                if name in called:
                    continue
                called[name] = definition(graph, name)
                if called[name] is None or not _add_functions(graph, called[name].node_def, called):
                    return False
    return True


def _unsafe(op: Any) -> bool:
    definition = getattr(op, "op_def", None)
    return bool(
        definition is None or definition.is_stateful or any(t.dtype.base_dtype.name == "resource" for t in op.outputs)
    )


def trip_count(call: Any, cond: Any, body: Any, outer: Optional[Frame], constants: Constants) -> Optional[int]:
    """Iterations of a While op from constants alone, or None if any term of its condition is not constant."""
    return _terms(strip(cond.outputs[0]), call, cond, body, outer, constants)


def _terms(test: Any, call: Any, cond: Any, body: Any, outer: Optional[Frame], constants: Constants) -> Optional[int]:
    if test.op.type == "LogicalAnd":
        sides = [_terms(strip(t), call, cond, body, outer, constants) for t in test.op.inputs]
        if any(s is None for s in sides):
            return None
        return min(s for s in sides if s is not None)

    def start(variable: Any) -> Optional[int]:
        position = place_of(cond, strip(variable))
        return None if position is None else constants.value(call.inputs[position], outer)

    def step(variable: Any) -> Optional[int]:
        position = place_of(cond, strip(variable))
        return None if position is None else step_of(body, position, constants)

    def limit(tensor: Any) -> Optional[int]:
        return _find_bound(strip(tensor), call, cond, body, outer, constants)

    return bounded_iterations(test, start, step, limit)


def bounded_iterations(
    test: Any,
    start_of: Callable[[Any], Optional[int]],
    step_of_variable: Callable[[Any], Optional[int]],
    limit_of: Callable[[Any], Optional[int]],
) -> Optional[int]:
    """Iterations for which ``variable < bound`` (or <=, and the mirrored forms) holds, or None if not constant."""
    if test.op.type in _LESS:
        variable, bound = test.op.inputs
        closed = _LESS[test.op.type]
    elif test.op.type in _GREATER:
        bound, variable = test.op.inputs
        closed = _GREATER[test.op.type]
    else:
        return None
    start, step, limit = start_of(variable), step_of_variable(variable), limit_of(bound)
    if start is None or limit is None or step is None or step <= 0:
        return None
    return max(0, -((start - limit - closed) // step))


def _find_bound(
    tensor: Any, call: Any, cond: Any, body: Any, outer: Optional[Frame], constants: Constants
) -> Optional[int]:
    position = place_of(cond, tensor)
    if position is None:
        return constants.value(tensor, None)
    if strip(body.outputs[position]) is not body.inputs[position]:
        return None
    return constants.value(call.inputs[position], outer)


def step_of(body: Any, position: int, constants: Constants) -> Optional[int]:
    """The constant by which a loop variable grows in each iteration, or None."""
    result = strip(body.outputs[position])
    if result.op.type not in ("Add", "AddV2"):
        return None
    left, right = (strip(t) for t in result.op.inputs)
    if left is body.inputs[position]:
        return constants.value(right, None)
    if right is body.inputs[position]:
        return constants.value(left, None)
    return None


def learn(call: Any, body: Any, trips: int, outer: Optional[Frame], constants: Constants) -> None:
    """Remember the final counters of a loop with this trip count: the loop of its gradient runs as often."""
    for position, result in enumerate(call.outputs):
        if result.dtype.base_dtype.name in ("int32", "int64") and position < len(body.outputs):
            step, start = step_of(body, position, constants), constants.value(call.inputs[position], outer)
            if step is not None and start is not None:
                constants.learn(result, start + trips * step)
