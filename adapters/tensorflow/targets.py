"""A batch of Keras' ``fit``, and training targets for a compiled Keras model: given ones in Keras' precision, else zeros in the
shape that the loss takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared import nested
from ..shared.refusal import CannotCount
from .model import _dtype_name, is_leaf

SPARSE = "sparse"
"""In the name of a loss that takes the numbers of classes and not a value for each class, in Keras as in TensorFlow."""
RETURN_TARGETS_TOO = (
    "return (model, x, y) from the factory, or add --optimizer sgd to count the standard step in place of the model's "
    "own"
)


class Batch:
    """One batch as the program's step took it: ``x``, the ``rest`` of the tuple that it came in, and which step it was."""

    name = note = ""  # its model has a name, and keras_train_step.py describes it

    def __init__(self, data: Any, number: int = 1, by: str = "fit") -> None:
        self.number, self.by = number, by
        self._whole = not isinstance(data, (tuple, list)) or not data
        self.x = data if self._whole else data[0]
        self.rest: tuple[Any, ...] = () if self._whole else tuple(data[1:])

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the model is called with."""
        return (self.x,), {}

    def fill(self, x: Any, rest: tuple[Any, ...]) -> Any:
        """The same batch with other tensors."""
        return x if self._whole else (x, *rest)


def make_targets(model: Any, outputs: Any) -> Any:
    """Zeros in the structure of the outputs: integers without the last axis for a sparse loss, else like the output."""
    losses = iter(_losses(model, outputs))
    return nested.change_leaves(outputs, is_leaf, lambda leaf: _zeros(leaf, next(losses)))


def _zeros(leaf: Any, loss: Any) -> Any:
    import numpy

    if None in tuple(leaf.shape):
        raise CannotCount(
            f"the shape of the model's output is not known, so there are no targets for it: {RETURN_TARGETS_TOO}."
        )
    shape = tuple(int(size) for size in leaf.shape)
    if loss is not None and SPARSE in name_of(loss).lower():
        return numpy.zeros(shape[:-1], "int64")
    name = _dtype_name(leaf)
    return numpy.zeros(shape, _floatx() if "float" in name else name)


def cast_floats(given: Any) -> Any:
    """Given targets as ``fit`` takes them: floating numbers in Keras' own precision."""
    import numpy

    def take_leaf(leaf: Any) -> Any:
        array = numpy.asarray(leaf)
        return array.astype(_floatx()) if array.dtype.kind == "f" else array

    return nested.change_leaves(
        given, lambda value: not isinstance(value, (tuple, list, Mapping)) or is_leaf(value), take_leaf
    )


def _floatx() -> str:
    import tensorflow as tf

    return str(tf.keras.backend.floatx())


def _losses(model: Any, outputs: Any) -> list[Any]:
    """The loss of each leaf of the outputs, None where there is none. compile takes one for all, a list, or a dict by name."""
    count = len(nested.leaves(outputs, is_leaf))
    loss = model.loss
    if isinstance(loss, Mapping):
        names = list(outputs) if isinstance(outputs, Mapping) else list(getattr(model, "output_names", ()))
        return [loss.get(name) for name in names] if len(names) == count else [None] * count
    if isinstance(loss, (list, tuple)):
        return list(loss) if len(loss) == count else [None] * count
    return [loss] * count


def name_of(loss: Any) -> str:
    """The name of a loss: a string, a function or an object."""
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
