"""Whether a pair's two models have the same gradients: one loss, one input, the same weights. Needs both frameworks.

The loss is that of a training step (``adapters/pytorch/training.py``): the mean of squares of every floating output,
summed.  Both run in train mode and in double precision: batch norms take the batch's statistics, and what draws random
numbers is made to draw none (``inactive``), which is checked: the same step twice gives the same gradients.

Weights: a pair's ``copy_weights`` says which element of a PyTorch parameter is which element of a TensorFlow variable
(``gradient_places``).  By the chain rule the gradient of a TensorFlow element is the sum of the gradients of the PyTorch
elements that it was copied to (of one, unless weights are tied).  What has no place on the other side is named, never
skipped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from reconcile.model_zoo.parity import Both
from tests.zoo.gradient_places import places_of
from tests.zoo.gradient_steps import (
    Step,
    double_precision,
    inactive,
    name_of,
    tensorflow_step,
    torch_step,
    unavailable,
    variables_of,
)

NOTHING = {64: 1e-7, 32: 1e-5}
"""By bits: a gradient below this share of the largest one is none: what rounding leaves of one that is 0, such as that of a
bias before a norm. Keras' GroupNormalization computes in 32 bits in any model."""
BATCH = 4
"""A batch norm over one position needs a few samples for its statistics."""


@dataclass(frozen=True)
class Gradient:
    """One TensorFlow variable or one input on both sides: largest |gradient|, largest difference, elements."""

    name: str
    largest: float
    apart: float
    elements: int


@dataclass(frozen=True)
class Gradients:
    """What came of it, in ``bits`` (``why`` says why not in 64).

    ``error`` is the largest difference relative to the largest gradient of the same tensor.

    ``vanishing`` are tensors whose gradients are nothing but rounding in both (see NOTHING).  ``alone`` are weights that
    have no counterpart on the other side, and ``otherwise`` PyTorch parameters that are not copies but computed from
    TensorFlow's: those two are not in ``error``, ``along`` is: the relative difference of the derivatives along one random
    direction in TensorFlow's weights, whatever the copying does, None where nothing is computed.
    """

    found: tuple[Gradient, ...]
    vanishing: tuple[str, ...]
    alone: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    along: float | None = None
    loss: tuple[float, float] = (0.0, 0.0)
    bits: int = 64
    why: str = ""

    @property
    def error(self) -> float:
        """Over everything that was compared; the losses, too."""
        ours, theirs = self.loss
        return max(
            abs(ours - theirs) / max(abs(ours), abs(theirs), 1e-300),
            self.along or 0.0,
            *(g.apart / g.largest for g in self.found),
            0.0,
        )


def prove(pair: pairs.Pair, overrides: Mapping[str, str]) -> Gradients:
    """Gradients of a pair at these settings and a batch of some samples, in 64 bits where both frameworks can.

    Raises whatever building and running the two models raises.
    """
    held = pair.params
    if "batch" in held and "batch" not in overrides:
        overrides = {**overrides, "batch": str(max(BATCH, held["batch"]))}
    params = pairs.Params(loading.resolve(pair, dict(overrides)))
    refused: tuple[type[Exception], ...] = (TypeError, *unavailable())
    try:
        with double_precision():
            both = Both(pair, params, double=True)
            liven(both)
            return gradients(both)
    except refused as error:  # constants of 32 bits in the pair's own layers; no kernel
        both = Both(pair, params)
        both.enliven()
        return replace(gradients(both), why=" ".join(str(error).split())[:200])


def liven(both: Both) -> None:
    """``Both.enliven``, where TensorFlow has the model's ops in double precision outside of XLA."""
    with contextlib.suppress(*unavailable()):
        both.enliven()


def gradients(both: Both) -> Gradients:
    """Compare every gradient of a pair."""
    import numpy

    bits = 64 if both.double else 32

    inactive(both)
    first, ours = tensorflow_step(both), tensorflow_step(both)
    theirs, again = torch_step(both), torch_step(both)
    if not (_same(first, ours) and _same(theirs, again)):
        raise ValueError("the same step twice has other gradients: something random is left in it")
    variables = variables_of(both)
    found = [_compared(f"input {i}", a, b) for i, (a, b) in enumerate(zip(ours.inputs, theirs.inputs, strict=True))]
    places, alone, otherwise = places_of(both)
    pulled, reached = numpy.zeros(places.total + 1), numpy.zeros(places.total + 1, bool)
    for name, place in places.of.items():
        first_, last = int(place.min(initial=places.total)), int(place.max(initial=0)) + 1
        pulled[first_:last] += numpy.bincount((place - first_).ravel(), theirs.weights[name].ravel(), last - first_)
        reached[place.ravel()] = True
    reached[0] = False
    for variable, gradient in zip(variables, ours.weights.values(), strict=True):
        start = places.start[id(variable)]
        there = reached[start : start + gradient.size].reshape(gradient.shape)
        name = name_of(variable)
        if not there.all():
            alone.append(f"{name} (TensorFlow): {int((~there).sum())} of {there.size}")
        if there.any():
            found.append(
                _compared(name, gradient[there], pulled[start : start + gradient.size].reshape(there.shape)[there])
            )
    top = max((g.largest for g in found), default=0.0)
    least = NOTHING[bits] * top
    return Gradients(
        tuple(g for g in found if g.largest > least),
        tuple(g.name for g in found if g.largest <= least),
        tuple(alone),
        tuple(otherwise),
        _along(both, ours, theirs) if otherwise else None,
        (ours.loss, theirs.loss),
        bits,
    )


def _along(both: Both, ours: Step, theirs: Step) -> float:
    """Derivatives along one random direction of TensorFlow's weights: on the other side it is what copying makes of it."""
    import numpy
    import torch

    variables, generator = variables_of(both), numpy.random.RandomState(1)
    held = [v.numpy() for v in variables]
    at = {name: p.detach().numpy().copy() for name, p in both.torch_model.named_parameters()}
    slope = 0.0
    try:
        for variable, value, gradient in zip(variables, held, ours.weights.values(), strict=True):
            step = generator.standard_normal(value.shape)
            slope += float((step * gradient).sum())
            variable.assign(value + step.astype(value.dtype))
        with torch.no_grad():
            both.pair.copy_weights(both.tf_model, both.torch_model)
        moved = {name: p.detach().numpy().copy() for name, p in both.torch_model.named_parameters()}
    finally:
        for variable, value in zip(variables, held, strict=True):
            variable.assign(value)
        both.pair.copy_weights(both.tf_model, both.torch_model)
    other = sum(float(((moved[name] - at[name]) * theirs.weights[name]).sum()) for name in at)
    return abs(slope - other) / max(abs(slope), abs(other), 1e-300)


def _same(a: Step, b: Step) -> bool:
    import numpy

    pairs = [*zip(a.inputs, b.inputs, strict=True), *zip(a.weights.values(), b.weights.values(), strict=True)]
    return all(numpy.allclose(x, y, rtol=1e-9, atol=1e-9 * float(numpy.abs(x).max(initial=0))) for x, y in pairs)


def _compared(name: str, ours: Any, theirs: Any) -> Gradient:
    import numpy

    largest = max(float(numpy.abs(ours).max(initial=0)), float(numpy.abs(theirs).max(initial=0)))
    return Gradient(name, largest, float(numpy.abs(ours - theirs).max(initial=0)), int(ours.size))
