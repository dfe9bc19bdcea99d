"""Models that are there already, in this very process: what stands for a pair, and its tasks one after another."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..adapters import COUNTERS
from ..adapters.shared import keras_model
from ..adapters.shared.refusal import FactoryError
from ..core.causes import State
from ..core.errors import UsageError
from ..core.records import TITLES, Ledger, Trace
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from ..worker.capture import TRACE
from ..worker.factory import Given, is_made, is_model, kind, said
from ..worker.main import EMPTY, PACKAGES, Worker
from . import user_models
from .runner import unseeing
from .supervisor import Event


class Live(Given):
    """One framework's model, or a function that makes one, in the caller's hands.

    A PyTorch module is copied for every counter, since some leave things behind; a TensorFlow model is only read.
    """

    def __init__(self, framework: str, model: Any, inputs: Any) -> None:
        name = getattr(model, "__name__", None) or type(model).__name__
        specs = [inputs] if isinstance(inputs, str) else inputs
        textual = isinstance(specs, Sequence) and specs and all(isinstance(item, str) for item in specs)
        request = {
            "factories": {framework: name},
            "name": name,
            "said": {framework: name},
            "inputs": [[i.name, i.shape, i.dtype] for i in user_models.read_inputs(specs)] if textual else [],
        }
        super().__init__(framework, request)
        self.model = model
        self.example = None if textual or inputs is None else (inputs,)

    def _build(self, _params: object) -> Any:
        if not is_made(self.framework, self.model) and callable(self.model) and self._makes_one():
            model = super()._build(_params)
        elif is_model(self.framework, self.model):
            torch = self.framework == "torch"
            model = self._calling(lambda: _copied(self.model) if torch else self.model, f"copying {self.where}")
            self._arguments = self._arguments_of(model, self.example, "")
        else:
            raise FactoryError(
                f"{self.framework}= is {kind(self.model)}; give a {TITLES[self.framework]} model or a function that makes one."
            )
        if self.example is not None:
            self._arguments = self._arguments_of(model, self.example, "")
        return model

    def _makes_one(self) -> bool:
        """Whether a plain function is a factory: TensorFlow functions that take inputs are models themselves."""
        return self.framework == "torch" or (self.example is None and self.given is None)

    def _factory(self) -> Any:
        return self.model

    def _calling(self, function: Any, what: str, declined: type[FactoryError] = FactoryError) -> Any:
        try:
            return function()
        except Exception as error:
            raise declined(f"{what} {said(error)}.") from error


def _copied(module: Any) -> Any:
    """A copy of a PyTorch module; where new tensors are made on meta, without a copy of its weights."""
    import torch

    if not torch.empty(()).is_meta:
        return copy.deepcopy(module)
    twins: dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        if type(tensor) is torch.nn.Parameter:
            twins[id(tensor)] = torch.nn.Parameter(tensor.detach().to("meta"), tensor.requires_grad)
        elif type(tensor) is torch.Tensor:
            twins[id(tensor)] = tensor.to("meta")
    return copy.deepcopy(module, twins)


def collect_live(
    models: Mapping[str, Any],
    inputs: Any,
    asked: Sequence[str],
    device: str,
    progress: Callable[[Event], None],
    training: str = "",
) -> Collected:
    """Run the tracers and counters of these models here; ``training`` is the optimiser of a training step, '' for a call.

    Raises UsageError for a model or inputs that cannot be used.
    """
    counters = user_models.counters_of(dict.fromkeys(models, ""), asked)
    traces: list[Trace | Missing] = []
    ledgers: list[Ledger | Missing] = []
    pairs = {name: Live(name, models[name], inputs) for name in PACKAGES if name in models}
    for framework, pair in pairs.items():
        worker = Worker({"framework": framework, "out": "", "device": device, "recipe": "", "training": training}, pair)
        with _untouched(framework):
            trace = _taken(worker, TRACE, framework, device, progress)
            assert not isinstance(trace, Ledger)
            traces.append(trace)
            for counter in (name for name in counters if COUNTERS[name].framework == framework):
                if training and COUNTERS[counter].blind:
                    ledgers.append(unseeing(counter))
                    continue
                ledger = _taken(worker, counter, framework, device, progress)
                assert not isinstance(ledger, Trace)
                ledgers.append(ledger)
    names = {name: pair.where for name, pair in pairs.items()}
    meta = {
        **EMPTY,
        "name": user_models.name_of(names),
        "params": names,
        "frameworks": list(names),
        "training": training,
    }
    return Collected(meta, tuple(traces), tuple(ledgers))


def _taken(
    worker: Worker, task: str, framework: str, device: str, progress: Callable[[Event], None]
) -> Trace | Ledger | Missing:
    progress(Event(framework, task, "started"))
    try:
        record: Trace | Ledger = worker.take(task, {})
    except FactoryError as error:
        raise UsageError(str(error)) from error
    except Exception as error:
        unit = "" if task == TRACE else COUNTERS[task].unit
        lost = isinstance(error, ModuleNotFoundError) and error.name == PACKAGES[framework]
        state = State.SKIPPED if lost else State.FAILED
        name = "trace" if task == TRACE else task
        progress(Event(framework, task, "failed"))
        return Missing(
            name, framework, state, said(error).removeprefix("raised "), unit, "" if task == TRACE else device
        )
    progress(Event(framework, task, "done"))
    return record


@contextlib.contextmanager
def _untouched(framework: str) -> Iterator[None]:
    """The caller's random numbers go on as if nothing had run in between, and what old counters warn of stays here."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if framework == "torch":
            import torch

            stack.enter_context(torch.random.fork_rng())
            stack.callback(keras_model.place, "")
        yield
