"""Formulas reconciled with a step that ran, published ones (``formula:6n``) and functions of one's own: what ``Step.against``
returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...adapters.shared.refusal import BeyondCounter, FactoryError
from ...api.results import Run
from ...core.causes import Cause, State
from ...core.conventions import MATMUL
from ...core.errors import NotInResult, UsageError, unknown
from ...core.escaping import escape_lines
from ...core.number_format import format_signed, number
from ...core.records import Ledger, Trace
from ...core.registry import known_counters, products
from ...engine.answer import Answer
from ...engine.breakdown import RESIDUAL
from ...engine.reconcile import Missing
from ...engine.settle import Collected

if TYPE_CHECKING:
    from ..llm.comparison import Quote

NO_SIZES = (
    "a function is explained by the sizes of a configuration, and the model of the step, %s, is none of transformers with the "
    "configuration of its class: give reconcile.llm a config.json and the function."
)


@dataclass(frozen=True, slots=True, repr=False)
class Against(Run):
    """A ``Run`` whose counters are the formulas; printed, it shows the statement of each.

    Attributes:
        functions: What functions of one's own count, each with its causes, its residual, and its differences in sentences.
    """

    functions: tuple[Quote, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 reconciled, 1 unexplained or incomplete, 3 a counter failed."""
        return self.result.exit_code or int(any(quote.residual != 0 for quote in self.functions))

    def __str__(self) -> str:
        lines = []
        for counter in self.result.verdict.counters:
            statement = counter.statement
            if statement is None or statement.from_total is None or statement.to_total is None:
                lines += [f"{counter.ledger.counter}: {counter.ledger.reason or counter.state.value}", ""]
                continue
            causes = [(str(cause), amount) for cause, amount in counter.causes if cause != RESIDUAL]
            residual = sum(r.amount for r in statement.residuals)
            lines += _list_lines(counter.ledger.counter, statement.from_total, causes, residual)
        for quote in self.functions:
            if quote.step is None or quote.residual is None:
                lines += [f"{quote.name}: {quote.reason}", ""]
                continue
            lines += _list_lines(quote.name, quote.step, quote.causes.items(), quote.residual)
            lines[-1:] = [*(f"  {line}" for line in quote.terms or ()), ""]
        return escape_lines("\n".join(lines).rstrip("\n"))


def _list_lines(name: str, total: int, causes: Iterable[tuple[str, int]], residual: int) -> list[str]:
    """A statement from a total to what ran, and an empty line."""
    added = [*causes, (RESIDUAL, residual)]
    rows = [(name, number(total)), *((f"  {cause}", format_signed(amount)) for cause, amount in added)]
    rows.append(("what ran", number(total + sum(amount for _, amount in added))))
    width = max(len(amount) for _, amount in rows)
    return [*(f"{title:<36} {amount:>{width}}" for title, amount in rows), ""]


def explain_beside(
    base: Collected, answer: Answer, recorded: Any, functions: Sequence[Callable[..., Any]], per: str
) -> tuple[Quote, ...]:
    """What functions of one's own count of the model of a step, ``recorded``, beside what ran in it, as ``reconcile.llm``
    explains them. Raises UsageError for a model that is none of transformers, or that read no sequences of tokens, and
    NotInResult where what ran is not known."""
    if "llm" not in products():
        raise UsageError("this installation has nothing that explains a function: name formulas alone.")
    from ..llm.comparison import sum_recomputed
    from ..llm.functions.explain import explain_functions
    from ..llm.request import read_functions

    module = recorded.module
    config = getattr(module, "config", None)
    if not hasattr(config, "to_diff_dict") or not isinstance(config, getattr(type(module), "config_class", None) or ()):
        raise UsageError(NO_SIZES % type(module).__name__)
    (own,), (ran,) = (trace for trace in base.traces if isinstance(trace, Trace)), answer.traces
    if MATMUL.name not in ran.totals:
        raise NotInResult(f"what ran in the step is not known: {ran.reason}")
    if len(recorded.shape) != 2:
        raise UsageError(f"a function is explained of sequences of tokens, and the model read {recorded.shape}.")
    batch, seq = recorded.shape
    pass_ = "training" if recorded.training else "forward"
    asked = read_functions(config, functions, batch=batch, seq=seq, pass_=pass_, per=per, others=())
    assert asked is not None
    again = sum_recomputed(ran, MATMUL)
    return tuple(
        replace(quote, causes={**quote.causes, Cause.RECOMPUTED.value: again}) if again and quote.step else quote
        for quote in explain_functions(asked, own)
    )


def statements(base: Collected, recorded_model: Callable[[], Any], names: Sequence[str]) -> Collected:
    """The step's trace with a ledger of each formula; ``recorded_model`` makes the model that a formula reads. Raises UsageError
    as ``Step.against`` does."""
    known = {name: c for name, c in known_counters().items() if c.quoted}
    for name in names:
        if name not in known:
            raise unknown("formula", name, known)
    ledgers: list[Ledger | Missing] = []
    for name in names:
        counter = known[name]
        try:
            model = recorded_model()
            ledgers.append(import_module(f"{counter.module}.capture").capture(name, model))
        except FactoryError as error:
            raise UsageError(str(error)) from error
        except BeyondCounter as error:
            framework = counter.framework
            ledgers.append(Missing(name, framework, State.NOT_COMPARABLE, str(error), counter.unit, model.device))
    return Collected(base.meta, base.traces, tuple(ledgers))
