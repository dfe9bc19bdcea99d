"""A callback for Keras' ``fit`` that counts the FLOPs of a training run. You import it yourself: it needs Keras.

>>> from reconcile.keras import Flops                           # doctest: +SKIP
>>> flops = Flops()                                             # doctest: +SKIP
>>> model.fit(x, y, callbacks=[flops])                          # doctest: +SKIP
>>> flops.flops                                                 # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import keras

from .core.errors import UsageError
from .core.registry import frameworks
from .products.steps.callback import Counts
from .products.steps.keras_fit import FitTrainingRun
from .products.steps.training_run import TrainingRun

OTHER_KERAS_BACKEND = (
    "reconcile.keras.Flops counts the steps of {there}, and this is Keras on {here}: reconcile.run and "
    "`reconcile run --pass training` count a step there."
)


class Flops(Counts, keras.callbacks.Callback):
    """Counts what ``fit`` runs, and adds the total to the logs of an epoch. The arguments are those of ``Counts``.

    On PyTorch a batch is counted from the first call of the model. On TensorFlow the graph of a train_step is counted for each
    new signature of a batch. Raises UsageError where Keras has another backend.
    """

    def _make_running(self, check_every: int, **options: Any) -> TrainingRun:
        for record in frameworks().values():
            if record.backend == keras.backend.backend() and record.fits:
                return FitTrainingRun(record, check_every, **options)
        return super()._make_running(check_every, **options)

    def on_train_begin(self, logs: Any = None) -> None:
        """See Keras' Callback."""
        here = keras.backend.backend()
        recorded = [record for record in frameworks().values() if record.backend and (record.steps or record.fits)]
        if here not in {record.backend for record in recorded}:
            there = " or ".join(f"Keras on {record.backend}" for record in recorded)
            raise UsageError(OTHER_KERAS_BACKEND.format(there=there, here=here))
        self.running.attach(self.model)

    @property
    def _of_graphs(self) -> bool:
        """Whether the batches are told by the train function."""
        return isinstance(self.running, FitTrainingRun)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """See Keras' Callback."""
        if not self._of_graphs:
            self.running.begin(self._steps)

    def _steps(self) -> bool:
        """Whether the optimizer will change the weights after this batch, or keep its gradients."""
        every = self.model.optimizer.gradient_accumulation_steps
        return not every or (int(self.model.optimizer._iterations) + 1) % every == 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """See Keras' Callback."""
        if not self._of_graphs:
            self.running.end()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """See Keras' Callback."""
        if logs is not None:
            logs.update(self.metrics())

    def on_train_end(self, logs: Any = None) -> None:
        """See Keras' Callback."""
        self.running.close()
