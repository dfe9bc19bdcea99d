"""Runs a model of this process at the points of a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import Point
from reconcile.launch.user_models import text_of
from reconcile.products.formula.fit import Take
from reconcile.products.formula.formula import Formula, formula
from reconcile.products.formula.variables import Template, read_variables
from reconcile.work import load


def taking(make: Callable[[], Any], counters: Sequence[str], training: str = "") -> Take:
    """Runs the model that a function makes, with these counters."""
    load()

    def take(points: Sequence[Point], counting: bool) -> list[tuple[Collected, Answer]]:
        return [run(point, counting) for point in points]

    def run(point: Point, counting: bool) -> tuple[Collected, Answer]:
        inputs = [text_of(given) for given in point.inputs]
        collected = collect_live({"torch": make}, inputs, counters, "cpu", lambda _event: None, training)
        collected = collected if counting else replace(collected, ledgers=())
        return collected, settle(collected, Conventions(BUILT_IN["matmul"]))

    return take


def found(
    make: Callable[[], Any], given: str, *ranges: str, counters: Sequence[str] = ("flop_counter",), training: str = ""
) -> Formula:
    """The formula of a model with this input."""
    return formula(Template(read_variables(ranges), (given,), {}), taking(make, counters, training))
