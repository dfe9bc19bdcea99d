"""Whether a pair's two models compute the same: weights copied, one input, outputs compared. Needs both frameworks."""

from __future__ import annotations

from typing import Any, NamedTuple

GAINS = (0.25, 16.0)
"""Variances, times the fan-in, between which kernels are drawn so that the output varies and is not saturated."""
ALIVE, SATURATED = 5e-2, 0.9


class Parity(NamedTuple):
    """Of the output that agrees least, or varies least.

    ``error``: largest absolute difference relative to that output's largest value; ``spread``: largest minus smallest.
    """

    error: float
    spread: float


class Both:
    """A pair's two models with the same weights."""

    def __init__(self, pair: Any, params: Any, *, double: bool = False) -> None:
        import tensorflow as tf
        import torch

        self.pair = pair
        self.params = params
        self.double = double
        tf.keras.utils.set_random_seed(2)  # a proof that holds once holds again
        self.tf_model = pair.build_tf(params)
        torch.manual_seed(0)
        self.torch_model = pair.build_torch(params).eval()
        pair.copy_weights(self.tf_model, self.torch_model)

    def example(self) -> list[Any]:
        """One pseudo-random input for both, as numpy arrays."""
        import numpy

        generator = numpy.random.RandomState(0)
        found = []
        for spec in self.pair.inputs(self.params):
            if spec.dtype.startswith("float"):
                found.append(generator.standard_normal(spec.shape).astype("float64" if self.double else spec.dtype))
            else:
                found.append(generator.randint(0, 2, spec.shape).astype(spec.dtype))
        return found

    def enliven(self) -> None:
        """Weights as Keras draws them let the signal die out over many layers: draw kernels for another variance then."""
        if self.compare().spread >= ALIVE:
            return
        low, high = GAINS
        for _ in range(12):
            gain = (low * high) ** 0.5
            self._draw(gain)
            spread = self.compare().spread
            if ALIVE <= spread <= SATURATED:
                return
            low, high = (low, gain) if spread > SATURATED else (gain, high)

    def _draw(self, gain: float) -> None:
        """Kernels for this variance, on both sides."""
        import numpy

        for layer in getattr(self.tf_model, "layers", []):
            kernel = getattr(layer, "kernel", None)
            if kernel is not None and kernel.numpy().std() > 0:
                shape = kernel.shape[:2] if "Depthwise" in type(layer).__name__ else kernel.shape[:-1]
                kernel.assign(kernel.numpy() * (gain / numpy.prod(shape)) ** 0.5 / kernel.numpy().std())
        self.pair.copy_weights(self.tf_model, self.torch_model)

    def theirs(self) -> list[Any]:
        """PyTorch's outputs on the example, as numpy arrays."""
        import torch

        with torch.no_grad():
            found = _several(self.torch_model(*[torch.as_tensor(x) for x in self.example()]))
        return [output.numpy() for output in found]

    def compare(self, theirs: list[Any] | None = None) -> Parity:
        """Run both and compare all their outputs, in order, each against its own largest value.

        ``theirs`` are PyTorch's outputs where they are known already.
        """
        import numpy

        example = self.example()
        ours = _several(self.tf_model(example[0] if len(example) == 1 else example))
        theirs = self.theirs() if theirs is None else theirs
        if len(ours) != len(theirs):
            return Parity(float("inf"), 0.0)
        found = [_compare_outputs(numpy.asarray(a), b) for a, b in zip(ours, theirs, strict=True)]
        worst = float(numpy.max([p.error for p in found]))  # nan, if any of them is: max() would pass over it
        return Parity(worst, min(p.spread for p in found))


def _several(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _compare_outputs(ours: Any, theirs: Any) -> Parity:
    import numpy

    if ours.shape != theirs.shape:
        return Parity(float("inf"), 0.0)
    largest, apart = float(numpy.abs(ours).max()), float(numpy.abs(ours - theirs).max())
    if largest == 0:
        return Parity(0.0 if apart == 0 else float("inf"), 0.0)
    return Parity(apart / largest, float(ours.max() - ours.min()))
