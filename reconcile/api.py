"""The Python interface: reconcile the counters of models that are there already, in the caller's process.

>>> import torch, reconcile
>>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
>>> found = reconcile.run(torch=net, inputs=torch.ones(1, 3, 32, 32))
>>> print(found)
Reconciled: 3 counters, 1 exact, 2 off and explained to the last unit.
>>> found.table.loc["0", ["work (torch)", "thop", "fvcore", "flop_counter"]].tolist()
[388800, 388800, 388800, 388800]
>>> print(found.statement[["line", "layer", "FLOP"]].to_string(index=False))
              line layer   FLOP
              thop       446400
outside-convention     1 -57600
          residual            0
       trace@torch       388800
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .results import RunResult, Statement

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Run:
    """What a run found: ``result`` is the whole record, the rest are views of it."""

    result: RunResult

    @property
    def exit_code(self) -> int:
        """0 reconciled, 1 unexplained or incomplete, 3 a counter failed."""
        return self.result.exit_code

    @property
    def table(self) -> pandas.DataFrame:
        """A row per layer: the work that ran per framework and each counter's value, normalised, in FLOPs.

        A cell is missing where a number is not known.
        """
        frameworks = [t.framework for t in self.result.traces]
        counters = [x.counter for x in self.result.ledgers]
        rows = {
            row.layer: [*(row.work.get(f) for f in frameworks), *(row.counters.get(c) for c in counters)]
            for row in self.result.layers
        }
        columns = [*(f"work ({f})" for f in frameworks), *counters]
        table: pandas.DataFrame = _pandas().DataFrame.from_dict(rows, orient="index", columns=columns, dtype=object)
        table.index.name = "layer"
        return table

    @property
    def statement(self) -> pandas.DataFrame:
        """The statement that the reports show first; ``between`` has the others."""
        from .report.view import default_statement

        statement = default_statement(self.result)
        if statement is None:
            raise LookupError("there is no statement: no counter ran.")
        return _frame(statement)

    def between(self, from_: str, to: str) -> pandas.DataFrame:
        """The statement from one counter, or ``trace@tf`` or ``trace@torch``, to another. Raises LookupError."""
        from .report.join import statement_between

        statement = statement_between(self.result, from_, to)
        if statement is None:
            there = [*(x.counter for x in self.result.ledgers), *(t.name for t in self.result.traces)]
            raise LookupError(f"there is no statement from {from_} to {to}; there are {', '.join(there)}.")
        return _frame(statement)

    def __str__(self) -> str:
        from .report.view import summary

        return summary(self.result)


def run(
    *,
    torch: Any = None,
    tf: Any = None,
    inputs: Any = None,
    convention: str = "matmul",
    convention_files: Sequence[Path] = (),
    counters: Sequence[str] = (),
    formulas: Sequence[Path] = (),
    device: str = "cpu",
) -> Run:
    """Reconcile the counters of a PyTorch model, of a TensorFlow model, or of both, in this process.

    ``torch`` and ``tf`` are models, or functions of no arguments that return a model or ``(model, inputs)``. ``inputs`` is
    what a model is called with: a tensor, a tuple of positional ones, a dict of named ones, with whatever stands inside
    them; or shapes as the command line takes them, such as ``"1,3,224,224"``. The models stay as they are.

    Raises UsageError, with one sentence, for what cannot be used.
    """
    from .conventions import choose
    from .errors import UsageError
    from .live import collect_live
    from .runner import RunRequest, conventions_of, load_formulas, settle
    from .work import load, scoped

    models = {name: model for name, model in (("tf", tf), ("torch", torch)) if model is not None}
    if not models:
        raise UsageError("give a model: torch=..., tf=... or both.")
    conventions = conventions_of(RunRequest("", {}, convention_files=tuple(convention_files)))
    chosen = choose(convention, conventions)
    load()
    with scoped():
        load_formulas(tuple(formulas))
        return Run(settle(collect_live(models, inputs, counters, device), chosen, conventions))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("frames need pandas: pip install 'flop-reconcile[pandas]'") from error
    return pandas


def _frame(statement: Statement) -> pandas.DataFrame:
    """The lines of a statement; what stands above the last line adds up to it. Amounts are exact integers."""
    lines: list[tuple[str, str, str, str, int | None]] = [(statement.from_, "", "", "", statement.from_total)]
    lines += [(a.cause.value, a.layer, a.op, a.counter, a.amount) for a in statement.adjustments]
    lines += [("residual", r.layer, "", "", r.amount) for r in statement.residuals]
    if not statement.residuals:
        lines.append(("residual", "", "", "", statement.residual))
    lines.append((statement.to, "", "", "", statement.to_total))
    frame: pandas.DataFrame = _pandas().DataFrame(
        lines, columns=["line", "layer", "op", "counter", "FLOP"], dtype=object
    )
    return frame
