"""One training step of either of a pair's models, as numbers: in double precision, with nothing random left in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconcile.model_zoo.parity import Both


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


def unavailable() -> tuple[type[Exception], ...]:
    """What TensorFlow raises where it has no kernel for this type here."""
    import tensorflow as tf

    return tf.errors.UnimplementedError, tf.errors.NotFoundError


def inactive(both: Both) -> None:
    """Dropout with rate 0, wherever a layer or module keeps its rate."""
    import torch

    still(both.tf_model)
    for module in both.torch_model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0


def still(model: Any) -> None:
    """The same of a Keras model, whatever it runs on."""
    for layer in model._flatten_layers() if hasattr(model, "_flatten_layers") else ():
        for rate in ("rate", "dropout", "recurrent_dropout", "_dropout", "drop_rate"):
            if isinstance(vars(layer).get(rate), float):
                setattr(layer, rate, 0.0)


@dataclass(frozen=True)
class Step:
    """The loss, and its gradients: of each floating input in order, of each weight by its name, shaped as they are."""

    loss: float
    inputs: list[Any]
    weights: dict[str, Any]


def tensorflow_step(both: Both) -> Step:
    """TensorFlow's, through XLA where it has no kernel in double precision outside of it."""
    import numpy
    import tensorflow as tf

    example = [tf.constant(x) for x in both.example()]
    floating = [x for x in example if x.dtype.is_floating]
    variables = variables_of(both)
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
    except unavailable():  # no kernel in double precision (images with channels first, 3-D pooling); XLA has one
        loss, flat = tf.function(step, jit_compile=True)()
    found = [numpy.asarray(g) for g in flat]
    names = [f"{i} {name_of(v)}" for i, v in enumerate(variables)]
    return Step(float(loss), found[: len(floating)], dict(zip(names, found[len(floating) :], strict=True)))


def torch_step(both: Both) -> Step:
    """PyTorch's."""
    import torch

    module = both.torch_model.train()
    module.zero_grad(set_to_none=True)
    example = [torch.as_tensor(x) for x in both.example()]
    floating = [x.requires_grad_(True) for x in example if x.is_floating_point()]
    outputs = [y for y in _flat(module(*example)) if y.is_floating_point()]
    loss = torch.stack([y.square().mean() for y in outputs]).sum()
    loss.backward()
    weights = {name: _gradient(p) for name, p in module.named_parameters()}
    return Step(float(loss.detach()), [_gradient(x) for x in floating], weights)


def variables_of(both: Both) -> list[Any]:
    """What TensorFlow trains; of an object that is no Keras model, all its weights."""
    return list(getattr(both.tf_model, "trainable_variables", both.tf_model.weights))


def name_of(variable: Any) -> str:
    """Keras' path of a variable, or its own name."""
    return str(getattr(variable, "path", variable.name))


def _gradient(tensor: Any) -> Any:
    import torch

    return (torch.zeros_like(tensor) if tensor.grad is None else tensor.grad).detach().numpy().copy()


def _flat(outputs: Any) -> list[Any]:
    return [y for each in outputs for y in _flat(each)] if isinstance(outputs, (tuple, list)) else [outputs]
