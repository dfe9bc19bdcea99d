"""A callback for Lightning's ``Trainer`` that counts the FLOPs of a training run. You import it yourself: it needs Lightning.

>>> from reconcile.lightning import Flops                       # doctest: +SKIP
>>> flops = Flops()                                             # doctest: +SKIP
>>> Trainer(callbacks=[flops]).fit(module, loader)              # doctest: +SKIP
>>> flops.flops                                                 # doctest: +SKIP

It is a callback of ``lightning`` and of ``pytorch_lightning``, whichever are installed.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .products.steps.callback import Counts
from .products.steps.count import framework_of, step_module

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
"""The same library under two names: a trainer of one refuses a callback of the other."""


def _callbacks() -> tuple[type, ...]:
    found = [name for name in _PACKAGES if find_spec(name.partition(".")[0])]
    if not found:
        raise ImportError("reconcile.lightning needs Lightning: pip install lightning")
    return tuple(dict.fromkeys(import_module(name).Callback for name in found))


class Flops(Counts, *_callbacks()):  # type: ignore[misc]
    """Counts what ``Trainer.fit`` runs, and logs the total. The arguments are those of ``Counts``.

    A batch is counted from ``on_train_batch_start`` to ``on_train_batch_end``.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """See Lightning's Callback."""
        self.running.attach(pl_module, inner=True)
        self._described = step_module(framework_of((pl_module,)), "calls").describe_tensors

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """See Lightning's Callback."""
        done = batch_idx + 1
        steps = done % trainer.accumulate_grad_batches == 0 or done == trainer.num_training_batches
        self.running.begin(lambda: steps, self._described(batch))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """See Lightning's Callback."""
        self.running.end()
        if trainer.is_last_batch or trainer.global_step % max(trainer.log_every_n_steps, 1) == 0:
            pl_module.log_dict({name: float(flops) for name, flops in self.metrics().items()}, on_step=True)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """See Lightning's Callback."""
        self.running.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """See Lightning's Callback."""
        self.running.close(exception)
