"""Finds the ops of a TensorFlow graph that run to give the results that are used, and the role of each op. Python 3.6.

TensorFlow takes loops, branches and calls apart before it runs them, and drops then what no used result depends on
(grappler/optimizers/model_pruner.cc, function_optimizer.cc), so edges are followed through them, result by result. These run
whole: a call that XLA compiles; a loop or a branch without LOWERED, unless XLA compiles it; and a loop with side effects that
has to run, since what follows it waits for all its results (common_runtime/lower_while_op.cc, lowered_while_executed).
"""

from typing import Any, Dict, Iterable, Optional, Set, Tuple

from ....core.records import INITIALIZER, LIVE
from .graph import CALLS, definition, function_graph, function_names, graph_outputs

LOWERED = "_lower_using_switch_merge"
"""Attribute of a loop or a branch that TensorFlow takes apart."""
COMPILED = "_XlaMustCompile"
"""Attribute of a call that XLA compiles."""
APART = "_noinline"
"""Attribute of a function that stays one: it gives what is needed, from all that it takes."""

ASSIGNS = frozenset(["Assign", "AssignVariableOp"])


def has(node: Any, attribute: str) -> bool:
    """Whether a node or a function has this attribute, and it is true."""
    return bool(attribute in node.attr and node.attr[attribute].b)


def live_operations(outputs: Iterable[Any], inputs: Iterable[Any] = (), compiled: bool = False) -> Dict[str, Set[int]]:
    """Names of the operations that these tensors or operations depend on, by data and control edges, with the numbers of
    their results that are computed for them. ``compiled``: XLA compiles the graph.

    The ops that make the ``inputs`` are left out: a random input is not the model's work.
    """
    given = {tensor.op.name for tensor in inputs}
    needed: Dict[str, Set[int]] = {}
    calls: Dict[str, Any] = {}  # those of which more results are needed than were followed
    stack = list(outputs)
    while stack or calls:
        if not stack:
            operation = calls.popitem()[1]
            computed, operands = _follow(operation, needed[operation.name], compiled)
            needed[operation.name] = computed
            stack = [operation.inputs[place] for place in operands]
            continue
        item = stack.pop()
        operation = getattr(item, "op", item)
        if operation.name in given:
            continue
        first = operation.name not in needed
        known = needed.setdefault(operation.name, set())
        more = _results_of(item, operation, compiled) - known
        known |= more
        if first:
            stack.extend(operation.control_inputs)
        if operation.type in CALLS:
            if first or more:
                calls[operation.name] = operation
        elif operation.type == "IdentityN":
            stack.extend(operation.inputs[place] for place in more)
        elif first:
            stack.extend(operation.inputs)
    return needed


def _results_of(item: Any, operation: Any, compiled: bool) -> Set[int]:
    """The results that an edge from a tensor, or from an operation that has to run, asks for."""
    if item is not operation:
        return {item.value_index}
    whole = operation.type not in CALLS or (operation.type == "While" and not compiled)
    return set(range(len(operation.outputs))) if whole else set()


def _follow(operation: Any, results: Set[int], compiled: bool) -> Tuple[Set[int], Set[int]]:
    """The results that a call computes if these are needed, and which of its inputs it needs for them."""
    names, every = function_names(operation), set(range(len(operation.inputs)))
    try:
        bodies = [function_graph(operation.graph, name) for name in names]
    except LookupError:
        bodies = []
    if not bodies or not (compiled or _is_taken_apart(operation)):
        return set(range(len(operation.outputs))), every
    if operation.type.endswith("While"):
        condition, body = bodies
        while True:  # a variable of the loop is needed if the condition or one that is needed reads it
            wanted = results | _parameters(condition, None, compiled) | _parameters(body, results, compiled)
            if wanted == results:
                return results, results
            results = wanted
    chooses = int(not operation.type.endswith("PartitionedCall"))
    if not compiled and not chooses and has(definition(operation.graph, names[0]), APART):
        return results, every
    read = [place + chooses for body in bodies for place in _parameters(body, results, compiled)]
    return results, set(read) | set(range(chooses))


def _is_taken_apart(operation: Any) -> bool:
    if operation.type.endswith("PartitionedCall"):
        return not has(operation.node_def, COMPILED)
    return has(operation.node_def, LOWERED)


def _parameters(graph: Any, results: Optional[Set[int]], compiled: bool) -> Set[int]:
    """Which parameters a function reads for these of its results."""
    live = live_operations(graph_outputs(graph, results), (), compiled)
    return {place for place, tensor in enumerate(graph.inputs) if tensor.op.name in live}


def roles(graph: Any, outputs: Iterable[Any], inputs: Iterable[Any] = ()) -> Dict[str, str]:
    """The role of each operation of a graph, by name; an operation that is missing here is dead.

    Live: the outputs depend on it.  Initializer: not live, but a variable's assignment or a model input depends on it.
    """
    live = live_operations(outputs, inputs)
    makers = [op for op in graph.get_operations() if op.type in ASSIGNS and op.name not in live]
    role_by_name = dict.fromkeys(live_operations(makers + list(inputs)), INITIALIZER)
    role_by_name.update(dict.fromkeys(live, LIVE))
    return role_by_name
