"""``flops.formula`` of the pytest fixture: holds a function that returns the FLOPs of a step to what runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.number_format import format_signed, multiple, number
from .functions.cells import Cell, Verdict, fill_cell, judge
from .request import name_model, read_functions


def hold_formula(
    folder: Path,
    function: Callable[..., Any] | str,
    config: Any,
    /,
    *,
    seq: int | None = None,
    batch: int | None = None,
    pass_: str = "training",
    per: str = "step",
    tolerance: float = 0,
) -> Cell:
    """Assert that a function returns the FLOPs that run in a step of a configuration: all of them, none instead of others.

    ``function`` takes (config, batch, seq), or says by the names of its parameters what it takes, and returns FLOPs of a step, or
    of a token with ``per="token"``. ``config`` is a config.json, relative to the test's folder, what stands in one, or a
    configuration of transformers. All amounts of its causes and its residual may be ``tolerance`` of what ran.

    Returns what ran and the function beside it. Fails the test with the causes.
    """
    model = folder / config if isinstance(config, (str, Path)) else config
    asked = read_functions(model, [function], batch=batch, seq=seq, pass_=pass_, per=per, others=())
    assert asked is not None
    cell = fill_cell(name_model(model), asked)
    if not cell.quotes:
        raise AssertionError(f"what runs of {cell.configuration} is not known: {cell.reason}")
    (quote,) = cell.quotes
    if quote.step is None or cell.ran is None:
        raise AssertionError(f"{quote.name} has no number for {cell.configuration}: {quote.reason}")
    off = sum(map(abs, quote.causes.values())) + abs(quote.residual or 0)
    if judge(quote) is Verdict.RIGHT or (tolerance and off <= tolerance * cell.ran):
        return cell
    lines = [
        f"{quote.name} counts {number(quote.step)} FLOPs of {cell.step} of {cell.configuration}, "
        f"{multiple(quote.step, cell.ran)} times the {number(cell.ran)} that ran",
        *(f"  {cause}: {format_signed(amount)}" for cause, amount in quote.causes.items()),
        *([f"  residual: {format_signed(quote.residual)}"] if quote.residual else []),
        *(f"  {line}" for line in quote.terms or ()),
    ]
    raise AssertionError("\n".join(lines))
