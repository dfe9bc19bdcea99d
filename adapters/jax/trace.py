"""The trace of a JAX model: the equations of its jaxpr that the outputs depend on, with what runs inside calls and loops.

The function is traced on shapes. A scan's length is in the jaxpr. How often the body of a ``while`` runs, each branch of a
``cond``, and what a kernel of Pallas skips at the places of its grid, is counted in a call of what decides it (run_counts.py),
which computes nothing else; where that needs values that are not at hand, the trace is incomplete, and names the loop, the
branch or the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax.interpreters import partial_eval

from ...core.records import BACKWARD, FORWARD, UNENTERED, Op, Problem, Trace
from . import records, run_counts
from .model import Call, versions
from .phases import PHASES_NOTE, mark_optimizer, phase_of

LOOP_LENGTH_UNKNOWN = (
    f"how often it runs depends on data that are not at hand, or it is more than {run_counts.MOST:,} times at once"
)
BRANCH_DEPENDS_ON_DATA = "which of its branches runs depends on data that are not at hand"
KERNEL_DEPENDS_ON_DATA = (
    "what its kernel runs depends on data that are not at hand or that it makes itself, or it decides at more than "
    f"{run_counts.MOST:,} places: "
)
"""The kernel's name follows."""
UNREAD = (LOOP_LENGTH_UNKNOWN, BRANCH_DEPENDS_ON_DATA, KERNEL_DEPENDS_ON_DATA)
READ_NOTE = "%d loop counts or branches were read from one call on the example input"
PROGRAMS_NOT_ENTERED = "it runs programs that this trace does not know how to enter"
OVER_DEVICES = ("psum", "psum2", "psum_invariant", "unreduced_psum", "pmax", "pmin", "reduce_scatter")
"""Primitives that make one array from the arrays of a group of devices."""
WITH_A_STEP = ("scatter", "reduce_and", "reduce_or", "reduce_xor", "argmax", "argmin")
"""Primitives that hold the program of one of their steps, which their name already says."""
EQUATIONS = "equations"
"""Attribute of an op: how many instructions of the program are calls of it, a loop's body once, or as often as it is unrolled."""
UNTAKEN = "untaken"
"""Attribute of an op in the body of a loop that runs 0 times: it has no calls, but the program has its instructions."""


def program(function: Callable[..., Any], arguments: Sequence[Any], kept: int | None = None) -> Any:
    """The closed jaxpr of a call, without the equations on which none of its (first ``kept``) results depends."""
    closed = jax.make_jaxpr(function)(*arguments)
    return live(closed, kept)


def live(closed: Any, kept: int | None = None) -> Any:
    """A closed jaxpr without the equations on which none of its (first ``kept``) results depends."""
    wanted = [kept is None or index < kept for index in range(len(closed.jaxpr.outvars))]
    needed, _ = partial_eval.dce_jaxpr(closed.jaxpr, wanted, instantiate=True)
    return closed.replace(jaxpr=needed)


def has_no_result(equation: Any) -> bool:
    """Whether no value comes out of an equation, a callback that only reports say, and it is given no mutable array to write to:
    then nothing that the model returns depends on it, whatever the host computes in it."""
    return not equation.outvars and not any(hasattr(atom.aval, "inner_aval") for atom in equation.invars)


def walk_program(closed: Any, root: str, values: Sequence[Any] = ()) -> Walk:
    """Every equation of a program that computes, in a call with these ``values`` of its first inputs, None where one is not
    known."""
    walk = Walk(root)
    walk.enter(closed, values)
    return walk


class Runs(NamedTuple):
    """How often a program runs, how often it stands in the program that JAX hands to XLA, and in which phase of a step.

    ``counts`` says how often bodies ran in each of the ``entries`` of the program around, in which this one is at ``path``."""

    calls: int = 1
    copies: int = 1
    phase: str = FORWARD
    counts: Mapping[run_counts.Path, int] = {}
    entries: int = 1
    path: run_counts.Path = ()

    def times(self, calls: int, copies: int = 1) -> Runs:
        """The runs within a loop of ``calls`` turns whose body is written ``copies`` times."""
        return self._replace(calls=self.calls * calls, copies=self.copies * copies)

    def within(self, place: int) -> Runs:
        """The runs of what is at this place of the program."""
        return self._replace(path=(*self.path, place))

    def count_of(self, body: int) -> int | None:
        """How often a body of the equation at this path ran, None if that is not known."""
        times = self.counts.get((*self.path, body))
        return None if times is None else times * self.entries


ONCE = Runs()


def copies(length: int, unroll: int) -> int:
    """How often the body of a scan stands in the program: a loop of ``unroll`` turns at once, and the rest behind it; without a
    loop, every turn (jax/_src/lax/control_flow/loops.py, _scan_impl)."""
    trips, rest = divmod(length, unroll) if unroll else (0, length)
    if unroll != 1 and (trips, rest) == (1, 0):
        trips, rest = 0, length
    return (unroll if trips else 0) + rest


class Walk:
    """Goes through a jaxpr and those inside it, and records every equation that computes."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.ops: dict[Any, Op] = {}
        self.problems: list[Problem] = []
        self.axes: dict[Any, int] = {}
        self.read = 0  # loops and branches whose runs the values of arguments decided
        self.equations: dict[Any, int] = {}

    def fresh(self) -> Walk:
        """A walk of the same kind that has met nothing yet."""
        return Walk(self.root)

    def devices(self, mapped: int) -> int:
        """On how many of these devices the walk goes through a program that is mapped over them: on all."""
        return mapped

    def enter(self, closed: Any, values: Sequence[Any] = (), runs: Runs = ONCE, names: tuple[str, ...] = ()) -> None:
        """Every equation of a program that runs so often within these scopes, each time with these ``values`` of its first
        inputs, None where one is not known."""
        counted = run_counts.count_runs(closed, values)
        self.read += counted.read
        self.through(closed, runs._replace(counts=counted.of, entries=runs.calls, path=()), names)

    def through(self, closed: Any, runs: Runs, names: tuple[str, ...]) -> None:
        """Every equation of a jaxpr that runs so often within these scopes."""
        for place, equation in enumerate(getattr(closed, "jaxpr", closed).eqns):
            own = runs.within(place)._replace(phase=phase_of(equation, runs.phase))
            self._equation(equation, own, names + records.scopes(equation))

    def _equation(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        name = equation.primitive.name
        if has_no_result(equation):
            return
        inner = run_counts.programs_of(equation)
        if name in ENTERED:
            ENTERED[name](self, equation, runs, names)
        elif name.startswith(WITH_A_STEP) or not any(map(records.is_program, equation.params.values())):
            self._record(equation, runs, names)
        elif inner:
            self.through(inner[0], runs.within(0), names)
        else:
            self._leave_unentered(equation, PROGRAMS_NOT_ENTERED, runs, names)

    def _scan(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        params = equation.params
        length = params["length"]
        if length:
            turns = runs.within(0).times(length, copies(length, int(params.get("unroll", 1))))
            self.through(params["jaxpr"], turns, names)

    def _while(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        inner, trips = run_counts.programs_of(equation), runs.count_of(run_counts.BODY)
        if trips is None:
            if any(map(records.has_non_integer_values, inner)):
                self._leave_unentered(equation, LOOP_LENGTH_UNKNOWN, runs, names)
            return
        for which, times in ((run_counts.CONDITION, runs.calls + trips), (run_counts.BODY, trips)):
            own = runs.within(which)._replace(calls=times)
            if times or not runs.calls:
                self.through(inner[which], own, names)
            else:
                self._untaken(inner[which], own, names)

    def _untaken(self, closed: Any, runs: Runs, names: tuple[str, ...]) -> None:
        """The body of a loop that does not run: XLA counts it all the same."""
        walk = self._aside(closed, runs, names)
        for key, op in walk.ops.items():
            self.add(op._replace(calls=0, attrs={**op.attrs, UNTAKEN: True}), walk.equations[key])

    def _aside(self, closed: Any, runs: Runs, names: tuple[str, ...]) -> Walk:
        """Another walk through a program."""
        walk = self.fresh()
        walk.axes = self.axes
        walk.through(closed, runs, names)
        return walk

    def _cond(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        branches = equation.params["branches"]
        counted = [runs.count_of(which) for which in range(len(branches))]
        if None not in counted:
            for which, times in enumerate(counted):
                if times:
                    self.through(branches[which], runs.within(which)._replace(calls=times), names)
            return
        walks = [self._aside(branch, runs.within(which), names) for which, branch in enumerate(branches)]
        if all(walk.is_complete() and walk.work() == walks[0].work() for walk in walks):
            self.take(walks[0])
        else:
            self._leave_unentered(equation, BRANCH_DEPENDS_ON_DATA, runs, names)

    def _pallas_call(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        """A kernel runs at each place of its grid; what it leaves out at a place is a branch of its program."""
        places = run_counts.places_of(equation)
        times = runs.count_of(0) if places is None else runs.calls * places
        body = runs.within(0)._replace(calls=times or 0)
        walk = self._aside(run_counts.programs_of(equation)[0], body, names)
        if times is None or not walk.is_complete():
            self._leave_unentered(equation, KERNEL_DEPENDS_ON_DATA + run_counts.kernel_name(equation), runs, names)
        elif times:
            self.take(walk)

    def _shard_map(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        """The body runs on every device of the axes that it is mapped over."""
        params, before = equation.params, self.axes
        sizes = dict(params["mesh"].shape)
        manual = params.get("newly_manual_axes") or params.get("manual_axes") or sizes  # the former from JAX 0.10 on
        mapped = {axis: sizes[axis] for axis in manual if axis not in params.get("auto", ())}
        self.axes = {**before, **mapped}
        self.enter(params["jaxpr"], (), runs.times(self.devices(math.prod(mapped.values()))), names)
        self.axes = before

    def _linear_solve(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        self.enter(equation.params["jaxprs"].solve, (), runs, names)

    def _reduce(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        """A reduction by a user's function: N - O calls of it, or of windows, window - 1 calls per output element."""
        out, window = records.elements(equation.outvars[0]), equation.params.get("window_dimensions")
        steps = records.elements(equation.invars[0]) - out if window is None else out * (math.prod(window) - 1)
        if steps > 0:
            self.enter(equation.params["jaxpr"], (), runs.times(steps, steps), names)

    def _record(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        op = self._op(equation, runs, names)
        axes = equation.params.get("axes", equation.params.get("axis_name"))
        if equation.primitive.name in OVER_DEVICES:
            groups, size = equation.params.get("axis_index_groups"), 1
            for axis in axes if isinstance(axes, tuple) else (axes,):
                size *= self.axes.get(axis, 1)
            size = len(groups[0]) if groups else size
            op = op._replace(attrs=dict(op.attrs, axis_size=size), calls=runs.calls // size)
        self.add(op, runs.copies)

    def _op(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> Op:
        return Op(
            "",
            "lax." + equation.primitive.name,
            records.layer_of(names, self.root),
            tuple(records.tensor(atom.aval) for atom in equation.invars),
            tuple(records.tensor(variable.aval) for variable in equation.outvars),
            records.attributes(equation.params),
            runs.calls,
            runs.phase,
        )

    def add(self, op: Op, equations: int = 1) -> None:
        """Add an op; an op that equals an earlier one adds to that one's calls."""
        key = records.identity_key(op)
        held = self.ops.get(key)
        self.equations[key] = self.equations.get(key, 0) + equations
        self.ops[key] = (
            op._replace(id=f"op{len(self.ops)}") if held is None else held._replace(calls=held.calls + op.calls)
        )

    def take(self, other: Walk) -> None:
        """Add the ops that another walk found."""
        for key, op in other.ops.items():
            self.add(op, other.equations[key])

    def is_complete(self) -> bool:
        """Whether all that runs is among its ops."""
        return not self.problems and not any(UNENTERED in op.attrs for op in self.ops.values())

    def work(self) -> dict[Any, int]:
        """The calls of every op, wherever it is, in any order."""
        found: dict[Any, int] = {}
        for op in self.ops.values():
            if not op.calls:
                continue
            key = records.identity_key(op._replace(layer=""))
            found[key] = found.get(key, 0) + op.calls
        return found

    def _leave_unentered(self, equation: Any, why: str, runs: Runs, names: tuple[str, ...]) -> None:
        """Record an equation whose programs run nobody knows how often: its work is unknown."""
        op = self._op(equation, runs, names)
        self.add(op._replace(attrs={**op.attrs, UNENTERED: why}), runs.copies)

    def _problem(self, equation: Any, reason: str, names: tuple[str, ...]) -> None:
        layer = records.layer_of(names, self.root)
        name = "lax." + equation.primitive.name
        self.problems.append(Problem(layer, name, f"{name}_{len(self.problems)}", reason))


ENTERED = {
    "scan": Walk._scan,
    "while": Walk._while,
    "cond": Walk._cond,
    "pallas_call": Walk._pallas_call,
    "shard_map": Walk._shard_map,
    "custom_linear_solve": Walk._linear_solve,
    "reduce": Walk._reduce,
    "reduce_window": Walk._reduce,
}
"""How to enter a primitive that does not run its programs exactly once."""


def trace(call: Call, notes: tuple[str, ...] = ()) -> Trace:
    """The trace of one call, which may be a user's own training step. Raises whatever the model raises when it is called."""
    walk = walk_program(mark_optimizer(program(call.function, call.arguments)), call.root, call.values)
    steps = any(op.phase == BACKWARD for op in walk.ops.values())
    return finish_trace(walk, (*notes, *((PHASES_NOTE,) if steps else ())))


def finish_trace(walk: Walk, notes: tuple[str, ...]) -> Trace:
    """The trace of a finished walk."""
    ops = tuple(op._replace(attrs={**op.attrs, EQUATIONS: walk.equations[key]}) for key, op in walk.ops.items())
    layers = tuple(dict.fromkeys(op.layer for op in ops))
    notes = (*((READ_NOTE % walk.read,) if walk.read else ()), *notes)
    return Trace("jax", versions(), jax.default_backend(), ops, tuple(walk.problems), (), layers, notes)
