"""One training step of a JAX model, as a trace and as a function for counters: forward, loss, ``jax.grad``, optimiser's step.

The loss is the mean of squares of every floating output, summed over the outputs; the gradients are those of the parameters.
JAX does not separate the forward pass from its derivative: an equation is of the forward pass if the outputs or the loss
depend on it, and of the backward pass otherwise.  What is computed early for the gradients alone is of the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from ...core.records import BACKWARD, FORWARD, LOSS, LOSS_LAYER, OPTIMIZER, Op, Trace
from ..shared.refusal import FactoryError
from .layers import LAYER
from .model import Call
from .trace import Walk, finish_trace, live, walk_program

RATE = 0.001
"""Learning rate: no count depends on it."""
NOTHING_TO_TRAIN = (
    "nothing to train: no floating output depends on a parameter; the step is the forward pass and the loss"
)
ONE_STEP_NOTE = (
    "one training step: forward in train mode, where the library has one; loss: the mean of squares of every floating output, "
    "summed; gradients with respect to the parameters by jax.grad (none with respect to the model's input); one step of "
    "%s, one parameter after the other"
)


class Parts(NamedTuple):
    """A model's call with its loss: ``loss(floating, others, *rest)`` returns (the loss, what the call returns).

    ``floating`` are the shapes of what is trained and ``paths`` their names; ``arguments`` are all of the loss's, and ``values``
    the arrays that they stand for. ``learns`` says whether an output depends on anything that is trained.
    """

    loss: Callable[..., Any]
    arguments: tuple[Any, ...]
    floating: list[Any]
    paths: list[str]
    learns: bool
    values: tuple[Any, ...]


def parts(call: Call) -> Parts:
    """The call with its loss. Raises whatever the model raises."""
    leaves, tree = jax.tree.flatten(call.arguments[0])
    trained = [index for index, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    learned = _learned_outputs(call, leaves, tree, trained)

    def loss(floating: Sequence[Any], others: Sequence[Any], *rest: Any) -> Any:
        whole = list(others)
        for index, leaf in zip(trained, floating, strict=True):
            whole[index] = leaf
        result = call.function(jax.tree.unflatten(tree, whole), *rest)
        floats = [
            (i, y) for i, y in enumerate(jax.tree.leaves(result[0])) if jnp.issubdtype(jnp.result_type(y), jnp.floating)
        ]
        squares = [y for i, y in floats if i in learned] or [y for _, y in floats]
        with jax.named_scope(LAYER + LOSS_LAYER):
            means = [jnp.mean(jnp.square(y)) for y in squares]
            total = means[0] if means else jnp.zeros(())
            for mean in means[1:]:
                total = total + mean
        return total, result

    floating = [leaves[index] for index in trained]
    paths = [call.paths[index] if index < len(call.paths) else "" for index in trained]
    values = (*(call.values[index] for index in trained), *call.values) if call.values else ()
    return Parts(loss, (floating, leaves, *call.arguments[1:]), floating, paths, bool(learned), values)


def trace(call: Call, optimizer: str, given: Any = None) -> Trace:
    """Trace of one training step on shapes. Raises FactoryError without Optax, and whatever the model raises."""
    whole = parts(call)
    if not whole.learns:
        closed = jax.make_jaxpr(whole.loss)(*whole.arguments)
        walk = walk_program(live(closed), call.root, whole.values)
        return finish_trace(_walk_phases(walk, None), (NOTHING_TO_TRAIN,))
    closed, shapes = jax.make_jaxpr(jax.value_and_grad(whole.loss, has_aux=True), return_shape=True)(*whole.arguments)
    kept = len(jax.tree.leaves(shapes[0]))  # the loss and the model's own results come before the gradients
    found = _walk_phases(
        walk_program(live(closed), call.root, whole.values), walk_program(live(closed, kept), call.root, whole.values)
    )
    for path, leaf in zip(whole.paths, whole.floating, strict=True):
        if math.prod(leaf.shape):
            update, state = _update(path, leaf, optimizer, given)
            walk = walk_program(live(jax.make_jaxpr(update)(leaf, leaf, state)), "")
            for key, op in walk.ops.items():
                found.add(op._replace(phase=OPTIMIZER, layer=_layer(path)), walk.equations[key])
    return finish_trace(
        found, (ONE_STEP_NOTE % ("an optimizer of optax" if given is not None else f"optax.{optimizer}"),)
    )


def step(call: Call, optimizer: str, given: Any = None) -> Call:
    """The same step as one function of shapes, for a counter of programs. Raises what ``trace`` raises."""
    whole = parts(call)
    if not whole.learns:
        return Call(whole.loss, whole.arguments, call.root)
    updates = [_update(path, leaf, optimizer, given) for path, leaf in zip(whole.paths, whole.floating, strict=True)]

    def function(states: Sequence[Any], floating: Sequence[Any], *rest: Any) -> Any:
        result, gradients = jax.value_and_grad(whole.loss, has_aux=True)(floating, *rest)
        changed = [
            update(weight, gradient, state)
            for (update, _), weight, gradient, state in zip(updates, floating, gradients, states, strict=True)
            if math.prod(weight.shape)
        ]
        return result, changed

    return Call(function, ([state for _, state in updates], *whole.arguments), call.root)


def _learned_outputs(call: Call, leaves: Sequence[Any], tree: Any, trained: Sequence[int]) -> set[int]:
    """Which of the model's outputs depend on a floating array of its first argument."""

    def outputs(first: Sequence[Any], *rest: Any) -> Any:
        return jax.tree.leaves(call.function(jax.tree.unflatten(tree, first), *rest)[0])

    jaxpr = jax.make_jaxpr(outputs)(leaves, *call.arguments[1:]).jaxpr
    found = set()
    for index, result in enumerate(jaxpr.outvars):
        wanted = [other == index for other in range(len(jaxpr.outvars))]
        _, used = partial_eval.dce_jaxpr(jaxpr, wanted)
        floating = jnp.issubdtype(result.aval.dtype, jnp.floating)
        if floating and any(used[place] for place in trained):
            found.add(index)
    return found


def _walk_phases(step: Walk, forward: Walk | None) -> Walk:
    """The walk through a step with the phase of every op: ``forward`` is what the loss and the outputs need, None for all."""
    found = Walk(step.root)
    found.problems, found.read = step.problems, step.read
    for key, op in step.ops.items():
        own = op.calls if forward is None else min(op.calls, forward.ops[key].calls if key in forward.ops else 0)
        equations = step.equations[key]
        early = equations if forward is None else min(equations, forward.equations.get(key, 0))
        for phase, calls, count in (
            (FORWARD, own, early),
            (BACKWARD, op.calls - own, equations - early),
        ):
            if calls:
                found.add(_place_op(op, phase)._replace(calls=calls), max(count, 1))
    return found


def _place_op(op: Op, phase: str) -> Op:
    if op.layer == LOSS_LAYER:
        return op._replace(phase=LOSS)
    return op if op.phase != FORWARD else op._replace(phase=phase)


def _layer(path: str) -> str:
    return path.rpartition(".")[0]


def _update(path: str, leaf: Any, optimizer: str, given: Any = None) -> tuple[Callable[..., Any], Any]:
    """The optimiser's step of one parameter, and the shapes of its state."""
    try:
        import optax
    except ImportError as error:
        raise FactoryError("a training step of JAX needs Optax for its optimiser: pip install optax.") from error
    if given is not None and not hasattr(given, "update"):
        raise FactoryError(f"optimizer= is {type(given).__name__}; give an optimizer of Optax, or its name.")
    if given is None and not hasattr(optax, optimizer):
        raise FactoryError(f"Optax {optax.__version__} has no {optimizer}.")
    made = given if given is not None else getattr(optax, optimizer)(RATE)

    def update(weight: Any, gradient: Any, state: Any) -> Any:
        with jax.named_scope(LAYER + _layer(path)):
            changes, after = made.update(gradient, state, weight)
            return optax.apply_updates(weight, changes), after

    return update, jax.eval_shape(made.init, leaf)
