"""Which equations of a jaxpr belong to the backward pass, to recomputation, or to the optimiser's step of a user's own step.

JAX says on every equation which transformations made it: ``transpose(jvp(...))`` is the backward pass of a ``jax.grad``, and
``jvp(...)`` alone is what it computes on the way forward, early parts of the gradient among it.  What ``jax.checkpoint``
recomputes is in a scope of its own.  JAX does not mark an optimiser's step: here it is what follows the gradients and is no part
of a derivative, with what only serves that (a bias correction, a weight decay, a moment's decay): the update, and clipping or the
norm of gradients.  An equation in a layer that the derivative has as well is a call of the model, and forward.  Without a
gradient in the program everything is forward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.records import BACKWARD, FORWARD, OPTIMIZER, RECOMPUTATION
from . import records

AGAIN = "rematted_computation"
"""The scope in which jax.checkpoint recomputes what it did not keep (jax/_src/ad_checkpoint.py)."""
STEP = "step:" + OPTIMIZER
"""The scope that ``mark_optimizer`` puts around the equations of the optimiser's step."""
PHASES_NOTE = (
    "backward: the equations that JAX names transpose(jvp(...)); optimizer: what follows the gradients and is no part of a "
    "derivative, with what serves only that; forward: all else, early parts of the gradient among it"
)


def phase_of(equation: Any, around: str) -> str:
    """The phase of an equation in a program that runs in the phase ``around``: RECOMPUTATION in the scope of jax.checkpoint's
    recomputation, BACKWARD if it was transposed, OPTIMIZER if it is marked so, otherwise ``around``."""
    names, made = records.scopes(equation), records.transformations(equation)
    if AGAIN in names:
        return RECOMPUTATION
    if "transpose" in made:
        return BACKWARD
    return OPTIMIZER if STEP in names and around == FORWARD else around


def mark_optimizer(closed: Any) -> Any:
    """The program with the optimiser's equations in the scope STEP; as it is, if it has no gradient."""
    jaxpr = getattr(closed, "jaxpr", closed)
    if not differentiates(jaxpr):
        return closed
    return _with(closed, _level(jaxpr, [False] * len(jaxpr.invars), _layers(jaxpr)))


def differentiates(jaxpr: Any) -> bool:
    """Whether a program, or one inside it, has a backward pass."""
    return any("transpose" in records.transformations(e) or any(map(differentiates, _inside(e))) for e in jaxpr.eqns)


def updates(jaxpr: Any) -> bool:
    """Whether a program with its marks, or one inside it, has an equation of an optimiser's step."""
    return any(STEP in records.scopes(e) or any(map(updates, _inside(e))) for e in jaxpr.eqns)


def _inside(equation: Any) -> Iterator[Any]:
    for closed in records.programs(equation.params.values()):
        yield getattr(closed, "jaxpr", closed)


def _is_derived(equation: Any) -> bool:
    return bool(records.transformations(equation))


def _layers(jaxpr: Any) -> set[tuple[str, ...]]:
    """The scopes of the derivative, without what is around all of it."""
    found = sorted({names for names in _scopes_of_derivatives(jaxpr, ()) if names})
    around = 0
    while found and len(found[0]) > around and found[0][: around + 1] == found[-1][: around + 1]:
        around += 1  # sorted, the first and the last share what all share
    return {names for names in found if len(names) > around}


def _scopes_of_derivatives(jaxpr: Any, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for equation in jaxpr.eqns:
        own = names + records.scopes(equation)
        if _is_derived(equation):
            yield own
        else:
            for inner in _inside(equation):
                yield from _scopes_of_derivatives(inner, own)


class Level(NamedTuple):
    """A program with its marks, and which of its results follow a gradient."""

    jaxpr: Any
    results: list[bool]


def _level(jaxpr: Any, given: Sequence[bool], layers: set[tuple[str, ...]], names: tuple[str, ...] = ()) -> Level:
    """Mark the equations of a program; ``given`` says which of its inputs follow a gradient."""
    follows = {id(v) for v, after in zip(jaxpr.invars, given, strict=True) if after}
    equations, after = [], []
    for equation in jaxpr.eqns:
        inputs = [id(atom) in follows for atom in equation.invars]
        own, results = names + records.scopes(equation), [any(inputs)] * len(equation.outvars)
        if _is_derived(equation):  # its results are a gradient, or a forward pass with new weights
            results = ["transpose" in records.transformations(equation)] * len(results)
        elif any(map(differentiates, _inside(equation))):
            equation, results = _enter_equation(equation, inputs, layers, own)
        elif own in layers:
            results = [False] * len(results)
        follows |= {id(v) for v, follow in zip(equation.outvars, results, strict=True) if follow}
        equations.append(equation)
        after.append(any(results))
    places = _steps(equations, after, own_layers=[names + records.scopes(e) in layers for e in equations])
    made = [_in_step(e) if place in places else e for place, e in enumerate(equations)]
    return Level(jaxpr.replace(eqns=made), [id(v) in follows for v in jaxpr.outvars])


def _steps(equations: Sequence[Any], after: Sequence[bool], own_layers: Sequence[bool]) -> set[int]:
    """The places of the equations of an optimiser's step among these: backwards through what each one serves."""
    derivative, step = set[int](), set[int]()  # what a derivative needs, and what an optimiser's step needs
    found = set()
    for place in range(len(equations) - 1, -1, -1):
        equation = equations[place]
        results, inputs = {id(v) for v in equation.outvars}, {id(atom) for atom in equation.invars}
        mixed = any(map(differentiates, _inside(equation)))
        if _is_derived(equation) or mixed or own_layers[place]:
            derivative |= inputs
        elif after[place] or (results & step and not results & derivative):
            found.add(place)
            step |= inputs
        elif results & derivative:
            derivative |= inputs
    return found


def _in_step(equation: Any) -> Any:
    source = equation.source_info
    return equation.replace(source_info=source.replace(name_stack=source.name_stack.extend(STEP)))


def _enter_equation(
    equation: Any, inputs: Sequence[bool], layers: set[tuple[str, ...]], names: tuple[str, ...]
) -> tuple[Any, list[bool]]:
    """An equation that runs a program with a backward pass: a jitted step, or a loop of steps. One that is not known stays."""
    params = equation.params
    key = next((key for key in (*records.JAXPR_PARAMS, "body_jaxpr") if key in params), "")
    skipped = params["cond_nconsts"] if key == "body_jaxpr" else 0
    given = list(inputs[skipped:])
    inner = getattr(params.get(key), "jaxpr", params.get(key))
    if inner is None or len(inner.invars) != len(given) or len(inner.outvars) != len(equation.outvars):
        return equation, [True] * len(equation.outvars)
    carried = records.carried_inputs(params)
    while True:
        level = _level(inner, given, layers, names)
        around = [a or b for a, b in zip(given[carried], level.results, strict=False)]
        if around == given[carried]:
            return equation.replace(params={**params, key: _with(params[key], level)}), level.results
        given[carried] = around


def _with(closed: Any, level: Level) -> Any:
    return closed.replace(jaxpr=level.jaxpr) if hasattr(closed, "jaxpr") else level.jaxpr
