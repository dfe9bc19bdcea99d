"""A callback for ``transformers.Trainer`` that counts the FLOPs of a training run. You import it yourself: it needs transformers.

>>> from reconcile.transformers import FlopsCallback            # doctest: +SKIP
>>> flops = FlopsCallback()                                     # doctest: +SKIP
>>> Trainer(model, args, callbacks=[flops]).train()             # doctest: +SKIP
>>> flops.flops                                                 # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

from accelerate.state import GradientState
from transformers import TrainerCallback

from .products.steps.callback import Counts


def _steps() -> bool:
    """Whether the trainer will step its optimizer after this micro-batch."""
    return bool(GradientState().sync_gradients)


class FlopsCallback(Counts, TrainerCallback):
    """Counts what ``Trainer.train`` runs, and adds the total to its logs. The arguments are those of ``Counts``.

    A micro-batch is counted from the first call of the model, because a callback is not shown the batch.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """See TrainerCallback."""
        self.running.attach(model)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """See TrainerCallback."""
        self.running.begin(_steps)

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """See TrainerCallback."""
        self.running.end()
        self.running.begin(_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """See TrainerCallback."""
        self.running.end()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """See TrainerCallback."""
        metrics = self.metrics()
        if logs is not None:
            logs.update(metrics)
        if state.log_history:
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """See TrainerCallback."""
        self.running.close()
