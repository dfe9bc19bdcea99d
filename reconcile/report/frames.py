"""Results of a run as pandas DataFrames, for the Python interface (api/results.py).

Amounts are Python integers in columns of objects, exact at any size; None means unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.causes import ORDER
from ..core.errors import PackageMissing
from ..core.number_format import format_signed
from ..core.records import BACKWARD, PHASES
from ..core.results import LayerRow, Statement
from ..engine.answer import Answer
from ..engine.breakdown import RESIDUAL, to_the_work

if TYPE_CHECKING:
    import pandas


def table(result: Answer) -> pandas.DataFrame:
    """A row per layer: work per framework, then each counter's value, normalised."""
    frameworks = [t.framework for t in result.traces]
    counters = [x.counter for x in result.ledgers]
    rows = [
        [row.layer, *(row.work.get(f) for f in frameworks), *(row.counters.get(c) for c in counters)]
        for row in result.layers
    ]
    return make_frame(rows, ["layer", *(f"work ({f})" for f in frameworks), *counters], index=True)


def layers(result: Answer) -> pandas.DataFrame:
    """A row per layer and counter: its FLOPs, the work that ran, their difference, and the causes of that in words."""
    homes = {x.counter: x.framework for x in result.ledgers}
    rows = [
        [row.layer, counter, value, *_apart(row, counter, homes[counter])]
        for row in result.layers
        for counter, value in row.counters.items()
    ]
    return make_frame(rows, ["layer", "counter", "FLOP", "work", "to the work", "cause"])


def _apart(row: LayerRow, counter: str, framework: str) -> Iterator[Any]:
    work = row.work.get(framework)
    amounts = to_the_work(row, counter)
    yield work
    yield None if work is None else sum(amounts.values())
    yield "" if work is None else ", ".join(f"{cause} {format_signed(amount)}" for cause, amount in amounts.items())


def phases(result: Answer) -> pandas.DataFrame:
    """A row per framework and layer for traces with more phases than the forward one, and a row for the whole (layer '').

    ``backward`` is the sum of all gradients, and also holds those of which it cannot be told what they are for.
    """
    tables = [t for t in (result.phase_table(trace) for trace in result.traces) if t is not None]
    present = [phase for phase in PHASES if phase != BACKWARD and any(phase in t.phases for t in tables)]
    rows = [
        [
            t.framework,
            row.layer,
            *(row.flops.get(phase) for phase in present),
            row.backward if row.known else None,
            row.ratio,
        ]
        for t in tables
        for row in (*t.rows, t.total)
    ]
    return make_frame(rows, ["framework", "layer", *present, "backward", "ratio"])


def causes(result: Answer) -> pandas.DataFrame:
    """A row per cause in booking order, and the residual; a column per counter that can be compared."""
    by_counter = {c.ledger.counter: dict(c.causes) for c in result.verdict.counters if c.off is not None}
    present = [cause.value for cause in ORDER if any(cause.value in amounts for amounts in by_counter.values())]
    rows = [[cause, *(amounts.get(cause, 0) for amounts in by_counter.values())] for cause in [*present, RESIDUAL]]
    return make_frame(rows, ["cause", *by_counter], index=True)


def lines(statement: Statement) -> pandas.DataFrame:
    """The lines of a statement; the last line is the sum of those above it."""
    rows: list[list[Any]] = [[statement.from_, "", "", "", statement.from_total]]
    rows += [[a.cause.value, a.layer, a.op, a.counter, a.amount] for a in statement.adjustments]
    rows += [["residual", r.layer, "", "", r.amount] for r in statement.residuals]
    if not statement.residuals:
        rows.append(["residual", "", "", "", statement.residual])
    rows.append([statement.to, "", "", "", statement.to_total])
    return make_frame(rows, ["line", "layer", "op", "counter", "FLOP"])


def make_frame(rows: Iterable[list[Any]], columns: list[str], index: bool = False) -> pandas.DataFrame:
    """The rows as a frame; with ``index``, the first column is the index."""
    try:
        import pandas
    except ImportError as error:
        raise PackageMissing("frames need pandas: pip install 'flop-reconcile[pandas]'") from error
    frame: pandas.DataFrame = pandas.DataFrame(list(rows), columns=columns, dtype=object)
    if index:
        frame = frame.set_index(columns[0])
    return frame
