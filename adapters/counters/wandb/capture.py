"""Runs WandbCallback.get_flops and returns its ledger, with the nodes that tf.profiler counted.

The callback's constructor needs a run (wandb/integration/keras/keras.py:411 of 0.27.0); get_flops reads its model alone (:1044 to
:1090). TensorFlow 2.x with Keras 2.
"""

import os
from typing import Any

from ....core.records import Ledger
from ...shared.distribution import version_of
from ...shared.refusal import CannotCount
from ...tensorflow.model import TfModel
from ..keras_flops.capture import batch_of, profiled_once

COUNTS_ONE_SAMPLE = (
    "get_flops counts one sample, whatever the batch (wandb/integration/keras/keras.py:1065); the run has {:,}"
)


def capture(counter: str, model: TfModel) -> Ledger:
    """The ledger of one get_flops, in the FLOPs that it has before it divides: they are whole numbers."""
    batch = batch_of(model)
    os.environ["WANDB_ERROR_REPORTING"] = "false"  # an error stays on this machine
    try:
        import wandb
        from wandb.integration.keras.keras import WandbCallback
    except ImportError as error:
        said = str(error).partition(" (/")[0]
        raise CannotCount(
            f"no WandbCallback here ({said}); wandb 0.27.1 removed it: take 0.27.0 or an older one"
        ) from error

    class Given(WandbCallback):
        """The callback with a model and without a run."""

        def __init__(self) -> None:
            self.input_type, self.log_gradients = None, False  # read by set_model (:560)
            self.set_model(model.called_model)

    ledger, gflops = profiled_once(counter, model, lambda: _flops(Given()))
    if gflops != ledger.total / 1e9 / 2:
        raise CannotCount(f"get_flops returns {gflops!r}, and tf.profiler counted {ledger.total:,} FLOPs")
    notes = () if batch == 1 else (COUNTS_ONE_SAMPLE.format(batch),)
    return ledger._replace(versions=dict(ledger.versions, wandb=version_of("wandb", wandb)), notes=notes)


def _flops(callback: Any) -> float:
    """Raises CannotCount with Keras 3."""
    try:
        return float(callback.get_flops())
    except TypeError as error:
        if "can only concatenate list" not in str(error):
            raise
        raise CannotCount(
            "get_flops adds a list to the shape of an input, which is a tuple in Keras 3 "
            "(wandb/integration/keras/keras.py:1067), and W&B logs no GFLOPs there: Keras 2 is the newest it takes, so "
            "add --environment wandb"
        ) from error
