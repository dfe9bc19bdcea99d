"""Counts model objects in the caller's own process, without workers: for ``reconcile.run(torch=model)`` and the pytest fixture.

``collect_live`` runs the tracers and counters one after another. ``Live`` presents a model object, or a function that makes
one, as a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..adapters.shared import signatures
from ..adapters.shared.refusal import BeyondCounter, CannotCount, FactoryError
from ..core.causes import State
from ..core.errors import UsageError
from ..core.framework import Framework, adapter_of
from ..core.protocol import TRACE, UserModel, WorkerRequest
from ..core.records import Ledger, Trace
from ..core.registry import frameworks, known_counters
from ..engine.reconcile import Missing
from ..engine.settle import Collected
from ..worker.factory import describe_unfed
from ..worker.main import EMPTY, Worker
from ..worker.model_at_hand import AtHand, quietly, same_numbers
from ..worker.user_code import describe_user_error, kind
from . import user_models
from .ownership import check_owner
from .request import RunRequest
from .runner import absent, make_unseeing, worker_request
from .workers.supervisor import Event


class Live(AtHand):
    """A model object of the caller's, or a function that makes one, as a pair of one framework.

    The adapter copies a model for every counter that may leave something behind in it.
    """

    here = True

    def __init__(self, request: WorkerRequest, adapter: Any, model: Any, inputs: Any) -> None:
        super().__init__(request, adapter, model)
        self.optimizer: Any = None
        self.example = None if self.given_inputs is not None or inputs is None else (inputs,)

    def _build(self, _params: object) -> Any:
        has_inputs = self.example is not None or self.given_inputs is not None
        if (
            not self.adapter.is_made(self.model)
            and callable(self.model)
            and self.adapter.makes_one(self.model, has_inputs)
        ):
            model = super()._build(_params)
        elif self.adapter.is_model(self.model):
            model = self._call(lambda: self.adapter.copy(self.model), f"copying {self.where}")
            if not has_inputs and self.adapter.functions and not self.adapter.is_made(model):
                raise FactoryError(
                    describe_unfed(self.where, model, "give them as inputs=, a tuple of them or a dict by name")
                )
            self._arguments = self._arguments_of(model, self.example, "")
        elif self.adapter.is_made(self.model):
            model, stated = self._call(lambda: self.adapter.as_model(self.model, self.example), f"copying {self.where}")
            self._arguments = self._arguments_of(model, stated, "")
        else:
            name, title = self.framework.name, self.framework.title
            raise FactoryError(f"{name}= is {kind(self.model)}; give a {title} model or a function that makes one.")
        if self.example is not None and self.adapter.functions:
            self._arguments = signatures.split_arguments(self.adapter.entry(model), self.example[0])
        elif self.example is not None:
            self._arguments = self._arguments_of(model, self.example, "")
        return model

    def _factory(self) -> Any:
        return self.adapter.maker(self.model)

    def _describe_missing_inputs(self) -> str:
        if self.adapter.is_made(self.model):
            remedy = "give them with --input, such as --input 1,3,224,224"
            return describe_unfed(f"the model {self.where}", self.adapter.entry(self.model), remedy)
        return super()._describe_missing_inputs()


def _request(
    framework: Framework, model: Any, inputs: Any, counters: Sequence[str], request: RunRequest
) -> WorkerRequest:
    name = getattr(model, "__name__", None) or type(model).__name__
    specs = [inputs] if isinstance(inputs, str) else inputs
    textual = isinstance(specs, Sequence) and specs and all(isinstance(item, str) for item in specs)
    read = user_models.read_inputs(specs) if textual else ()
    user_model = UserModel(
        factory=name,
        name=name,
        params={framework.name: name},
        frameworks=(framework.name,),
        inputs=tuple((i.name, i.shape, i.dtype) for i in read),
    )
    return worker_request(request, framework, counters, (TRACE, *counters), model=user_model)


def collect_live(
    models: Mapping[str, Any],
    inputs: Any,
    request: RunRequest,
    progress: Callable[[Event], None],
    optimizer: Any = None,
) -> Collected:
    """Run the tracers and counters on these models, by framework, in this process, as the request says, which names no model;
    ``optimizer`` is an optimizer object, for a training step like its own.

    Raises UsageError for a model or inputs that cannot be used.
    """
    counters = user_models.counters_of(dict.fromkeys(models, ""), request.counters)
    traces: list[Trace | Missing] = []
    ledgers: list[Ledger | Missing] = []
    names = {}
    for framework in (record for name, record in frameworks().items() if name in models):
        own_counters = [name for name in counters if known_counters()[name].framework == framework.name]
        if not framework.factories:
            what = f"{framework.name}= is {kind(models[framework.name])}"
            raise UsageError(f"{what}: a model of {framework.title} is given as the path of its file.")
        check_owner(framework, models[framework.name])
        adapter = adapter_of(framework)
        body = _request(framework, models[framework.name], inputs, own_counters, request)
        pair = Live(body, adapter, models[framework.name], inputs)
        pair.optimizer = optimizer
        names[framework.name] = pair.where
        worker = Worker(body, pair)
        with quietly(), same_numbers(), adapter.keep_state():
            trace = _take_record(worker, TRACE, progress)
            assert not isinstance(trace, Ledger)
            traces.append(trace)
            for counter in own_counters:
                if request.training and known_counters()[counter].blind:
                    ledgers.append(make_unseeing(counter))
                    continue
                ledger = _take_record(worker, counter, progress)
                assert not isinstance(ledger, Trace)
                ledgers.append(ledger)
    meta = {**EMPTY, "name": user_models.name_of(names), "params": names, "frameworks": list(names)}
    return Collected({**meta, "training": request.training, "context": request.context}, tuple(traces), tuple(ledgers))


def _take_record(worker: Worker, task: str, progress: Callable[[Event], None]) -> Trace | Ledger | Missing:
    framework, device = worker.framework, worker.request.device
    progress(Event(framework.name, task, "started"))
    try:
        record: Trace | Ledger = worker.take(task, {})
    except FactoryError as error:
        raise UsageError(str(error)) from error
    except BeyondCounter as error:
        progress(Event(framework.name, task, "failed"))
        return Missing(task, framework.name, State.NOT_COMPARABLE, str(error), known_counters()[task].unit, device)
    except Exception as error:
        progress(Event(framework.name, task, "failed"))
        not_installed = isinstance(error, ModuleNotFoundError) and error.name == framework.package
        state = State.SKIPPED if not_installed else State.FAILED
        reason = str(error) if isinstance(error, CannotCount) else describe_user_error(error).removeprefix("raised ")
        if task == TRACE:
            return Missing("trace", framework.name, state, reason, "", "")
        lacked = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if lacked and lacked == known_counters()[task].package:
            return absent(known_counters()[task], "in this environment", device)
        return Missing(task, framework.name, state, reason, known_counters()[task].unit, device)
    progress(Event(framework.name, task, "done"))
    return record
