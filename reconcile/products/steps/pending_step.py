"""Traces and counts a step before it runs: for ``reconcile watch`` on TensorFlow and JAX, and for Keras' ``fit`` on TensorFlow.

The captures of counters read graphs and run copies of them, so the model is as before, and the program can go on. PyTorch's steps
do not pass here: they are recorded while they run (``Framework.steps``).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...core.framework import Framework, adapter_of
from ...core.protocol import TRACE, UserModel, WorkerRequest
from ...worker.main import Worker
from ...worker.model_at_hand import AtHand, quietly, same_numbers


class PendingPair(AtHand):
    """A program's model and the batch of its step, as a pair. A batch has the ``arguments`` of the model's call, positional and
    named, a ``name`` for a model that is a function, and a ``note`` for the report."""

    def __init__(self, request: WorkerRequest, adapter: Any, model: Any, batch: Any) -> None:
        super().__init__(request, adapter, model)
        self.targets = batch

    def _build(self, _params: Any) -> Any:
        self._arguments = self.targets.arguments
        return self.model

    def called_notes(self, inputs: Callable[[], str]) -> tuple[str, ...]:
        """See FactoryPair.called_notes."""
        return (*filter(None, [self.targets.note]), *super().called_notes(inputs))


class PendingStep:
    """The step of one model on one batch; ``counters`` are those to take, each with its module and its package."""

    seconds = 0.0

    def __init__(self, framework: Framework, counters: dict[str, Any], model: Any, batch: Any) -> None:
        name = batch.name or type(model).__name__
        adapter = adapter_of(framework)
        request = WorkerRequest(
            framework=framework,
            tasks=(TRACE, *counters),
            out="",
            counters={name: (module, package) for name, (module, package) in counters.items()},
            model=UserModel(name, name, {framework.name: name}, (framework.name,)),
            training="own" if adapter.own_steps else "",
        )
        import_module("numpy.random")  # before its state is kept: a capture may import and seed it
        self._worker = Worker(request, PendingPair(request, adapter, model, batch))

    def trace(self) -> Any:
        """Trace of the step. Raises whatever the model raises."""
        with same_numbers(), quietly():
            return self._worker.take(TRACE, {})

    def ledgers(self) -> list[Any]:
        """The ledgers in the order of the counters; the exception for one that has none."""
        made: list[Any] = []
        for name in self._worker.request.counters:
            try:
                with same_numbers(), quietly():
                    made.append(self._worker.take(name, {}))
            except Exception as error:
                made.append(error)
        return made
