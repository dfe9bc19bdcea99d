"""Counts how often bodies of loops and branches run in one call of a graph, at any depth: each gets a counter of its own.

Every function that a counted body is reached through is copied for the call that reaches it, since several calls may share one.
A copy of a counted body adds 1 to a variable.  Python 3.6, TensorFlow 2.x.
"""

from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Tuple

from .graph import CALLS, session_of, v1
from .liveness import COMPILED, LOWERED, has


class Step(NamedTuple):
    """A call of a function in a graph: which of the graph's calls it is, in their order, and the function with its role there.

    The call's name does not tell: TensorFlow renames a node of a function that is called as one of the function's arguments.
    """

    call: int
    role: str
    function: str


Body = Tuple[Step, ...]
"""Where a body is: the calls that lead to it from the outermost graph."""

STATEFUL = {
    "StatelessWhile": "While",
    "StatelessIf": "If",
    "StatelessCase": "Case",
    "PartitionedCall": "StatefulPartitionedCall",
}
"""A call that may have no side effects, and the one that may."""
COUNTER = "counted_runs"
"""Begins the names of the counters and of what adds to them."""


def roles_of(call: str, bodies: int) -> List[str]:
    """The roles of the bodies of a call of this type."""
    if call.endswith("PartitionedCall"):
        return [""]
    if call.endswith("While"):
        return ["cond", "body"]
    return ["then", "else"] if call.endswith("If") else [f"branch{index}" for index in range(bodies)]


def steps_of(operation: Any) -> List[Step]:
    """The functions that an operation calls, in their order."""
    call = [each.name for each in operation.graph.get_operations() if each.type in CALLS].index(operation.name)
    return _steps(call, operation.node_def)


def _steps(call: int, node: Any) -> List[Step]:
    functions = _functions(node)
    return [Step(call, role, each.name) for role, each in zip(roles_of(node.op, len(functions)), functions)]


def place_in_calls(frame: Any, step: Step) -> Body:
    """Where a body is that this step from within ``frame`` leads to."""
    body = [step]
    while frame is not None:
        body.append(next(each for each in steps_of(frame.call) if each.role == frame.role))
        frame = frame.outer
    return tuple(reversed(body))


class CountedGraph(NamedTuple):
    """A definition of a graph that counts, and the name of the counter of each body; one that it has no place for is missing."""

    definition: Any
    counters: Dict[Body, str]


def count_bodies(definition: Any, wanted: Iterable[Body]) -> CountedGraph:
    """A copy of this definition in which each of these bodies has a counter of its runs."""
    made = v1().GraphDef()
    made.CopyFrom(definition)
    functions = {function.signature.name: function for function in made.library.function}
    counters: Dict[Body, str] = {}

    def enter(nodes: Any, around: Body, inside: FrozenSet[Body]) -> None:
        for call, node in enumerate([node for node in nodes if node.op in CALLS]):
            if has(node, COMPILED) or not any(body[len(around)].call == call for body in inside):
                continue
            for step, function in zip(_steps(call, node), _functions(node)):
                here = (*around, step)
                own = frozenset(body for body in inside if body[: len(here)] == here)
                if own and function.name in functions:
                    copy = made.library.function.add()
                    copy.CopyFrom(functions[function.name])
                    function.name = copy.signature.name = f"{function.name}_counted_{len(made.library.function)}"
                    copy.signature.is_stateful = True
                    enter(copy.node_def, here, own - {here})
                    if here in own:
                        counters[here] = f"{COUNTER}/{len(counters)}"
                        _add_counter(copy, counters[here])
            node.op = STATEFUL.get(node.op, node.op)
            node.attr.pop(LOWERED, None)

    enter(made.node, (), frozenset(wanted))
    return CountedGraph(made, counters)


def _functions(node: Any) -> List[Any]:
    values = [node.attr[attribute] for attribute in CALLS[node.op]]
    return [each for value in values for each in ([value.func] if value.HasField("func") else value.list.func)]


def _add_counter(function: Any, counter: str) -> None:
    """Let a function add 1 to a variable whenever it runs."""
    import tensorflow as tf

    whole = tf.int64.as_datatype_enum
    handle, one, add = (function.node_def.add() for _ in range(3))
    handle.name, handle.op = COUNTER + "_variable", "VarHandleOp"
    handle.attr["dtype"].type = whole
    handle.attr["shape"].shape.CopyFrom(tf.TensorShape(()).as_proto())
    handle.attr["shared_name"].s = counter.encode()
    one.name, one.op = COUNTER + "_one", "Const"
    one.attr["dtype"].type = whole
    one.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1, tf.int64))
    add.name, add.op = COUNTER + "_add", "AssignAddVariableOp"
    add.attr["dtype"].type = whole
    add.input.extend([handle.name + ":resource:0", one.name + ":output:0"])
    function.signature.control_output.append(add.name)
    function.control_ret[add.name] = add.name


def run_counted(
    graph: Any, counters: Dict[Body, str], start: Tuple[Any, Any], results: Iterable[Any], feeds: Any
) -> Dict[Body, int]:
    """How often each body ran in one run of a graph with counters. ``start`` is what runs first, and the values it is given."""
    import tensorflow as tf

    if not counters:
        return {}
    raw = tf.raw_ops
    with graph.as_default():
        handles = [raw.VarHandleOp(dtype=tf.int64, shape=(), shared_name=name, name=name) for name in counters.values()]
        zeros = [raw.AssignVariableOp(resource=handle, value=tf.constant(0, tf.int64)) for handle in handles]
        reads = [raw.ReadVariableOp(resource=handle, dtype=tf.int64) for handle in handles]
    with session_of(graph) as session:
        session.run(start[0], start[1])
        session.run(zeros)
        session.run([getattr(result, "op", result) for result in results], feeds)
        return {body: int(count) for body, count in zip(counters, session.run(reads))}
