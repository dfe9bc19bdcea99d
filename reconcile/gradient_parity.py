"""Whether a pair's two models have the same gradients: one loss, one input, the same weights. Needs both frameworks.

The loss is that of a training step (:mod:`.adapters.trace_torch_training`): the mean of squares of every floating output,
summed.  Both run in train mode and in double precision: batch norms take the batch's statistics, and what draws random
numbers is made to draw none (``inactive``), which is checked: the same step twice gives the same gradients.

Weights: a pair's ``copy_weights`` says which element of a PyTorch parameter is which element of a TensorFlow variable.  To
find out without knowing the pair, every element of every variable gets a number of its own, is copied, and is looked for on
the other side.  By the chain rule the gradient of a TensorFlow element is the sum of the gradients of the PyTorch elements
that it was copied to (of one, unless weights are tied).  What has no place on the other side is named, never skipped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .model_zoo import pair as pairs
from .model_zoo.parity import Both

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


def prove(module: Any, overrides: Mapping[str, str]) -> Gradients:
    """Gradients of a pair at these settings and a batch of some samples, in 64 bits where both frameworks can.

    Raises whatever building and running the two models raises.
    """
    held = module.PAIR.params
    if "batch" in held and "batch" not in overrides:
        overrides = {**overrides, "batch": str(max(BATCH, held["batch"]))}
    params = pairs.Params(pairs.resolve(module.PAIR, dict(overrides)))
    refused: tuple[type[Exception], ...] = (TypeError, *_unavailable())
    try:
        with double_precision():
            both = Both(module, params, double=True)
            liven(both)
            return gradients(both)
    except refused as error:  # constants of 32 bits in the pair's own layers; no kernel
        both = Both(module, params)
        both.enliven()
        return replace(gradients(both), why=" ".join(str(error).split())[:200])


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Models that are built here have weights of 64 bits."""
    import keras
    import tensorflow as tf
    import torch

    def cast(value: Any, dtype: Any, name: Any = None) -> Any:
        """Keras casts its constants, and TensorFlow takes a Python number for one of 32 bits."""
        return real(tf.constant(value, dtype) if isinstance(value, float) else value, dtype, name)

    def start(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        """An input that says it has 32 bits has 64 as well."""
        return begin(*args, dtype=None if dtype == "float32" else dtype, **kwargs)

    real, begin = tf.cast, tf.keras.Input
    policy, floatx, dtype = keras.config.dtype_policy(), keras.config.floatx(), torch.get_default_dtype()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    torch.set_default_dtype(torch.float64)
    tf.cast, tf.keras.Input = cast, start
    try:
        yield
    finally:
        tf.cast, tf.keras.Input = real, begin
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
        torch.set_default_dtype(dtype)


def liven(both: Both) -> None:
    """``Both.enliven``, where TensorFlow has the model's ops in double precision outside of XLA."""
    with contextlib.suppress(*_unavailable()):
        both.enliven()


def _unavailable() -> tuple[type[Exception], ...]:
    """What TensorFlow raises where it has no kernel for this type here."""
    import tensorflow as tf

    return tf.errors.UnimplementedError, tf.errors.NotFoundError


def inactive(both: Both) -> None:
    """Dropout with rate 0, wherever a layer or module keeps its rate."""
    import torch

    layers = both.tf_model._flatten_layers() if hasattr(both.tf_model, "_flatten_layers") else ()
    for layer in layers:
        for rate in ("rate", "dropout", "recurrent_dropout", "_dropout", "drop_rate"):
            if isinstance(vars(layer).get(rate), float):
                setattr(layer, rate, 0.0)
    for module in both.torch_model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0


def gradients(both: Both) -> Gradients:
    """Compare every gradient of a pair."""
    import numpy

    bits = 64 if both.double else 32

    inactive(both)
    first, ours = _tensorflow(both), _tensorflow(both)
    theirs, again = _torch(both), _torch(both)
    if not (_same(first, ours) and _same(theirs, again)):
        raise ValueError("the same step twice has other gradients: something random is left in it")
    variables = _variables(both)
    found = [_compared(f"input {i}", a, b) for i, (a, b) in enumerate(zip(ours.inputs, theirs.inputs, strict=True))]
    places, alone, otherwise = _places(both)
    pulled, reached = numpy.zeros(places.total + 1), numpy.zeros(places.total + 1, bool)
    for name, place in places.of.items():
        first_, last = int(place.min(initial=places.total)), int(place.max(initial=0)) + 1
        pulled[first_:last] += numpy.bincount((place - first_).ravel(), theirs.weights[name].ravel(), last - first_)
        reached[place.ravel()] = True
    reached[0] = False
    for variable, gradient in zip(variables, ours.weights.values(), strict=True):
        start = places.start[id(variable)]
        there = reached[start : start + gradient.size].reshape(gradient.shape)
        name = _name(variable)
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


def _along(both: Both, ours: _Step, theirs: _Step) -> float:
    """Derivatives along one random direction of TensorFlow's weights: on the other side it is what copying makes of it."""
    import numpy
    import torch

    variables, generator = _variables(both), numpy.random.RandomState(1)
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


@dataclass(frozen=True)
class _Step:
    loss: float
    inputs: list[Any]
    weights: dict[str, Any]


def _same(a: _Step, b: _Step) -> bool:
    import numpy

    pairs = [*zip(a.inputs, b.inputs, strict=True), *zip(a.weights.values(), b.weights.values(), strict=True)]
    return all(numpy.allclose(x, y, rtol=1e-9, atol=1e-9 * float(numpy.abs(x).max(initial=0))) for x, y in pairs)


def _tensorflow(both: Both) -> _Step:
    import numpy
    import tensorflow as tf

    example = [tf.constant(x) for x in both.example()]
    floating = [x for x in example if x.dtype.is_floating]
    variables = _variables(both)
    given = {"training": True} if isinstance(both.tf_model, tf.keras.layers.Layer) else {}

    def step() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(floating)
            outputs = both.tf_model(example[0] if len(example) == 1 else example, **given)
            loss = tf.add_n([tf.reduce_mean(tf.square(y)) for y in tf.nest.flatten(outputs) if y.dtype.is_floating])
        flat = tape.gradient(loss, [*floating, *variables], unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return loss, [tf.convert_to_tensor(g) for g in flat]

    try:
        loss, flat = step()
    except _unavailable():  # no kernel in double precision (images with channels first, 3-D pooling); XLA has one
        loss, flat = tf.function(step, jit_compile=True)()
    found = [numpy.asarray(g) for g in flat]
    names = [f"{i} {_name(v)}" for i, v in enumerate(variables)]
    return _Step(float(loss), found[: len(floating)], dict(zip(names, found[len(floating) :], strict=True)))


def _torch(both: Both) -> _Step:
    import torch

    module = both.torch_model.train()
    module.zero_grad(set_to_none=True)
    example = [torch.as_tensor(x) for x in both.example()]
    floating = [x.requires_grad_(True) for x in example if x.is_floating_point()]
    outputs = [y for y in _flat(module(*example)) if y.is_floating_point()]
    loss = torch.stack([y.square().mean() for y in outputs]).sum()
    loss.backward()
    weights = {name: _gradient(p) for name, p in module.named_parameters()}
    return _Step(float(loss.detach()), [_gradient(x) for x in floating], weights)


def _variables(both: Both) -> list[Any]:
    """What TensorFlow trains; of an object that is no Keras model, all its weights."""
    return list(getattr(both.tf_model, "trainable_variables", both.tf_model.weights))


def _gradient(tensor: Any) -> Any:
    import torch

    return (torch.zeros_like(tensor) if tensor.grad is None else tensor.grad).detach().numpy().copy()


def _flat(outputs: Any) -> list[Any]:
    return [y for each in outputs for y in _flat(each)] if isinstance(outputs, (tuple, list)) else [outputs]


def _compared(name: str, ours: Any, theirs: Any) -> Gradient:
    import numpy

    largest = max(float(numpy.abs(ours).max(initial=0)), float(numpy.abs(theirs).max(initial=0)))
    return Gradient(name, largest, float(numpy.abs(ours - theirs).max(initial=0)), int(ours.size))


def _name(variable: Any) -> str:
    return str(getattr(variable, "path", variable.name))


@dataclass(frozen=True)
class _Places:
    """Every TensorFlow element has a number from 1 on: ``start`` of each variable; ``of`` each PyTorch parameter, the number
    of the element that it is a copy of, 0 where it is none."""

    total: int
    start: dict[int, int]
    of: dict[str, Any]


def _places(both: Both) -> tuple[_Places, list[str], list[str]]:
    """Where the elements go, PyTorch parameters that nothing goes to, and those that something else than a copy goes to."""
    import numpy
    import torch

    every = getattr(both.tf_model, "variables", both.tf_model.weights)
    variables = [v for v in every if "float" in str(v.dtype)]
    held = [v.numpy() for v in variables]
    kept = {name: p.detach().clone() for name, p in both.torch_model.named_parameters()}
    start, total = {}, 0
    try:
        for variable, value in zip(variables, held, strict=True):
            start[id(variable)] = total + 1
            numbers = numpy.arange(total + 1, total + 1 + value.size).reshape(value.shape)
            variable.assign(numbers.astype(value.dtype))
            total += value.size
        with torch.no_grad():
            for parameter in both.torch_model.parameters():
                parameter.fill_(float("nan"))
        both.pair.copy_weights(both.tf_model, both.torch_model)
        copies = {name: p.detach().numpy().copy() for name, p in both.torch_model.named_parameters()}
    finally:
        for variable, value in zip(variables, held, strict=True):
            variable.assign(value)
        with torch.no_grad():
            for name, parameter in both.torch_model.named_parameters():
                parameter.copy_(kept[name])
        both.pair.copy_weights(both.tf_model, both.torch_model)
    if total >= 2**24 and not both.double:
        raise ValueError(f"{total} weights cannot all have numbers of their own in 32 bits: take smaller settings")
    places, alone, otherwise = {}, [], []
    for name, copy in copies.items():
        untouched = numpy.isnan(copy)
        whole = numpy.where(untouched, 0, copy)
        known = (whole == numpy.round(whole)) & (whole >= 1) & (whole <= total)
        places[name] = numpy.where(known, whole, 0).astype(numpy.int64)
        rest = int((~known & ~untouched & (whole != 0)).sum())
        if rest:
            otherwise.append(f"{name}: {rest} of {copy.size}")
        idle = int((untouched | (~known & (whole == 0))).sum())
        if idle:
            alone.append(f"{name} (PyTorch): {idle} of {copy.size}")
    return _Places(total, start, places), alone, otherwise
