"""The trace of a TensorFlow model: the live ops of its concrete function, function bodies included.

Taken from the graph before anything is frozen or optimised.  Trip counts come from constant loop bounds, and the branch that
is taken from a constant predicate; how often any other body runs is counted in one run, at any depth (run_counts.py).
Run statistics are not used (they stop silently at 2^20 nodes).  Python 3.6, TensorFlow 1.12 and later.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ...core.records import BACKWARD, FORWARD, UNENTERED, Op, Problem, Tensor, Trace
from ..shared.refusal import CannotCount
from .graphs import dilated
from .graphs import graph as tf_graph
from .graphs.frames import executions
from .graphs.liveness import COMPILED, has, live_operations
from .graphs.loops import Constants, Frame, learn, strip, trip_count
from .graphs.run_counts import Body, place_in_calls, roles_of, steps_of
from .graphs.shapes import Bodies

UNREAD = {
    True: "how often this loop runs is not constant and could not be read from a run",
    False: "which branch runs is not constant and could not be read from a run",
}
"""Why a loop's body, or a branch, is not entered."""
LONGEST_RUN = 10000000
"""If an op would run more often than this, the model does not run to learn the shapes that its graph leaves open."""

Shapes = Dict[Tuple[str, int], Tuple[int, ...]]


def _open(tensor: Tensor) -> bool:
    """Whether the shape of a tensor is not fully known; that of a resource or a list of tensors does not matter."""
    return tensor.dtype not in ("resource", "variant") and (tensor.shape is None or None in tensor.shape)


class Tracer:
    """Walks a concrete function's graph. ``run`` says how often bodies ran in one run on the example input, ``look`` the
    shapes of such a run, by id and output; it is called if the graph leaves shapes open."""

    def __init__(
        self,
        scopes: tf_graph.Scopes,
        run: Callable[[List[Body]], Dict[Body, int]],
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
        self.wanted: List[Body] = []
        self.forward: Set[str] = set()
        self.runs: Dict[Body, int] = {}
        self.read = 0  # loops and branches whose runs were read

    def trace(self, graph: Any, outputs: List[Any], inputs: Sequence[Any] = (), gradients: Sequence[Any] = ()) -> None:
        """Record everything that runs to produce ``outputs`` of the outermost graph from ``inputs``.

        Ops that only the ``gradients`` need get the phase ``backward``.
        """
        live = live_operations(list(outputs) + list(gradients), inputs)
        forward = live_operations(outputs, inputs) if gradients else live
        self.forward = {tf_graph.canonical(name) for name in forward}
        self._decide(graph, live, None)
        if self.wanted:
            self._count_runs()
        self._walk(graph, live, "", "", 1, (), None)
        if self.read:
            self.notes.append(f"{self.read} loop counts or branches were read from one run on the example input")
        self._complete()
        dropped = dilated.note(self.ops[index] for index in self.crops)
        if dropped is not None:
            self.notes.append(dropped)

    def _count_runs(self) -> None:
        try:
            self.runs = self.run(self.wanted)
        except CannotCount as error:
            self.notes.append(f"no loop count and no branch was read from a run: {error}")

    def _decide(self, graph: Any, live: Dict[str, Set[int]], frame: Optional[Frame]) -> None:
        """List the bodies to count: those of the loops and the branches that constants do not determine."""
        for operation in graph.get_operations():
            if operation.name not in live or operation.type not in tf_graph.CALLS:
                continue
            try:
                bodies = self._bodies(operation, graph)
            except LookupError:
                continue  # _enter says so
            runs = self._constant_runs(operation, bodies, frame)
            roles = roles_of(operation.type, len(bodies))
            if runs is None:
                self.wanted += self._list_bodies(operation, frame)
            for role, body, times in zip(roles, bodies, runs or [1] * len(bodies)):
                if times:
                    inner = self._frame(operation, bodies, body, role, frame)
                    self._decide(body, _live_inside(inner, live[operation.name]), inner)

    @staticmethod
    def _frame(operation: Any, bodies: List[Any], body: Any, role: str, outer: Optional[Frame]) -> Frame:
        return Frame(operation, body, bodies[1] if operation.type.endswith("While") else body, outer, role)

    def _constant_runs(self, operation: Any, bodies: List[Any], frame: Optional[Frame]) -> Optional[List[int]]:
        """How often each body runs per call, None if constants do not determine it."""
        if operation.type.endswith("PartitionedCall"):
            return [1]
        if operation.type.endswith("While"):
            trips = trip_count(operation, bodies[0], bodies[1], frame, self.constants)
            if trips is None:
                return None
            learn(operation, bodies[1], trips, frame, self.constants)
            return [trips + 1, trips]
        taken = self.constants.value(strip(operation.inputs[0]), frame)
        if taken is None:
            return None
        if operation.type.endswith("If"):
            return [int(bool(taken)), int(not taken)]
        last = len(bodies) - 1
        chosen = taken if 0 <= taken <= last else last
        return [int(index == chosen) for index in range(len(bodies))]

    def _bodies(self, operation: Any, graph: Any) -> List[Any]:
        called = tf_graph.function_names(operation)
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
        live: Dict[str, Set[int]],
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
                self._enter(operation, live[operation.name], graph, id, where, times, within, frame)

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

    def _leave_unentered(self, why: str) -> None:
        """The last op runs others that are not known."""
        self.ops[-1] = self.ops[-1]._replace(attrs=dict(self.ops[-1].attrs, **{UNENTERED: why}))

    def _enter(
        self,
        operation: Any,
        results: Set[int],
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
            self._leave_unentered(str(error))
            return
        runs = self._runs(operation, bodies, calls, frame)
        if runs is None:
            self._leave_unentered(UNREAD[operation.type.endswith("While")])
            return
        for role, body, times in zip(roles_of(operation.type, len(bodies)), bodies, runs):
            inner = id + "/" + (role + "/" if role else "")
            next_frame = self._frame(operation, bodies, body, role, frame)
            live = _live_inside(next_frame, results)
            if times:
                self._walk(body, live, inner, layer, times, within + (id,), next_frame)
            else:
                self.untaken.extend(inner + op.name for op in body.get_operations() if op.name in live)

    def _runs(self, operation: Any, bodies: List[Any], calls: int, frame: Optional[Frame]) -> Optional[List[int]]:
        """How often each body runs in all of the ``calls``, None if that was not read."""
        constant = self._constant_runs(operation, bodies, frame)
        if constant is not None:
            return [calls * times for times in constant]
        bodies_counted = self._list_bodies(operation, frame)
        counted = [self.runs[body] for body in bodies_counted if body in self.runs]
        if len(counted) < len(bodies_counted):
            return None
        self.read += 1
        if operation.type.endswith("While"):
            (trips,) = counted
            if calls == 1:
                learn(operation, bodies[1], trips, frame, self.constants)
            return [trips + calls, trips]
        return counted if sum(counted) == calls else None

    @staticmethod
    def _list_bodies(operation: Any, frame: Optional[Frame]) -> List[Body]:
        """The bodies of a loop or a branch to count: the condition of a loop runs once more than its body, in each call."""
        steps = steps_of(operation)
        return [place_in_calls(frame, step) for step in (steps[1:] if operation.type.endswith("While") else steps)]


def _live_inside(frame: Frame, results: Set[int]) -> Dict[str, Set[int]]:
    """The live ops of a called function, of which these results are needed; a loop's condition gives its one."""
    outputs = tf_graph.graph_outputs(frame.graph, None if frame.role == "cond" else results)
    around: Optional[Frame] = frame
    while around is not None and not has(around.call.node_def, COMPILED):
        around = around.outer
    return live_operations(outputs, (), around is not None)


def trace_function(
    concrete: Any,
    scopes: Dict[str, str],
    run: Callable[[List[Body]], Dict[Body, int]],
    versions: Dict[str, str],
    notes: Tuple[str, ...] = (),
    look: Any = None,
) -> Trace:
    """Trace of a concrete function; ``scopes`` maps name scopes to layer paths, ``look`` is ``observed_shapes`` of model.py."""
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
