"""Base class of the training callbacks ``reconcile.transformers``, ``.lightning`` and ``.keras``: the totals that users read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...api.results import Found
from .training_run import TrainingRun

if TYPE_CHECKING:
    import pandas


class Counts:
    """The views that every callback has: totals, steps and metrics of a training run.

    ``flops`` is the total until now, None where a step could not be counted (``withheld`` says why). ``steps`` is a table by
    shapes, ``last`` the ``reconcile.Step`` that was counted last, ``metrics()`` what is logged.

    The arguments are those of ``reconcile.count``; ``check_every`` counts each n-th step of known shapes again, and withholds
    the total if it is not the same. Raises UsageError for what cannot be used.
    """

    def __init__(self, check_every: int = 0, **options: Any) -> None:
        super().__init__()
        self.running = self._make_running(check_every, **options)

    def _make_running(self, check_every: int, **options: Any) -> TrainingRun:
        return TrainingRun(check_every, **options)

    @property
    def flops(self) -> int | None:
        """What ran until now, in FLOPs; None where a step could not be counted."""
        return self.running.flops

    @property
    def withheld(self) -> str:
        """Why there is no total; '' if there is one."""
        return self.running.withheld

    @property
    def steps(self) -> pandas.DataFrame:
        """A row per kind of micro-batch: its shapes, how many ran, and the FLOPs of one and of all."""
        return self.running.steps

    @property
    def last(self) -> Found | None:
        """The micro-batch that was counted last, with all views of ``reconcile.count``."""
        return self.running.last

    def close(self) -> None:
        """Stop counting now. You need it only after a training that an error ended, where the library told no callback."""
        self.running.close()

    def metrics(self) -> dict[str, int]:
        """``flops``, ``flops/forward`` and the other phases, all cumulative; empty where there is no total."""
        return self.running.metrics()
