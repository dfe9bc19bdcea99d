"""A callback for Keras' ``fit`` that counts a training run. Import it by name, it needs Keras.

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
from .steps.callback import Counts

BACKEND = (
    "reconcile.keras.Flops counts the steps of {there}, and this is Keras on {here}, whose step runs as one graph: "
    "reconcile.run and `reconcile run --pass training` count that."
)


class Flops(Counts, keras.callbacks.Callback):
    """Counts what ``fit`` runs, and adds the total to the logs of an epoch. The arguments are those of ``Counts``.

    A batch is counted from the first call of the model. Raises UsageError where Keras has another backend than PyTorch.
    """

    def on_train_begin(self, logs: Any = None) -> None:
        """See Keras' Callback."""
        here = keras.backend.backend()
        recorded = [record for record in frameworks().values() if record.steps and record.backend]
        if here not in {record.backend for record in recorded}:
            there = " or ".join(f"Keras on {record.backend}" for record in recorded)
            raise UsageError(BACKEND.format(there=there, here=here))
        self.running.attach(self.model)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """See Keras' Callback."""
        self.running.begin(self._steps)

    def _steps(self) -> bool:
        """Whether the optimizer will change the weights after this batch, or keep its gradients."""
        every = self.model.optimizer.gradient_accumulation_steps
        return not every or (int(self.model.optimizer._iterations) + 1) % every == 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """See Keras' Callback."""
        self.running.end()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """See Keras' Callback."""
        if logs is not None:
            logs.update(self.metrics())

    def on_train_end(self, logs: Any = None) -> None:
        """See Keras' Callback."""
        self.running.close()
