"""Execution counts of each op of a graph with TensorFlow 1 control flow: Enter, Merge, Switch, NextIteration, Exit.

``tf.while_loop`` of TensorFlow 1 leaves its loop in the graph itself: one *frame* per loop, named by its Enter ops.
A loop condition made of ``counter < bound`` terms with constant start, step and bound gives the trip count, as in
loops.py.  Python 3.6, TensorFlow 1.12 and later.
"""

from typing import Any, Container, Dict, List, NamedTuple, Optional, Set

from .loops import Constants, bounded_iterations, strip

ROOT = ""


class Executions(NamedTuple):
    """``times``: executions by op name; ``unknown``: why an op's number is not known; ``untaken``: ops not run."""

    times: Dict[str, int]
    unknown: Dict[str, str]
    untaken: Set[str]


class Frames:
    """Frames of one graph: which op runs in which, and how often each iterates."""

    def __init__(self, graph: Any, live: Container[str], constants: Constants) -> None:
        self.constants = constants
        self.ops = [op for op in graph.get_operations() if op.name in live]
        self.frame: Dict[str, str] = {}
        self.parent = {ROOT: ROOT}
        for op in self._sort_ops():
            self.frame[op.name] = self._frame_of(op)

    def _sort_ops(self) -> List[Any]:
        """Ops after the ops they depend on; edges back into a loop (NextIteration to Merge) are left out."""
        done: Set[str] = set()
        order: List[Any] = []
        for start in self.ops:
            stack = [(start, False)]
            while stack:
                op, left = stack.pop()
                if left:
                    order.append(op)
                    continue
                if op.name in done:
                    continue
                done.add(op.name)
                stack.append((op, True))
                stack.extend((dep, False) for dep in _before(op) if dep.type != "NextIteration")
        return order

    def _frame_of(self, op: Any) -> str:
        around = [self.frame[dep.name] for dep in _before(op) if dep.name in self.frame]
        inner = max(around, key=self.depth) if around else ROOT
        if op.type in ("Enter", "RefEnter"):
            name = op.get_attr("frame_name")
            name = name.decode("utf-8") if isinstance(name, bytes) else str(name)
            self.parent[name] = inner
            return name
        if op.type in ("Exit", "RefExit"):
            return self.parent[inner]
        return inner

    def depth(self, frame: str) -> int:
        """Number of loops around an op of this frame."""
        count = 0
        while frame != ROOT:
            frame, count = self.parent[frame], count + 1
        return count

    def trips(self, frame: str) -> Optional[int]:
        """Iterations of the loop per entry, if constants determine them."""
        for op in self.ops:
            if op.type == "LoopCond" and self.frame[op.name] == frame:
                return self._terms(strip(op.inputs[0]))
        return None

    def _terms(self, test: Any) -> Optional[int]:
        if test.op.type == "LogicalAnd":
            sides = [self._terms(strip(t)) for t in test.op.inputs]
            return None if None in sides else min(s for s in sides if s is not None)
        return bounded_iterations(test, self._start, self._step, self._constant)

    def _constant(self, tensor: Any) -> Optional[int]:
        tensor = strip(tensor)
        while tensor.op.type == "Enter" or _is_unchanged(tensor.op):
            tensor = strip(tensor.op.inputs[0])
        return self.constants.value(tensor, None)

    def _start(self, tensor: Any) -> Optional[int]:
        merge = strip(tensor).op
        enters = [t for t in merge.inputs if t.op.type == "Enter"] if merge.type == "Merge" else []
        return self._constant(enters[0]) if len(enters) == 1 else None

    def _step(self, tensor: Any) -> Optional[int]:
        merge = strip(tensor).op
        turns = [t.op for t in merge.inputs if t.op.type == "NextIteration"] if merge.type == "Merge" else []
        if len(turns) != 1:
            return None
        result = strip(turns[0].inputs[0])
        if result.op.type not in ("Add", "AddV2"):
            return None
        for variable, other in (result.op.inputs, reversed(result.op.inputs)):
            switch = strip(variable).op
            if switch.type == "Switch" and switch.inputs[0].op is merge:
                return self._constant(other)
        return None


def _is_unchanged(op: Any) -> bool:
    """Whether an op is the Merge of a loop variable that every iteration passes on unchanged; its first input enters it."""
    if op.type != "Merge" or len(op.inputs) != 2 or op.inputs[1].op.type != "NextIteration":
        return False
    back = strip(op.inputs[1].op.inputs[0]).op
    return bool(op.inputs[0].op.type == "Enter" and back.type == "Switch" and back.inputs[0].op is op)


def _before(op: Any) -> List[Any]:
    return [t.op for t in op.inputs] + list(op.control_inputs)


def executions(graph: Any, live: Container[str], constants: Constants) -> Executions:
    """How often each live op of the graph runs in one evaluation of the outputs."""
    if not any(op.type in ("Enter", "RefEnter", "Switch") for op in graph.get_operations() if op.name in live):
        return Executions({}, {}, set())
    frames = Frames(graph, live, constants)
    bodies = _bodies(frames)
    times: Dict[str, int] = {}
    unknown: Dict[str, str] = {}
    untaken: Set[str] = set()
    known = {frame: frames.trips(frame) for frame in frames.parent if frame != ROOT}
    dead = _untaken(frames)
    for op in frames.ops:
        frame = frames.frame[op.name]
        count = 1
        innermost = True
        while frame != ROOT:
            trips = known[frame]
            if trips is None:
                unknown[op.name] = f"how often the loop {frame} runs is not constant"
                break
            # The condition runs once more than the body; an op of an outer iteration runs once in each.
            count *= trips + 1 if innermost and op.name not in bodies else trips
            innermost = False
            frame = frames.parent[frame]
        times[op.name] = count
        if op.name in dead or count == 0:
            untaken.add(op.name)
    return Executions(times, unknown, untaken)


def _bodies(frames: Frames) -> Set[str]:
    """Ops of a loop that run only while its condition holds: those behind the true side of its Switches."""
    in_body: Set[str] = set()
    for op in frames._sort_ops():
        if frames.frame[op.name] == ROOT:
            continue
        for tensor in op.inputs:
            loops = tensor.op.type == "Switch" and strip(tensor.op.inputs[1]).op.type == "LoopCond"
            if (loops and tensor.value_index == 1) or (tensor.op.name in in_body and op.type != "Exit"):
                in_body.add(op.name)
        if any(dep.name in in_body for dep in op.control_inputs):
            in_body.add(op.name)
    return in_body


def _untaken(frames: Frames) -> Set[str]:
    """Ops on the side of a v1 conditional that a constant predicate rules out; a Merge continues with the other side."""
    untaken: Set[str] = set()
    for op in frames._sort_ops():
        if op.type == "Merge":
            continue
        for tensor in op.inputs:
            if tensor.op.name in untaken:
                untaken.add(op.name)
            elif tensor.op.type == "Switch" and strip(tensor.op.inputs[1]).op.type != "LoopCond":
                taken = frames.constants.value(_default(tensor.op.inputs[1]), None)
                if taken is not None and bool(taken) != bool(tensor.value_index):
                    untaken.add(op.name)
        if any(dep.name in untaken for dep in op.control_inputs):
            untaken.add(op.name)
    return untaken


def _default(tensor: Any) -> Any:
    """The tensor that gives the value if nothing is fed: behind Identity, or the default of a PlaceholderWithDefault."""
    tensor = strip(tensor)
    while tensor.op.type == "PlaceholderWithDefault":
        tensor = strip(tensor.op.inputs[0])
    return tensor
