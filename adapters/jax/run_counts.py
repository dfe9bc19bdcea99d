"""Counts how often bodies of loops and branches run in one call of a program, at any depth, by running what decides that.

Of the program only the equations run on which a condition, or the index of a branch, depends, with a counter for each body; what
they do not need, most weights for example, needs no values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import jax
from jax import lax
from jax._src.interpreters.partial_eval import convert_constvars_jaxpr

from . import records

CALLED = (
    "jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "xla_metadata_call",
)  # fmt: skip
"""Primitives that run a program once."""
KERNEL = "pallas_call"
"""The primitive that runs a program of Pallas once for each place of its grid."""
OF_A_PLACE = ("program_id", "num_programs")
"""Primitives of a kernel that give its place along an axis of the grid, and that axis's size."""
MOST = 1_000_000
"""A loop with more turns at once is not counted: it may never end."""
ENDLESS: Path = ()
"""Counts the loops with more turns than that."""
CONDITION, BODY = 0, 1

Path = tuple[int, ...]
"""Where an equation is: its place in the program, with those of the equations and of their programs around it. Where a program of
an equation is: that, and which of them it is."""
Counts = dict[Path, Any]


class CountedRuns(NamedTuple):
    """``of`` each body: how often it ran; ``read``: for how many loops and branches the values of arguments said that."""

    of: Counts
    read: int = 0


class CannotFollow(Exception):
    """What decides depends on what no equation hands on, as a mutable array's values, or on what a kernel computes."""


def count_runs(closed: Any, values: Sequence[Any] = ()) -> CountedRuns:
    """How often bodies run in one call with these ``values`` of its first inputs, None where one is not known. Those of loops and
    branches that depend on others are missing, and all of them if what decides does not run here."""
    jaxpr = getattr(closed, "jaxpr", closed)
    given = [*values, *[None] * (len(jaxpr.invars) - len(values))]
    counted: dict[Path, int] = {}
    read = 0
    for path, bodies in find_decisions(closed):
        try:
            needed = [value for value, used in zip(given, Slice({path: bodies}).of(closed), strict=True) if used]
        except CannotFollow:
            continue
        if all(value is not None for value in needed):
            counted[path] = bodies
            read += bool(needed)
    if not counted:
        return CountedRuns({})
    part = Slice(counted)
    places = [place for place, used in enumerate(part.of(closed)) if used]

    def run_part(*needed: Any) -> dict[str, Any]:
        arguments: list[Any] = [None] * len(given)
        for place, value in zip(places, needed, strict=True):
            arguments[place] = value
        counts = part.run(closed, arguments, [False] * len(jaxpr.outvars), ())[1]
        return {repr(path): count for path, count in counts.items()}

    try:
        arrays = [
            each if isinstance(each, jax.Array) else jax.numpy.asarray(each) for each in map(given.__getitem__, places)
        ]
        found = jax.jit(run_part)(*arrays)
        counts = {path: int(found[repr(path)]) * part.alike(path) for path in part.zeros(())}
    except Exception:  # no memory for it, or it runs on other devices alone: nothing is counted
        return CountedRuns({})
    unknown = counts.pop(ENDLESS) or min(counts.values()) < 0  # more than an int32 holds
    return CountedRuns({}) if unknown else CountedRuns(counts, read)


def find_decisions(closed: Any, around: Path = ()) -> Iterator[tuple[Path, int]]:
    """The loops and grids whose length is not in the program and the branches, with the number of their bodies."""
    for place, equation in enumerate(getattr(closed, "jaxpr", closed).eqns):
        here, inside = (*around, place), programs_of(equation)
        if equation.primitive.name in ("while", "cond") or places_of(equation) is None:
            yield here, len(inside)
        for which, inner in enumerate(inside):
            yield from find_decisions(inner, (*here, which))


def programs_of(equation: Any) -> Sequence[Any]:
    """The programs of an equation that are followed here."""
    name, params = equation.primitive.name, equation.params
    if name == "while":
        return params["cond_jaxpr"], params["body_jaxpr"]
    if name == "cond":
        return tuple(params["branches"])
    if name in (KERNEL, "run_scoped"):
        return (convert_constvars_jaxpr(getattr(params["jaxpr"], "jaxpr", params["jaxpr"])),)
    inside = [params[key] for key in records.JAXPR_PARAMS if key in params]
    return inside if name == "scan" or (name in CALLED and len(inside) == 1) else ()


def places_of(equation: Any) -> int | None:
    """How many places a kernel's grid has, None if a value decides that; 1 for what is no kernel."""
    grid = equation.params["grid_mapping"].grid if equation.primitive.name == KERNEL else ()
    return prod(grid) if all(isinstance(size, int) for size in grid) else None


def kernel_name(equation: Any) -> str:
    """A kernel's own name: the one that the call gives it, or else its function's."""
    params = equation.params
    name = params.get("name") or getattr(params.get("name_and_src_info"), "name", "")  # the latter before JAX 0.10
    return str(name or params["jaxpr"].debug_info.func_name)


def _may_be_written(kernel: Any) -> list[bool]:
    """Which references that a kernel takes it may write to."""
    effects = [each for each in kernel.effects if type(each).__name__ != "ReadEffect"]
    written = [getattr(each, "input", getattr(each, "input_index", None)) for each in effects]
    return [place in written or variable in written for place, variable in enumerate(kernel.invars)]


def _is_reference(atom: Any) -> bool:
    return hasattr(atom.aval, "inner_aval")


def _either(first: Sequence[bool], second: Sequence[bool]) -> list[bool]:
    return [a or b for a, b in zip(first, second, strict=True)]


class Slice:
    """What of a program says how often the bodies of the loops and branches ``counted`` run; their number by path."""

    def __init__(self, counted: Mapping[Path, int]) -> None:
        self.counted = counted
        self.grid: list[tuple[Any, Any]] = []  # of the kernel that is run: the place along each axis, and its size
        self.asked: set[int] = set()  # the axes along which it asks for its place
        self.along: dict[Path, set[int]] = {}  # of each kernel: the axes whose places are run one by one
        self.others: dict[Path, int] = {}  # of each kernel: how many places there are like each of those

    def of(self, closed: Any) -> list[bool]:
        """Which of a program's inputs that needs."""
        jaxpr = getattr(closed, "jaxpr", closed)
        needed = self.needs(closed, [False] * len(jaxpr.outvars), ())[1]
        if any(need and _is_reference(variable) for need, variable in zip(needed, jaxpr.invars, strict=True)):
            raise CannotFollow
        return needed

    def alike(self, path: Path) -> int:
        """For how many places a count stands."""
        return prod(times for kernel, times in self.others.items() if path[: len(kernel)] == kernel)

    def zeros(self, around: Path) -> Counts:
        """The counters of what is counted there."""
        inside = {path: bodies for path, bodies in self.counted.items() if path[: len(around)] == around}
        return {ENDLESS: 0, **{(*path, which): 0 for path, bodies in inside.items() for which in range(bodies)}}

    def needs(self, closed: Any, wanted: Sequence[bool], around: Path) -> tuple[dict[int, list[bool]], list[bool]]:
        """The places of the equations that counting and the ``wanted`` results need, each with the results that it gives, and
        which inputs they need."""
        jaxpr = getattr(closed, "jaxpr", closed)
        live = {id(atom) for atom, want in zip(jaxpr.outvars, wanted, strict=True) if want}
        kept: dict[int, list[bool]] = {}
        for place in range(len(jaxpr.eqns) - 1, -1, -1):
            equation, here = jaxpr.eqns[place], (*around, place)
            results = [id(variable) in live for variable in equation.outvars]
            if any(results) or any(path[: len(here)] == here for path in self.counted):
                kept[place], used = self._equation_needs(equation, results, here)
                live |= {id(atom) for atom, use in zip(equation.invars, used, strict=True) if use}
        return kept, [id(variable) in live for variable in jaxpr.invars]

    def _equation_needs(self, equation: Any, results: list[bool], here: Path) -> tuple[list[bool], list[bool]]:
        name, params, inside = equation.primitive.name, equation.params, programs_of(equation)
        if not inside:
            if name != "get" and any(map(_is_reference, (*equation.invars, *equation.outvars))):
                raise CannotFollow
            if name == "program_id":
                self.asked.add(params["axis"])
            return [True] * len(results), [True] * len(equation.invars)
        if name == KERNEL:
            return results, self._kernel_needs(equation, results, here)
        if name == "run_scoped":
            used = self.needs(inside[0], results, (*here, 0))[1]
            if any(used[len(equation.invars) :]):
                raise CannotFollow
            return results, used[: len(equation.invars)]
        if name == "cond":
            used = [False] * (len(equation.invars) - 1)
            for which, branch in enumerate(inside):
                used = _either(used, self.needs(branch, results, (*here, which))[1])
            return results, [True, *used]
        if name not in ("scan", "while"):
            return results, self.needs(inside[0], results, (*here, 0))[1]
        carried = records.carried_inputs(params)
        body, first = (BODY, params["cond_nconsts"]) if name == "while" else (0, 0)
        asked = self.needs(inside[CONDITION], [True], (*here, CONDITION))[1] if name == "while" else []
        while True:
            used = self.needs(inside[body], results, (*here, body))[1]
            count = len(used[carried])
            wider = _either(results[:count], used[carried])
            wider = _either(wider, asked[first:]) if asked else wider
            if wider == results[:count]:
                return results, [*asked[:first], *used[: carried.start], *wider, *used[carried.start + count :]]
            results = [*wider, *results[count:]]

    def _kernel_needs(self, equation: Any, results: list[bool], here: Path) -> list[bool]:
        """The sizes of the grid that are no constants, and operands that the kernel reads whole and does not write."""
        kernel, mapping = equation.params["jaxpr"], equation.params["grid_mapping"]
        operands = equation.invars[mapping.num_dynamic_grid_bounds :]
        inside, self.asked = (*here, 0), set()
        used = self.needs(programs_of(equation)[0], [], inside)[1]
        bounds = len(equation.invars) - len(operands)
        aliased = {place for pair in equation.params["input_output_aliases"] for place in (pair[0], pair[0] - bounds)}
        for place, (use, written) in enumerate(zip(used, _may_be_written(kernel), strict=True)):
            whole = place < len(operands) and kernel.invars[place].aval.shape == operands[place].aval.shape
            if use and (written or place in aliased or not whole):
                raise CannotFollow
        own = [axis for axis in range(len(mapping.grid)) if axis not in mapping.vmapped_dims]
        fixed = {axis: size for axis, size in enumerate(mapping.grid) if isinstance(size, int)}
        self.along[here] = {own[axis] for axis in self.asked} | (set(range(len(mapping.grid))) - set(fixed))
        self.others[inside] = prod(size for axis, size in fixed.items() if axis not in self.along[here])
        if any(results) or prod(size for axis, size in fixed.items() if axis in self.along[here]) > MOST:
            raise CannotFollow
        return [True] * bounds + used[: len(operands)]

    def run(self, closed: Any, given: Sequence[Any], wanted: Sequence[bool], around: Path) -> tuple[list[Any], Counts]:
        """The ``wanted`` results of a program, None for the others, and how often its bodies ran."""
        jaxpr, counts = getattr(closed, "jaxpr", closed), self.zeros(around)
        values = dict(zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=False))
        values.update(zip(jaxpr.invars, given, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else values.get(atom)

        for place, results in sorted(self.needs(closed, wanted, around)[0].items()):
            equation = jaxpr.eqns[place]
            made, more = self._run_equation(equation, list(map(read, equation.invars)), results, (*around, place))
            counts.update(_add(more, counts))
            values.update(zip(equation.outvars, made, strict=True))
        return [read(atom) if want else None for atom, want in zip(jaxpr.outvars, wanted, strict=True)], counts

    def _run_equation(
        self, equation: Any, given: list[Any], results: list[bool], here: Path
    ) -> tuple[Sequence[Any], Counts]:
        name, inside = equation.primitive.name, programs_of(equation)
        if name in OF_A_PLACE:
            return [self.grid[equation.params["axis"]][OF_A_PLACE.index(name)]], {}
        if name == "get":
            given = [jax.new_ref(given[0]), *given[1:]]
        if not inside:
            params = equation.primitive.get_bind_params(equation.params)
            functions, params = params if isinstance(params, tuple) else ((), params)  # a pair before JAX 0.10
            with equation.ctx.manager:
                made = equation.primitive.bind(*functions, *given, **params)
            return (made if equation.primitive.multiple_results else [made]), {}
        if name == "cond":
            return self._run_branch(inside, given, results, here)
        if name == "scan":
            return self._run_scan(equation.params, inside[0], given, results, here)
        if name == "while":
            return self._run_while(equation.params, given, results, here)
        if name == KERNEL:
            return [None] * len(results), self._run_kernel(equation.params["grid_mapping"], inside[0], given, here)
        given = [*given, *[None] * (len(inside[0].invars) - len(given))]
        return self.run(inside[0], given, results, (*here, 0))

    def _run_kernel(self, mapping: Any, inner: Any, given: list[Any], here: Path) -> Counts:
        bounds, operands = given[: mapping.num_dynamic_grid_bounds], given[mapping.num_dynamic_grid_bounds :]
        values = iter(bounds)
        sizes = [size if isinstance(size, int) else next(values) for size in mapping.grid]
        arguments = [*operands, *[None] * (len(inner.invars) - len(operands))]
        turned = {axis: sizes[axis] for axis in sorted(self.along[here])}
        places = jax.numpy.prod(jax.numpy.asarray(list(turned.values()), "int32"))

        def run_at(place: Any, before: Any) -> Any:
            at = dict.fromkeys(range(len(sizes)), 0)
            for axis, size in turned.items():
                at[axis], place = place % size, place // size
            self.grid = [(at[axis], size) for axis, size in enumerate(sizes) if axis not in mapping.vmapped_dims]
            more = self.run(inner, arguments, [], (*here, 0))[1]
            counts = _add(more, dict(zip(self.zeros(here), before, strict=True)))
            return list(_ran(counts, (*here, 0)).values())

        start = list(_arrays(self.zeros(here)).values())
        counts = lax.fori_loop(0, jax.numpy.minimum(places, MOST), run_at, start)
        found = dict(zip(self.zeros(here), counts, strict=True))
        return {**found, ENDLESS: found[ENDLESS] + (places > MOST)}

    def _run_branch(
        self, inside: Sequence[Any], given: list[Any], results: list[bool], here: Path
    ) -> tuple[Sequence[Any], Counts]:
        whole = Packed(given[1:])

        def branch(which: int, inner: Any) -> Callable[..., Any]:
            def run_branch(operands: Any) -> Any:
                made, counts = self.run(inner, whole.fill(operands), results, (*here, which))
                counts = {**self.zeros(here), **counts}
                return Packed(made).some, list(_ran(counts, (*here, which)).values())

            return run_branch

        made, counts = lax.switch(
            jax.numpy.asarray(given[0], "int32"),
            [branch(which, inner) for which, inner in enumerate(inside)],
            whole.some,
        )
        return _spread_values(made, results), dict(zip(self.zeros(here), counts, strict=True))

    def _run_scan(
        self, params: Mapping[str, Any], inner: Any, given: list[Any], results: list[bool], here: Path
    ) -> tuple[Sequence[Any], Counts]:
        carried = records.carried_inputs(params)
        count = carried.stop - carried.start
        same, slices = given[: carried.start], Packed(given[carried.stop :])
        first = Packed(_only(given[carried], results[:count]))

        def turn(state: Any, values: Any) -> Any:
            arguments = [*same, *first.fill(state[0]), *slices.fill(values)]
            made, more = self.run(inner, arguments, results, (*here, 0))
            counts = _add(more, dict(zip(self.zeros(here), state[1], strict=True)))
            return (Packed(made[:count]).some, list(counts.values())), Packed(made[count:]).some

        start = (first.some, list(_arrays(self.zeros(here)).values()))
        (last, counts), stacked = lax.scan(turn, start, slices.some, params["length"], params["reverse"])
        return _spread_values([*last, *stacked], results), dict(zip(self.zeros(here), counts, strict=True))

    def _run_while(
        self, params: Mapping[str, Any], given: list[Any], results: list[bool], here: Path
    ) -> tuple[Sequence[Any], Counts]:
        before, inside = params["cond_nconsts"], params["body_nconsts"]
        tested, stepped = given[:before], given[before : before + inside]
        first = Packed(_only(given[before + inside :], results))

        def ask(state: Any) -> tuple[Any, Counts]:
            made, counts = self.run(params["cond_jaxpr"], [*tested, *first.fill(state)], [True], (*here, CONDITION))
            return made[0], counts

        def turn(loop: Any) -> Any:
            state, going, turns, counts = loop
            made, in_body = self.run(params["body_jaxpr"], [*stepped, *first.fill(state)], results, (*here, BODY))
            state = [_select(going, new, old) for new, old in zip(Packed(made).some, state, strict=True)]
            more, asked = ask(state)
            counts = _add(asked, _add(in_body, dict(zip(self.zeros(here), counts, strict=True))))
            return state, more, turns + 1, list(_ran(counts, (*here, BODY)).values())

        more, asked = ask(first.some)
        counts = list(_add(asked, _arrays(self.zeros(here))).values())
        start = (first.some, more, jax.numpy.int32(0), counts)
        state, more, _, counts = lax.while_loop(lambda loop: loop[1].any() & (loop[2] < MOST), turn, start)
        found = dict(zip(self.zeros(here), counts, strict=True))
        return _spread_values(state, results), {**found, ENDLESS: found[ENDLESS] + more.any()}


class Packed:
    """Values without those that are None, and their places."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.some = [value for value in values if value is not None]
        self.places = [value is not None for value in values]

    def fill(self, values: Sequence[Any]) -> list[Any]:
        """Other values at the same places."""
        return _spread_values(values, self.places)


def _select(going: Any, new: Any, old: Any) -> Any:
    """What a turn leaves: of several loops that were made one by ``vmap``, those that go on have the new value."""
    if not going.ndim:
        return new
    return jax.numpy.where(going.reshape(going.shape + (1,) * (new.ndim - going.ndim)), new, old)


def _only(values: Sequence[Any], places: Sequence[bool]) -> list[Any]:
    return [value if has else None for value, has in zip(values, places, strict=True)]


def _spread_values(values: Sequence[Any], places: Sequence[bool]) -> list[Any]:
    rest = iter(values)
    return [next(rest) if has else None for has in places]


def _add(more: Counts, counts: Counts) -> Counts:
    """The counts with some of them raised, in their order."""
    return {path: count + more.get(path, 0) for path, count in counts.items()}


def _ran(counts: Counts, body: Path) -> Counts:
    """The counts, as arrays, where this body ran once more, if it is counted."""
    return _arrays({path: count + (path == body) for path, count in counts.items()})


def _arrays(counts: Counts) -> Counts:
    return {path: jax.numpy.asarray(count, "int32") for path, count in counts.items()}
