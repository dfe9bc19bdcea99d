"""Counts of Keras ``fit`` on TensorFlow (``reconcile.keras``): one trace for each new signature of a batch, reused later.

TensorFlow runs a step as one graph, so there are no micro-batches to record. Each batch of ``fit`` is told before it runs
(tensorflow/fit.py); the batch is traced as ``reconcile watch`` traces it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...api.results import Run
from ...core.framework import Framework, absolute
from ...core.message import text_of
from ...launch.request import run_request
from .count import collect_step, flops_of
from .training_run import Kind, TrainingRun
from .utilisation import peak_of, utilisation

STEP_NOT_TRACED = "a step cannot be traced: %s."


@dataclass(frozen=True, slots=True, repr=False)
class FitStep(Run):
    """The result for one step of ``fit``. ``peak`` is the device's, in FLOP/s; None without a device."""

    peak: int | None = None

    def metrics(self, seconds: float | None = None) -> dict[str, float]:
        """As ``Step.metrics``: the step was traced and not timed, so there is no utilisation without the ``seconds`` that you
        measured."""
        flops = flops_of(self.result)
        if seconds is None:
            return dict(flops)
        return {**flops, "seconds": seconds, **(utilisation(flops, seconds, self.peak) if self.peak else {})}


class FitTrainingRun(TrainingRun):
    """``TrainingRun`` for whole steps, that are told before they run. ``framework`` is the one that ``fit`` runs on."""

    def __init__(
        self,
        framework: Framework,
        check_every: int = 0,
        *,
        name: str = "",
        device: str = "",
        dtype: Any = "bf16",
        **options: Any,
    ) -> None:
        self.start(check_every)
        self.framework, self._request = framework, run_request(**options)
        self._name, self._peak = name, peak_of(device, dtype) if device else None
        self._fit: Any = None

    def attach(self, model: Any, inner: bool = False) -> None:
        """The training of this model begins."""
        self.close()
        self._models.setdefault(model, len(self._models))
        self._fit = import_module(absolute(self.framework.fits)).FitBatches(model, self._take_batch)
        self._withheld = self._withheld or self._fit.why_not_counted

    def close(self, error: BaseException | None = None) -> None:
        """The training is done, or ``error`` ended it. Nothing is left on the model."""
        fit, self._fit = self._fit, None
        if fit is not None:
            fit.close()

    def _take_batch(self, model: Any, signature: tuple[str, ...], batch: Callable[[], Any] | None) -> None:
        """A batch is about to run. ``batch`` returns it; None where a batch of this signature has run already."""
        if self._withheld:
            return
        key = (self._models[model], signature)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(", ".join(signature))
        due = self.check_every and kind.calls % self.check_every == 0
        kind.calls += 1
        if batch is not None and (kind.metrics is None or due):
            self._count(kind, model, batch())

    def _count(self, kind: Kind, model: Any, batch: Any) -> None:
        from ... import workflow
        from .pending_step import PendingStep

        try:
            trace = PendingStep(self.framework, {}, model, batch).trace()
        except Exception as error:  # whatever the program's own code raises where it is traced
            self._withheld = kind.reason = STEP_NOT_TRACED % text_of(error).rstrip(".")
            return
        collected = collect_step(self.framework.name, self._name or type(model).__name__, trace, ())
        run = FitStep(workflow.run(self._request, take=lambda *_: collected), self._peak)
        self._note_count(kind, run, lambda: flops_of(run.result))
