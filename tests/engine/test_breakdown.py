"""Breakdowns add up: the parts of a block, the causes of a layer, the components of the traces."""

from __future__ import annotations

from dataclasses import replace

from reconcile.core.causes import Cause
from reconcile.core.work import Work
from reconcile.engine.breakdown import RESIDUAL, differing_components, known_work, to_the_work
from tests.report import samples

DEAD = Cause.DEAD_OP


def test_a_layers_causes_and_residual_lead_to_the_work() -> None:
    for row in samples.unexplained().layers:
        for counter, value in row.counters.items():
            framework = "tf" if counter == samples.FROZEN else "torch"
            assert value + sum(to_the_work(row, counter).values()) == row.work[framework]


def test_the_residual_comes_last_and_amounts_of_0_are_left_out() -> None:
    _, loop = samples.unexplained().layers
    loop = replace(loop, causes={"thop": {DEAD: 0, Cause.OUTSIDE_CONVENTION: -7}}, residuals={"thop": 3, "fvcore": 0})
    assert list(to_the_work(loop, "thop").items()) == [("outside-convention", -7), (RESIDUAL, 3)]
    assert to_the_work(loop, "fvcore") == {}


def test_components_that_differ_are_listed_by_layer_and_trace() -> None:
    first, second = samples.clean().traces
    assert differing_components([first, first]) == []
    row = second.rows[0]
    more = replace(second, rows=(replace(row, work=row.work + Work(add=5)), *second.rows[1:]))
    adds = sum(r.work.add for r in second.rows if r.layer == row.layer)
    assert differing_components([second, more]) == [(row.layer, "add", [adds, adds + 5])]


def test_the_known_work_of_a_whole_trace_is_its_total() -> None:
    result = samples.clean()
    for trace in result.traces:
        assert known_work(trace, result.convention) == trace.totals[result.convention.name]
    first, *others = result.traces[0].rows
    part = replace(result.traces[0], rows=tuple(others))
    assert known_work(part, result.convention) == samples.WORK - result.convention.flops(first.work)
