"""Ops that differ in their place alone are judged once: no rule and no reason of a counter reads where an op is."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.adapters.counters.bridge import Judged, OpCounter
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import RECOMPUTATION, Op, Trace
from reconcile.drift import baselines
from reconcile.engine.settle import settle
from reconcile.products.decode.sources import SHIPPED
from reconcile.work import load, registered_formulas, work_of

FILES = sorted(SHIPPED.glob("*/*.json"))
"""What real workers found."""


def elsewhere(op: Op) -> Op:
    """The same op at another place of the model."""
    return op._replace(id="elsewhere", layer="another.layer", phase=RECOMPUTATION, within=("call",))


def said(judged: Judged) -> tuple[Any, ...]:
    """A judgement by its values: a reason is an exception, which equals itself alone."""
    reason = judged.missed and (judged.missed.cause, judged.missed.reason)
    return judged.rule, judged.counted, reason, judged.work, judged.cause, judged.part.unknown


class Heard:
    """From now on, every op that a counter of ops judges is judged elsewhere, too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ops: list[Op] = []
        self.differ: list[Op] = []

        def judge_op(counter: OpCounter, op: Op) -> Judged:
            here = counter._judge(op)
            self.ops.append(op)
            if said(counter._judge(elsewhere(op))) != said(here):
                self.differ.append(op)
            return here

        monkeypatch.setattr(OpCounter, "judge_op", judge_op)


def test_no_rule_of_a_counter_of_ops_reads_where_an_op_is(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(monkeypatch)
    for file in FILES:
        settle(baselines.load(file).collected, Conventions(BUILT_IN["all"]))
    assert {"aten.gru", "aten.relu"} <= {op.op for op in heard.ops}
    assert heard.differ == []


def test_no_formula_of_ours_reads_where_an_op_is() -> None:
    load()
    traces = [t for file in FILES for t in baselines.load(file).collected.traces if isinstance(t, Trace)]
    ops = [op for trace in traces for op in trace.ops if op.op in registered_formulas()]
    assert {"aten.convolution", "aten.gru", "Conv2D"} <= {op.op for op in ops}
    assert [op for op in ops if work_of(elsewhere(op)) != work_of(op)] == []
