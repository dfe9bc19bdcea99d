"""Runs a model of this process at the points of a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reconcile.launch.request import run_request
from reconcile.products.formula.fit import Take
from reconcile.products.formula.formula import Formula, formula
from reconcile.products.formula.run_points import in_this_process
from reconcile.products.formula.variables import Template, read_variables
from reconcile.work import load


def taking(make: Callable[[], Any], counters: Sequence[str], pass_: str = "forward") -> Take:
    """Runs the model that a function makes, with these counters."""
    load()
    return in_this_process({"torch": make}, run_request(counters=tuple(counters), pass_=pass_), lambda _event: None)


def found(
    make: Callable[[], Any],
    given: str,
    *ranges: str,
    counters: Sequence[str] = ("flop_counter",),
    pass_: str = "forward",
) -> Formula:
    """The formula of a model with this input."""
    return formula(Template(read_variables(ranges), (given,), {}), taking(make, counters, pass_))
