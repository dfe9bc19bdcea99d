"""Matrices made by hand from the samples of one run: every state of a cell, neighbours that are equal, differ, break."""

from __future__ import annotations

from dataclasses import replace

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN
from reconcile.core.results import Residual, Statement
from reconcile.engine.answer import Answer
from reconcile.launch.environments.definitions import Environment
from reconcile.matrix.run import EnvironmentResult, MatrixResult
from tests.report import samples

OLD, NEW, GONE = (
    Environment("old-1.0", "The first", "3.6", ("tf", "torch"), ("thing==1.0",)),
    Environment("current", "The running one", "current", ("tf", "torch"), ()),
    Environment("gone", "No machine has its Python", "3.5", ("tf",), ("thing==0.1",)),
)
WHY = "there is no Python 3.5 under /opt/secret/pyenv; install it (`pyenv install 3.5`) or put python3.5 on PATH"
LENT = "borrows the current environment's trace: ImportError: no tracer in /opt/secret/torch.py"


def cell(environment: Environment, result: Answer, **more: object) -> EnvironmentResult:
    made = EnvironmentResult(environment, State.EXPLAINED, "", result)
    return replace(made, **more)  # type: ignore[arg-type]


def frozen_between(first: int, second: int, *rest: Residual) -> Statement:
    """tf.profiler@frozen of OLD (``first`` at the loop) to that of NEW: the loop went from once to every step."""
    lines = (
        samples.line(Cause.LOOP_COUNTED_ONCE, "loop", samples.FROZEN, second - first - sum(r.amount for r in rest)),
    )
    return Statement(
        f"{OLD.name}: {samples.FROZEN}",
        f"{NEW.name}: {samples.FROZEN}",
        State.UNEXPLAINED if rest else State.EXPLAINED,
        "; ".join(r.reason for r in rest),
        first,
        second,
        lines,
        sum(r.amount for r in rest),
        rest,
    )


def equal() -> Statement:
    total = samples.full().statement("thop", samples.TORCH).from_total
    return samples.statement(f"{OLD.name}: thop", f"{NEW.name}: thop", total, total)


FIRST = samples.MM_DENSE + samples.MM_STEP
SECOND = samples.MM_DENSE + samples.T * samples.MM_STEP


def clean() -> MatrixResult:
    """Two environments, everything explained, one trace borrowed."""
    cells = (cell(OLD, samples.clean(), borrowed=LENT), cell(NEW, samples.clean()))
    return MatrixResult("toy", BUILT_IN["matmul"], cells, (frozen_between(FIRST, SECOND), equal()), 0)


def failed() -> MatrixResult:
    """As clean, one environment that cannot be made, and a counter of another that was killed."""
    cells = (
        EnvironmentResult(GONE, State.FAILED, WHY, None),
        cell(OLD, samples.full(), state=State.FAILED),
        clean().cells[1],
    )
    return replace(clean(), cells=cells, exit_code=3)


def unexplained() -> MatrixResult:
    """A rule that broke in one environment, and neighbours with a residual."""
    rest = Residual("loop", 7, "the rule does not hold here")
    cells = (cell(OLD, samples.unexplained(), state=State.UNEXPLAINED), clean().cells[1])
    return replace(clean(), cells=cells, neighbours=(frozen_between(FIRST, SECOND, rest), equal()), exit_code=1)


def alone() -> MatrixResult:
    """One environment in which no counter of the pair runs: nothing to add up."""
    return MatrixResult("toy", BUILT_IN["matmul"], (cell(NEW, samples.empty()),), (), 0)


def incomplete() -> MatrixResult:
    """A trace with an op of unknown work: nothing of PyTorch can be compared."""
    cells = (cell(OLD, samples.incomplete(), state=State.UNEXPLAINED), clean().cells[1])
    return replace(clean(), cells=cells, exit_code=1)


def unseeing() -> MatrixResult:
    """A counter that cannot count the model in one environment, where others can: it leaves nothing open."""
    run, reason = samples.clean(), "it cannot count a ScriptModule"
    nothing = {"state": State.NOT_COMPARABLE, "reason": reason, "from_total": None, "residual": None, "adjustments": ()}
    result = replace(
        run,
        ledgers=tuple(
            samples.blank("thop", State.NOT_COMPARABLE, reason) if x.counter == "thop" else x for x in run.ledgers
        ),
        layers=tuple(
            replace(
                x,
                counters={c: n for c, n in x.counters.items() if c != "thop"},
                causes={c: n for c, n in x.causes.items() if c != "thop"},
            )
            for x in run.layers
        ),
        statements=tuple(
            replace(s, **nothing) if s.from_ == "thop" else s  # type: ignore[arg-type]
            for s in run.statements
            if s.to != "thop"
        ),
    )
    return replace(clean(), cells=(cell(OLD, result), clean().cells[1]), neighbours=(frozen_between(FIRST, SECOND),))


HAND = (clean, failed, unexplained, incomplete, alone, unseeing)
