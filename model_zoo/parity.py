"""Whether a pair's two models compute the same: weights copied, one input, outputs compared. Needs both frameworks."""

from __future__ import annotations

from typing import Any, NamedTuple


class Parity(NamedTuple):
    """``error``: largest absolute difference relative to the largest output; ``spread``: largest minus smallest output."""

    error: float
    spread: float


class Both:
    """A pair's two models with the same weights."""

    def __init__(self, pair: Any, params: Any) -> None:
        import torch

        self.pair = pair
        self.params = params
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
                found.append(generator.standard_normal(spec.shape).astype(spec.dtype))
            else:
                found.append(generator.randint(0, 2, spec.shape).astype(spec.dtype))
        return found

    def theirs(self) -> Any:
        """PyTorch's output on the example, as a numpy array."""
        import torch

        with torch.no_grad():
            return self.torch_model(*[torch.as_tensor(x) for x in self.example()]).numpy()

    def compare(self, theirs: Any = None) -> Parity:
        """Run both and compare their first outputs; ``theirs`` is PyTorch's where it is known already."""
        import numpy

        example = self.example()
        ours = numpy.asarray(self.tf_model(example[0] if len(example) == 1 else example))
        theirs = self.theirs() if theirs is None else theirs
        if ours.shape != theirs.shape:
            return Parity(float("inf"), 0.0)
        largest = float(numpy.abs(ours).max())
        return Parity(float(numpy.abs(ours - theirs).max()) / largest, float(ours.max() - ours.min()))
