"""One pair in several environments: every counter's total in each, and why neighbours differ, reconciled to residual 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..adapters import COUNTERS
from ..align.alignment import Alignment
from ..core.causes import State
from ..core.conventions import Convention
from ..core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, UsageError
from ..core.records import Layer, Ledger, Trace
from ..core.results import RunResult, Statement
from ..engine.reconcile import End, between_runs
from ..engine.settle import Collected, settle
from ..work import load, scoped
from ..work.formula_files import load_formulas
from . import cache as kept
from .environments import CURRENT, Environment, EnvironmentError_, ensure
from .in_environment import counters_of, lender, traceless, with_trace, within
from .request import RunRequest
from .runner import collect, conventions_of
from .supervisor import Event, abandon

WORKERS = 2
"""Environments that run at the same time: each has one or two processes of its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One environment: what ran there, reconciled, or why nothing did."""

    environment: Environment
    state: State
    reason: str
    result: RunResult | None
    borrowed: str = ""


@dataclass(frozen=True, slots=True)
class MatrixResult:
    """All cells in their order, and the statements between neighbours of the same family of counters."""

    model: str
    convention: Convention
    cells: tuple[Cell, ...]
    neighbours: tuple[Statement, ...]
    exit_code: int


def run_matrix(
    request: RunRequest,
    environments: Sequence[Environment],
    convention: Convention,
    progress: Callable[[str, Event], None] = lambda _name, _event: None,
    say: Callable[[str], None] = lambda _message: None,
) -> MatrixResult:
    """Run the pair of ``request`` in every environment, two at a time, and reconcile each and its neighbours.

    An environment that cannot be made, or an interpreter that is missing, fails its own cell. Raises UsageError for a
    pair or parameter that no environment could use, and for convention and formula files as the runner does.
    """
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        futures = [pool.submit(_collect, request, env, progress, say) for env in environments]
        try:
            found = [future.result() for future in futures]
        except BaseException:
            abandon(pool, futures)
            raise
    here = next((c for env, c in zip(environments, found, strict=True) if env.name == CURRENT), None)
    lender = here if isinstance(here, Collected) else _lender(request, found)
    conventions = conventions_of(request)
    load()
    with scoped():
        load_formulas(request.formulas, request.timeout)
        return _settled(environments, found, lender, convention, conventions)


def _lender(request: RunRequest, found: Sequence[Collected | str]) -> Collected | None:
    """The current environment's traces, where it is not in the matrix and others there are too old for a tracer."""
    lost = dict.fromkeys(framework for c in found if isinstance(c, Collected) for framework in traceless(c))
    return lender(request, list(lost)) if lost else None


def _settled(
    environments: Sequence[Environment],
    found: Sequence[Collected | str],
    lender: Collected | None,
    convention: Convention,
    conventions: Mapping[str, Convention],
) -> MatrixResult:
    cells, whole_cells = [], []
    for environment, collected in zip(environments, found, strict=True):
        if isinstance(collected, str):
            cells.append(Cell(environment, State.FAILED, collected, None))
            continue
        whole, borrowed = with_trace(collected, lender)
        result = settle(whole, convention, conventions)
        state = State.FAILED if result.exit_code == EXIT_FAILED else State.EXPLAINED
        state = State.UNEXPLAINED if result.exit_code == EXIT_UNEXPLAINED else state
        cells.append(Cell(environment, state, _reason(result), result, borrowed))
        whole_cells.append((environment, whole))
    if not whole_cells:
        raise UsageError(
            "no environment could be used: " + "; ".join(f"{c.environment.name}: {c.reason}" for c in cells)
        )
    neighbours = _neighbours(whole_cells, convention)
    model = next(c.result.model for c in cells if c.result is not None)
    return MatrixResult(model, convention, tuple(cells), neighbours, _exit_code(cells, neighbours))


def _collect(
    request: RunRequest, env: Environment, progress: Callable[[str, Event], None], say: Callable[[str], None]
) -> Collected | str:
    """What the workers of one environment found, or one sentence on why there is none."""
    counters = counters_of(env)
    path = kept.place(replace(request, counters=counters), env)
    held = kept.find(path)
    if held is not None:
        say(f"{env.name}: what it found with this very tool, model and packages is kept")
        return held
    try:
        python = ensure(env, say)
    except EnvironmentError_ as error:
        return str(error)
    mine = replace(within(request, env, python), counters=counters)
    try:
        found = collect(mine, lambda event: progress(env.name, event))
    except UsageError as error:  # a pair file this Python cannot read fails here, not everywhere
        return str(error)
    kept.keep(path, found)
    return found


def _reason(result: RunResult) -> str:
    lost = [f"{x.counter}: {x.reason}" for x in result.ledgers if x.reason]
    open_ = [f"{s.from_}: {s.reason}" for s in result.statements if s.state is State.UNEXPLAINED]
    return "; ".join((lost or open_)[:2])


def _neighbours(kept: Sequence[tuple[Environment, Collected]], convention: Convention) -> tuple[Statement, ...]:
    """Statements from each counter to the same family's next one, in the order of the environments."""
    chains: dict[str, list[End]] = {}
    align = Alignment([])
    for environment, collected in kept:
        align = Alignment(list(map(Layer.from_list, collected.meta["layers"])))
        traces = {t.framework: t for t in collected.traces if isinstance(t, Trace)}
        for ledger in collected.ledgers:
            if isinstance(ledger, Ledger) and ledger.framework in traces:
                end = End(f"{environment.name}: {ledger.counter}", ledger, traces[ledger.framework])
                chains.setdefault(COUNTERS[ledger.counter].family, []).append(end)
    return tuple(
        between_runs(a, b, align, convention) for chain in chains.values() for a, b in itertools.pairwise(chain)
    )


def _exit_code(cells: Sequence[Cell], neighbours: Sequence[Statement]) -> int:
    if any(s.state is State.UNEXPLAINED for s in neighbours) or any(c.state is State.UNEXPLAINED for c in cells):
        return EXIT_UNEXPLAINED
    return EXIT_FAILED if any(c.state is State.FAILED for c in cells) else EXIT_OK


def totals(result: MatrixResult) -> Mapping[tuple[str, str], int]:
    """Normalised totals by (environment, counter)."""
    return {
        (cell.environment.name, ledger.counter): ledger.normalised_total
        for cell in result.cells
        if cell.result is not None
        for ledger in cell.result.ledgers
        if ledger.normalised_total is not None
    }
