"""``reconcile.count``: a context around your own code. What runs in it is the trace, and counters count that very execution.

>>> import torch, reconcile
>>> net, data = torch.nn.Linear(4, 2), torch.ones(3, 4)
>>> optimizer = torch.optim.AdamW(net.parameters())
>>> with reconcile.count(net) as step:
...     net(data).square().mean().backward()
...     optimizer.step()
>>> print(step)
Reconciled: 1 counter, 1 exact.
>>> step.metrics()["flops"]
96
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...api.results import Found
from ...core.causes import State
from ...core.errors import NotInResult, UsageError, unknown
from ...core.framework import absolute, adapter_of
from ...core.records import FORWARD
from ...core.registry import choose_leading, frameworks, known_counters
from ...engine.answer import Answer
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.keywords import speaks_python
from .utilisation import peak_of, utilisation

if TYPE_CHECKING:
    from ...core.framework import Framework
    from ...core.records import Ledger, Trace
    from ...launch.request import RunRequest
    from .against_formulas import Against

STEP_HAS_NOT_RUN = "the step has not run: look at it after the `with` block."
STEP_STILL_RUNS = "the step still runs: look at it after the `with` block."
STEP_ON_ANOTHER_THREAD = (
    "a step is being counted on another thread, and would take in this one: count one after the other."
)

COUNTED_ON: dict[Step, int] = {}
"""The thread of each step that runs in this process."""
ENTERING = Lock()
"""Held while a step begins, which imports the framework's parts: threads that do so at once find some of them half imported."""


@speaks_python()
def count(
    *models: Any,
    counters: Sequence[str] = (),
    convention: str = "matmul",
    convention_files: Sequence[str | Path] = (),
    formulas: Sequence[str | Path] = (),
    name: str = "",
    device: str = "",
    dtype: Any = "bf16",
    witness: bool = False,
) -> Step:
    """Count what runs in this context: your loop, your loss, your optimizer, as they are.

    ``models`` are for names: without them, modules are named as they are called. ``counters`` count the very same execution:
    flop_counter, unless given, and torch.profiler, which takes longer. ``convention``, ``convention_files`` and ``formulas`` are
    those of ``reconcile.run``. ``name`` is the step's name in reports. ``device`` is the device whose peak ``metrics`` divides
    by, such as ``H100 SXM``, and ``dtype`` that of its products, ``"bf16"`` or ``torch.bfloat16``: `reconcile mfu peaks` lists
    them. ``witness`` holds the trace to
    the log that the math libraries of the CPU write meanwhile.

    Weights, gradients, random numbers, hooks and modes are as after a step without the context. What torch.compile made runs
    as it is written. Raises UsageError, with one sentence, for what cannot be used.
    """
    from ...launch.choose import prepare_conventions
    from ...launch.request import run_request

    framework = framework_of(models)
    if witness:
        able = [name for name in choose_leading("witness") if known_counters()[name].framework == framework.name]
        counters = tuple(dict.fromkeys([*chosen_counters(framework, counters), *able]))
    request = run_request(
        convention=convention, convention_files=convention_files, counters=counters, formulas=formulas
    )
    with prepare_conventions(request):  # what is wrong with it is said before the step runs, not after it
        pass
    return Step(framework, models, request, name, peak_of(device, dtype) if device else None)


class Step(Found):
    """One step of a program: the context, and after it views of what ran, as ``reconcile.Run`` has them."""

    __slots__ = ("_answer", "_collected", "_counters", "_framework", "_models", "_name", "_peak", "_request", "context")

    def __init__(
        self,
        framework: Framework,
        models: Sequence[Any],
        request: RunRequest,
        name: str = "",
        peak: int | None = None,
    ) -> None:
        self._peak = peak
        self._framework, self._models, self._request = framework, tuple(models), request
        self._name = name or (type(models[0]).__name__ if models else "step")
        self._counters = make_nested(framework, request.counters)
        self.context: Any = None
        self._collected: Collected | None = None
        self._answer: Answer | None = None

    def __enter__(self) -> Step:
        self.enter()
        return self

    def enter(self) -> None:
        """Begin to count, without a ``with`` block."""
        if self.context is not None:
            raise UsageError("a step is counted once: call reconcile.count again for the next.")
        with ENTERING:
            if any(thread != get_ident() for thread in COUNTED_ON.values()):
                raise UsageError(STEP_ON_ANOTHER_THREAD)
            self.context = step_module(self._framework, "context").StepContext(
                self._models, tuple(self._counters.values())
            )
            self.context.enter()
            COUNTED_ON[self] = get_ident()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave(error)

    def leave(self, error: BaseException | None = None) -> None:
        """End to count; ``error`` is what ended the step before its time."""
        try:
            self.context.leave(error)
        finally:
            COUNTED_ON.pop(self, None)

    @property
    def result(self) -> Answer:  # type: ignore[override]
        """The whole record of the step. Raises NotInResult before its end."""
        if self._answer is None:
            self._answer = self._settle(self.collected)
        return self._answer

    def _settle(self, collected: Collected, every_convention: bool = True) -> Answer:
        from dataclasses import replace

        from ... import workflow

        return workflow.run(replace(self._request, every_convention=every_convention), take=lambda *_: collected)

    @property
    def collected(self) -> Collected:
        """The step's trace and ledgers. Raises NotInResult before its end."""
        if self.context is None:
            raise NotInResult(STEP_HAS_NOT_RUN)
        if self.context.runs:
            raise NotInResult(STEP_STILL_RUNS)
        if self._collected is None:
            self._collected = self._take()
        return self._collected

    def _take(self) -> Collected:
        ledgers: list[Any] = []
        for counter, made in zip(self._counters, self.context.ledgers(), strict=True):
            if isinstance(made, Exception):
                unit, device = known_counters()[counter].unit, self.context.device
                made = Missing(counter, self._framework.name, State.NOT_COMPARABLE, str(made), unit, device)
            ledgers.append(made)
        return collect_step(self._framework.name, self._name, self.context.trace(), ledgers)

    @property
    def seconds(self) -> float:
        """How long the step took while it was counted, in seconds: longer than without."""
        if self.context is None:
            raise NotInResult(STEP_HAS_NOT_RUN)
        return float(self.context.seconds)

    def metrics(self, seconds: float | None = None) -> dict[str, float]:
        """A flat dict of numbers for W&B, TensorBoard or MLflow: ``flops``, ``flops/forward`` and the other phases, ``seconds``.

        With a ``device``, also ``mfu`` and ``hfu`` of one device, and ``peak``, its FLOP/s. ``seconds`` is the time that you
        measured for a step that is not counted: a step takes longer while it is counted. Raises NotInResult where there is no
        number to publish, and UsageError for a time that is not above 0.
        """
        flops, taken = self.flops(), self.seconds if seconds is None else seconds
        return {**flops, "seconds": taken, **(utilisation(flops, taken, self._peak) if self._peak else {})}

    def flops(self) -> dict[str, int]:
        """The part of ``metrics`` that is counted. It is sooner there than ``result``, which has every convention."""
        return flops_of(self._answer or self._settle(self.collected, every_convention=False))

    def against(self, *formulas: str | Callable[..., Any], tokens: int | None = None, per: str = "step") -> Against:
        """Statements to the unit from formulas that people quote to what ran, such as ``against("formula:6n", "formula:palm")``.

        A formula may be a function of your own as well, which ``reconcile.llm`` explains in the same way: of (config, batch,
        seq), or what it says by the names of its parameters, to FLOPs of a step, or of a token with ``per="token"``. The model
        then has to be one of transformers. ``tokens`` is checked against the tokens that the model read in the step. Raises
        UsageError for a counter that is no formula, for another number of tokens, and for a model of which no function is
        explained.
        """
        from ...adapters.shared.refusal import FactoryError
        from .against_formulas import Against, explain_beside, statements

        def record_model() -> Any:
            try:
                return self.context.recorded_model(tokens)
            except FactoryError as error:
                raise UsageError(str(error)) from error

        if not formulas:
            raise UsageError('name a formula, such as against("formula:6n"): `reconcile explain counters` lists them.')
        names = [each for each in formulas if isinstance(each, str)]
        functions = [each for each in formulas if not isinstance(each, str)]
        answer = self._settle(statements(self.collected, record_model, names))
        return Against(
            answer, explain_beside(self.collected, answer, record_model(), functions, per) if functions else ()
        )


def collect_step(
    framework: str, name: str, trace: Trace, ledgers: Iterable[Ledger | Missing], program: str = ""
) -> Collected:
    """The record of a step of that name, as workers leave that of a model; ``program`` ran it, if it has another name."""
    from ...worker.main import EMPTY

    meta = {**EMPTY, "name": name, "params": {framework: program or name}, "frameworks": [framework], "context": None}
    return Collected(meta, (trace,), tuple(ledgers))


def flops_of(answer: Answer) -> dict[str, int]:
    """The total of a step, and each phase. Raises NotInResult where there is no number to publish."""
    if not answer.verdict.figures:
        raise NotInResult(" ".join(item.sentence for item in answer.verdict.withheld))
    (trace,) = answer.traces
    table = answer.phase_table(trace)
    total = trace.totals[answer.convention.name]
    phases: Mapping[str, int] = table.total.flops if table is not None else {FORWARD: total}
    return {"flops": total, **{f"flops/{phase}": flops for phase, flops in phases.items()}}


def framework_of(models: Sequence[Any]) -> Framework:
    """The framework of these models; of none, the first that records steps."""
    from ...worker.user_code import kind

    records = [record for record in frameworks().values() if record.steps]
    strays = []
    for record in records:
        is_model = adapter_of(record).is_model
        strays = [model for model in models if not is_model(model)]
        if not strays:
            return record
    titles = " or ".join(record.title for record in records)
    raise UsageError(f"reconcile.count takes {titles} models, and this is {kind(strays[0])}.")


def refuse_counter(name: str, able: Iterable[str]) -> UsageError:
    """The refusal of a counter that counts no step as it runs; ``able`` are those that do."""
    if known_counters()[name].quoted:
        return UsageError(
            f"{name} is a formula, which a step is compared with after it was counted, in Python: `with reconcile.count(net) as "
            f"step: ...`, then `step.against({name!r})`. A step is counted by {', '.join(able)}."
        )
    return UsageError(
        f"{name} counts a model that reconcile calls itself, and not a program's own step: give the model to `reconcile run "
        f"--counter {name}`. A step is counted by {', '.join(able)}."
    )


def chosen_counters(framework: Framework, asked: Sequence[str]) -> list[str]:
    """The counters that count the same execution: those that cost little, or those asked for. Raises UsageError."""
    known = {name: c for name, c in known_counters().items() if c.framework == framework.name and c.nested}
    for name in asked:
        if name not in known_counters():
            raise unknown("counter", name, known)
        if name not in known:
            raise refuse_counter(name, known)
    return [name for name, counter in known.items() if name in asked or (not asked and counter.default)]


def make_nested(framework: Framework, asked: Sequence[str]) -> dict[str, Any]:
    """The same with what makes each, which imports the framework."""
    names = chosen_counters(framework, asked)
    return {name: import_module(absolute(known_counters()[name].nested)).nested for name in names}


def step_module(framework: Framework, name: str) -> Any:
    """Import ``"context"`` or ``"calls"`` of what records the steps of this framework (``Framework.steps``)."""
    return import_module(f"{absolute(framework.steps)}.{name}")
