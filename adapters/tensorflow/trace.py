"""The trace of a TensorFlow model: the live ops of its concrete function, function bodies included.

Taken from the graph before anything is frozen or optimised.  Trip counts come from constant loop bounds, otherwise from
the loop counter fetched in one run; the branch that is taken comes from a constant predicate, otherwise from the predicate
fetched in that run.  Run statistics are not used (they stop silently at 2^20 nodes).  Python 3.6, TensorFlow 1.12 and later.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ...core.records import BACKWARD, FORWARD, Op, Problem, Tensor, Trace
from ..shared.refusal import CannotCount
from .graphs import dilated
from .graphs import graph as tf_graph
from .graphs.fetches import Fetch, fetch_of
from .graphs.frames import executions
from .graphs.loops import (
    Constants,
    Frame,
    counter_of,
    learn,
    strip,
    trip_count,
)
from .graphs.shapes import Bodies

LONGEST_RUN = 10000000
"""If an op would run more often than this, the model does not run to learn the shapes that its graph leaves open."""

Shapes = Dict[Tuple[str, int], Tuple[int, ...]]


def _open(tensor: Tensor) -> bool:
    """Whether the shape of a tensor is not fully known; that of a resource or a list of tensors does not matter."""
    return tensor.dtype not in ("resource", "variant") and (tensor.shape is None or None in tensor.shape)


class Tracer:
    """Walks a concrete function's graph. ``run`` gives the values of fetches from one run on the example input, ``look`` the
    shapes of such a run, by id and output; it is called if the graph leaves shapes open."""

    def __init__(
        self,
        scopes: tf_graph.Scopes,
        run: Callable[[List[Fetch]], Dict[Fetch, Any]],
        look: Optional[Callable[[], Shapes]] = None,
    ) -> None:
        self.scopes = scopes
        self.run = run
        self.look = look
        self.open: List[Tuple[int, Any, str]] = []
        self.constants = Constants()
        self.bodies = Bodies()
        self.ops: List[Op] = []
        self.problems: List[Problem] = []
        self.untaken: List[str] = []
        self.crops: List[int] = []
        self.notes: List[str] = []
        self.wanted: List[Fetch] = []
        self.forward: Set[str] = set()
        self.values: Dict[Fetch, Any] = {}

    def trace(self, graph: Any, outputs: List[Any], inputs: Sequence[Any] = (), gradients: Sequence[Any] = ()) -> None:
        """Record everything that runs to produce ``outputs`` of the outermost graph from ``inputs``.

        Ops that only the ``gradients`` need get the phase ``backward``.
        """
        live = tf_graph.live_operations(list(outputs) + list(gradients), inputs)
        forward = tf_graph.live_operations(outputs, inputs) if gradients else live
        self.forward = {tf_graph.canonical(name) for name in forward}
        self._decide(graph, live, None)
        if self.wanted:
            self._read()
        self._walk(graph, live, "", "", 1, (), None)
        self._complete()
        dropped = dilated.note(self.ops[index] for index in self.crops)
        if dropped is not None:
            self.notes.append(dropped)

    def _read(self) -> None:
        try:
            self.values = self.run(self.wanted)
        except CannotCount as error:
            self.notes.append(f"no loop count and no branch was read from a run: {error}")
        if self.values:
            self.notes.append(f"{len(self.values)} loop counts or branches were read from one run on the example input")

    def _decide(self, graph: Any, live: Set[str], frame: Optional[Frame]) -> None:
        """List the tensors to fetch: those of loops and branches outside all others that constants do not determine."""
        for operation in graph.get_operations():
            if operation.name not in live:
                continue
            if operation.type in ("While", "StatelessWhile"):
                cond, body = self._bodies(operation, graph)
                trips = trip_count(operation, cond, body, frame, self.constants)
                if trips is not None:
                    learn(operation, body, trips, frame, self.constants)
                else:
                    counter = counter_of(operation, body, frame, self.constants)
                    if counter is not None:
                        self._want(operation.outputs[counter[0]], frame)
            elif operation.type in ("If", "StatelessIf", "Case", "StatelessCase"):
                if self.constants.value(operation.inputs[0], frame) is None:
                    self._want(operation.inputs[0], frame)
            elif operation.type.endswith("PartitionedCall"):
                try:
                    (body,) = self._bodies(operation, graph)
                except LookupError:
                    continue  # _enter says so
                inside = tf_graph.live_operations(tf_graph.graph_outputs(body))
                self._decide(body, inside, Frame(operation, body, body, frame))

    def _want(self, tensor: Any, frame: Optional[Frame]) -> None:
        fetch = fetch_of(tensor, frame)
        if fetch is not None and fetch not in self.wanted:
            self.wanted.append(fetch)

    def _value(self, tensor: Any, frame: Optional[Frame]) -> Any:
        """The run's value of a tensor, None if it was not read."""
        fetch = fetch_of(tensor, frame)
        return None if fetch is None else self.values.get(fetch)

    def _bodies(self, operation: Any, graph: Any) -> List[Any]:
        names = tf_graph.attributes(operation)
        called: List[str] = []
        for attribute in tf_graph.CALLS[operation.type]:
            value = names[attribute]
            called.extend(value if isinstance(value, list) else [value])
        graphs = [tf_graph.function_graph(graph, name) for name in called]
        operands = list(operation.inputs)
        if operation.type.endswith("While"):
            return self.bodies.loop(graph, (called[0], called[1]), graphs[0], graphs[1], operands)
        if not operation.type.endswith("PartitionedCall"):
            operands = operands[1:]
        return [self.bodies.shape_body(graph, name, body, operands) for name, body in zip(called, graphs)]

    def _walk(
        self,
        graph: Any,
        live: Set[str],
        prefix: str,
        layer: str,
        calls: int,
        within: Tuple[str, ...],
        frame: Optional[Frame],
    ) -> None:
        runs = executions(graph, live, self.constants)
        for operation in graph.get_operations():
            if operation.name not in live or (prefix and operation.type == "Placeholder"):
                continue
            id = tf_graph.canonical(prefix + operation.name)  # a graph out of a file may have its loops lowered already
            where, phase = self.layer_and_phase(graph, operation.name, id, layer, within)
            if operation.name in runs.untaken:
                self.untaken.append(id)
                continue
            times = calls * runs.times.get(operation.name, 1)
            if operation.name in runs.unknown:
                self.problems.append(Problem(where, operation.type, id, runs.unknown[operation.name]))
                continue
            record = tf_graph.op_record(operation, id, where, times, phase, within)
            if any(_open(t) for t in record.inputs + record.outputs):
                self.open.append((len(self.ops), operation, prefix))
            if dilated.is_crop_of_convolution(operation):
                self.crops.append(len(self.ops))
            self.ops.append(record)
            if operation.type in tf_graph.CALLS:
                self._enter(operation, graph, id, where, times, within, frame)

    def layer_and_phase(self, graph: Any, name: str, id: str, layer: str, within: Tuple[str, ...]) -> Tuple[str, str]:
        """Layer and phase of an op; ``layer`` is that of the call around it."""
        phase = FORWARD if (within[0] if within else id) in self.forward else BACKWARD
        return self.scopes.layer(name) or layer, phase

    def _complete(self) -> None:
        """Fill in the shapes that the graph leaves open, as far as one run gives them."""
        if self.look is None or not self.open or max(op.calls for op in self.ops) > LONGEST_RUN:
            return
        try:
            known, filled = self.look(), 0
        except CannotCount as error:
            self.notes.append(f"no shape was read from a run: {error}")
            return
        for index, operation, prefix in self.open:
            record = self.ops[index]

            def full(tensors: Any, records: Tuple[Tensor, ...], prefix: str = prefix) -> Tuple[Tensor, ...]:
                ids = [(tf_graph.canonical(prefix + t.op.name), t.value_index) for t in tensors]
                return tuple(r._replace(shape=known.get(id, r.shape)) if _open(r) else r for id, r in zip(ids, records))

            inputs, outputs = full(operation.inputs, record.inputs), full(operation.outputs, record.outputs)
            self.ops[index] = record._replace(inputs=inputs, outputs=outputs)
            filled += self.ops[index] != record
        if filled:
            self.notes.append(f"shapes of {filled} ops were read from one run on the example input")

    def _enter(
        self,
        operation: Any,
        graph: Any,
        id: str,
        layer: str,
        calls: int,
        within: Tuple[str, ...],
        frame: Optional[Frame],
    ) -> None:
        try:
            bodies = self._bodies(operation, graph)
        except LookupError as error:
            self.problems.append(Problem(layer, operation.type, id, str(error)))
            return
        for role, body, times in self._times(operation, bodies, id, layer, frame):
            inner = id + "/" + (role + "/" if role else "")
            outputs = tf_graph.graph_outputs(body)
            live = tf_graph.live_operations(outputs)
            if times is None:
                self.untaken.extend(inner + op.name for op in body.get_operations() if op.name in live)
                continue
            loop_body = bodies[1] if operation.type.endswith("While") else body
            next_frame = Frame(operation, body, loop_body, frame)
            self._walk(body, live, inner, layer, calls * times, within + (id,), next_frame)

    def _times(
        self, operation: Any, bodies: List[Any], id: str, layer: str, frame: Optional[Frame]
    ) -> List[Tuple[str, Any, Optional[int]]]:
        """Which bodies run and how often per call: (role, graph, times), times None for one that does not run."""
        if operation.type.endswith("PartitionedCall"):
            return [("", bodies[0], 1)]
        if operation.type.endswith("While"):
            cond, body = bodies
            trips = self._trips(operation, cond, body, frame)
            if trips is None:
                reason = "how often this loop runs is not constant and could not be read from a run"
                self.problems.append(Problem(layer, operation.type, id, reason))
                return []
            learn(operation, body, trips, frame, self.constants)
            return [("cond", cond, trips + 1), ("body", body, trips or None)]
        predicate = strip(operation.inputs[0])
        taken = self.constants.value(predicate, frame)
        if taken is None:
            taken = self._value(operation.inputs[0], frame)
        if taken is None:
            reason = "which branch runs is not constant and could not be read from a run"
            self.problems.append(Problem(layer, operation.type, id, reason))
            return []
        if operation.type.endswith("If"):
            chosen = 0 if bool(taken) else 1
            return [(role, bodies[i], 1 if i == chosen else None) for i, role in enumerate(("then", "else"))]
        last = len(bodies) - 1
        chosen = int(taken) if 0 <= int(taken) <= last else last
        return [(f"branch{i}", body, 1 if i == chosen else None) for i, body in enumerate(bodies)]

    def _trips(self, operation: Any, cond: Any, body: Any, frame: Optional[Frame]) -> Optional[int]:
        trips = trip_count(operation, cond, body, frame, self.constants)
        if trips is not None:
            return trips
        counter = counter_of(operation, body, frame, self.constants)
        if counter is None:
            return None
        position, start, step = counter
        final = self._value(operation.outputs[position], frame)
        return None if final is None else (int(final) - start) // step


def trace_function(
    concrete: Any,
    scopes: Dict[str, str],
    run: Callable[[List[Fetch]], Dict[Fetch, Any]],
    versions: Dict[str, str],
    notes: Tuple[str, ...] = (),
    look: Any = None,
) -> Trace:
    """Trace of a concrete function; ``scopes`` maps name scopes to layer paths, and ``look`` is ``observed`` (model.py)."""
    tracer = Tracer(tf_graph.Scopes(scopes), run, look)
    tracer.trace(concrete.graph, tf_graph.graph_outputs(concrete.graph))
    return finish_trace(tracer, versions, notes)


def finish_trace(tracer: Tracer, versions: Dict[str, str], notes: Tuple[str, ...] = ()) -> Trace:
    """The trace record of a tracer."""
    layers: List[str] = []
    for op in tracer.ops:
        if op.layer not in layers:
            layers.append(op.layer)
    return Trace(
        "tf",
        versions,
        "graph",
        tuple(tracer.ops),
        tuple(tracer.problems),
        tuple(tracer.untaken),
        tuple(layers),
        tuple(tracer.notes) + tuple(notes),
    )
