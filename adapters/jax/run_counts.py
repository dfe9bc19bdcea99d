"""Counts how often bodies of loops and branches run in one call of a program, at any depth, by running what decides that.

Of the program only the equations run on which a condition, or the index of a branch, depends, with a counter for each body; what
they do not need, most weights for example, needs no values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax

from . import records

CALLED = (
    "jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "xla_metadata_call",
)  # fmt: skip
"""Primitives that run a program once."""
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
    """What decides depends on a mutable array, whose values no equation hands on."""


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
        counts = {path: int(found[repr(path)]) for path in part.zeros(())}
    except Exception:  # no memory for it, or it runs on other devices alone: nothing is counted
        return CountedRuns({})
    return CountedRuns({}) if counts.pop(ENDLESS) else CountedRuns(counts, read)


def find_decisions(closed: Any, around: Path = ()) -> Iterator[tuple[Path, int]]:
    """The loops whose length is not in the program and the branches, with the number of their bodies."""
    for place, equation in enumerate(getattr(closed, "jaxpr", closed).eqns):
        here, inside = (*around, place), programs_of(equation)
        if equation.primitive.name in ("while", "cond"):
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
    inside = [params[key] for key in records.JAXPR_PARAMS if key in params]
    return inside if name == "scan" or (name in CALLED and len(inside) == 1) else ()


def _either(first: Sequence[bool], second: Sequence[bool]) -> list[bool]:
    return [a or b for a, b in zip(first, second, strict=True)]


class Slice:
    """What of a program says how often the bodies of the loops and branches ``counted`` run; their number by path."""

    def __init__(self, counted: Mapping[Path, int]) -> None:
        self.counted = counted

    def of(self, closed: Any) -> list[bool]:
        """Which of a program's inputs that needs."""
        return self.needs(closed, [False] * len(getattr(closed, "jaxpr", closed).outvars), ())[1]

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
            if any(hasattr(atom.aval, "inner_aval") for atom in (*equation.invars, *equation.outvars)):
                raise CannotFollow
            return [True] * len(results), [True] * len(equation.invars)
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
        return self.run(inside[0], given, results, (*here, 0))

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
        return _spread(made, results), dict(zip(self.zeros(here), counts, strict=True))

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
        return _spread([*last, *stacked], results), dict(zip(self.zeros(here), counts, strict=True))

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
        return _spread(state, results), {**found, ENDLESS: found[ENDLESS] + more.any()}


class Packed:
    """Values without those that are None, and their places."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.some = [value for value in values if value is not None]
        self.places = [value is not None for value in values]

    def fill(self, values: Sequence[Any]) -> list[Any]:
        """Other values at the same places."""
        return _spread(values, self.places)


def _select(going: Any, new: Any, old: Any) -> Any:
    """What a turn leaves: of several loops that were made one by ``vmap``, those that go on have the new value."""
    if not going.ndim:
        return new
    return jax.numpy.where(going.reshape(going.shape + (1,) * (new.ndim - going.ndim)), new, old)


def _only(values: Sequence[Any], places: Sequence[bool]) -> list[Any]:
    return [value if has else None for value, has in zip(values, places, strict=True)]


def _spread(values: Sequence[Any], places: Sequence[bool]) -> list[Any]:
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
