"""RecordedModel: the model of a recorded step for the ``formulas`` counter, with the tokens of all its calls as one batch."""

from __future__ import annotations

from typing import Any

import torch

from ....adapters.pytorch.model import Readable
from ....adapters.shared.refusal import FactoryError
from .recorder import StepRecorder

NO_MODEL_CALLED = "no model was called in the step, so a formula has no tokens to count."
LENGTHS_DIFFER = (
    "the model read tensors of %s in this step: a formula counts sequences of one length. Count one of these calls "
    "alone."
)
OTHER_NUMBER_OF_TOKENS = "the model read %d tokens in the step (%d x %d), and tokens=%d was given."


class RecordedModel(Readable):
    """What a formula's capture asks of a model (adapters/pytorch/model.py): all micro-batches of the step as one batch."""

    context = None

    def __init__(self, recorder: StepRecorder, model: Any, device: str, tokens: int | None) -> None:
        if not recorder.calls:
            raise FactoryError(NO_MODEL_CALLED)
        self.device, self.kept = device, {}
        self.training = "own" if recorder.passes else ""
        self.module = recorder.calls[0][0] if model is None else model
        own = [given[0] for module, given in recorder.calls if given and module is recorder.calls[0][0]]
        shapes = [shape if not dtype.is_floating_point else shape[:-1] for shape, dtype in own if shape]
        widths = {shape[1:] for shape in shapes}
        if len(widths) != 1:
            raise FactoryError(LENGTHS_DIFFER % " and ".join(str(tuple(shape)) for shape in dict.fromkeys(shapes)))
        (width,) = widths
        self.shape = (sum(shape[0] for shape in shapes), *width)
        rows, steps = ([1, 1, *self.shape])[-2:] if len(self.shape) < 2 else self.shape[:2]
        if tokens is not None and tokens != rows * steps:
            raise FactoryError(OTHER_NUMBER_OF_TOKENS % (rows * steps, rows, steps, tokens))

    def build(self, _device: str) -> torch.nn.Module:
        """The module itself: a formula reads it and changes nothing."""
        return self.module

    def example(self, _device: str) -> list[torch.Tensor]:
        """A tensor without values: the token ids of the whole step."""
        return [torch.empty(self.shape, dtype=torch.int64, device="meta")]
