"""Evaluates integers and booleans of a jaxpr that are known at trace time: a loop's trip count and the branch that is taken."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST = 100_000
"""Trips that are counted one by one; a longer loop is not proved."""


def _divide_towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


COMPUTED: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs, "max": max, "min": min,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_, "div": _divide_towards_zero, "rem": lambda a, b: a - b * _divide_towards_zero(a, b),
    "clamp": lambda low, x, high: min(max(x, low), high),
}  # fmt: skip
COPIED = ("convert_element_type", "copy", "copy_p", "reshape", "squeeze", "broadcast_in_dim", "stop_gradient")
CALLED = (
    "jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "xla_metadata_call",
)  # fmt: skip


def scalar(value: Any) -> int | None:
    """A single integer or boolean as an int; None for anything else."""
    if getattr(value, "shape", ()) != () or getattr(getattr(value, "dtype", None), "kind", "b") not in "iub":
        return None
    if not isinstance(value, (bool, int)) and not hasattr(value, "dtype"):
        return None
    try:
        return int(value)
    except Exception:  # a value that is itself being traced
        return None


class Known:
    """The known integers of one jaxpr by variable."""

    def __init__(self, closed: Any, given: Sequence[int | None]) -> None:
        self.jaxpr = getattr(closed, "jaxpr", closed)
        values = [scalar(value) for value in getattr(closed, "consts", ())]
        self.values: dict[Any, int | None] = dict(zip(self.jaxpr.constvars, values, strict=False))
        self.values.update(zip(self.jaxpr.invars, given, strict=False))

    def of(self, atom: Any) -> int | None:
        """The value of a variable or a literal."""
        return scalar(atom.val) if hasattr(atom, "val") else self.values.get(atom)

    def after(self, equation: Any) -> None:
        """Compute an equation's result, if it is of integers alone and does not overflow."""
        for variable, value in zip(equation.outvars, self._results(equation), strict=False):
            if value is not None and fits(value, variable.aval):
                self.values[variable] = value

    def _results(self, equation: Any) -> Sequence[int | None]:
        name, atoms = equation.primitive.name, [self.of(atom) for atom in equation.invars]
        if name in CALLED:
            inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
            return results(inner, atoms) if inner is not None else ()
        if name == "platform_index":  # lax.platform_dependent: what this trace runs on
            return (_platform(equation.params),)
        given = [value for value in atoms if value is not None]
        if len(given) < len(atoms):
            return ()
        if name in COPIED:
            return given[:1]
        if name == "not":
            return (1 - given[0] if equation.outvars[0].aval.dtype == bool else ~given[0],)
        if name == "select_n":
            return (given[1 + given[0]],)
        if name not in COMPUTED or (name in ("div", "rem") and given[1] == 0):
            return ()
        return (int(COMPUTED[name](*given)),)


def _platform(params: Mapping[str, Any]) -> int | None:
    import jax

    platforms = params.get("platforms", ())
    for index, names in enumerate(platforms):
        if names is None or jax.default_backend() in names:
            return index
    return None


def fits(value: int, aval: Any) -> bool:
    """Whether an integer of that dtype and shape can be the value."""
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    if getattr(aval, "shape", None) != () or kind not in ("b", "i", "u"):
        return False
    bits = aval.dtype.itemsize * 8
    if kind == "b":
        return value in (0, 1)
    low, high = (0, 1 << bits) if kind == "u" else (-(1 << bits - 1), 1 << bits - 1)
    return low <= value < high


def results(closed: Any, given: Sequence[int | None], equations: Sequence[Any] | None = None) -> list[int | None]:
    """The known values of a jaxpr's results, from all of its equations or from some."""
    known = Known(closed, given)
    for equation in known.jaxpr.eqns if equations is None else equations:
        known.after(equation)
    return [known.of(atom) for atom in known.jaxpr.outvars]


def trips(params: Mapping[str, Any], given: Sequence[int | None]) -> int | None:
    """How often the body of a ``while`` runs, counted on the integers that decide it; None if they do not."""
    before, inside = params["cond_nconsts"], params["body_nconsts"]
    tested, stepped = list(given[:before]), list(given[before : before + inside])
    carried, equations = list(given[before + inside :]), _deciding_equations(params)
    for count in range(MOST + 1):
        (more,) = results(params["cond_jaxpr"], tested + carried)
        if more is None:
            return None
        if not more:
            return count
        following = results(params["body_jaxpr"], stepped + carried, equations)
        if following == carried:
            return None  # it never ends
        carried = following
    return None


def _deciding_equations(params: Mapping[str, Any]) -> list[Any]:
    """The equations of a loop's body that its condition depends on."""
    body, asked = params["body_jaxpr"].jaxpr, params["cond_jaxpr"].jaxpr
    before, inside = params["cond_nconsts"], params["body_nconsts"]
    needed = needs(asked, [True])[1][before:]
    while True:
        equations, used = needs(body, needed)
        wider = [a or b for a, b in zip(needed, used[inside:], strict=True)]
        if wider == needed:
            return equations
        needed = wider


def needs(jaxpr: Any, wanted: Sequence[bool]) -> tuple[list[Any], list[bool]]:
    """The equations that these results depend on, in order, and which of the inputs they depend on."""
    live = {id(atom) for atom, want in zip(jaxpr.outvars, wanted, strict=True) if want}
    kept = []
    for equation in reversed(jaxpr.eqns):
        if any(id(variable) in live for variable in equation.outvars):
            kept.append(equation)
            live |= {id(atom) for atom in equation.invars}
    return kept[::-1], [id(variable) in live for variable in jaxpr.invars]
