"""A training step made by hand: two layers, one of them with two groups that a counter counts twice, and a loss."""

from __future__ import annotations

from dataclasses import replace

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, Convention
from reconcile.core.records import FLOP, FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, WEIGHT_GRADIENT
from reconcile.core.results import LayerRow, TraceResult, TraceRow, Unknown
from reconcile.core.work import Work
from reconcile.engine.answer import Answer
from tests.report.parts import B, K, N, blank, evidence, ledger, line, statement, tensor, trace

FIRST, SECOND = B * K * N, B * N * N
"""Multiply-adds of either layer: (B, K) by (K, N), then (B, N) by (N, N)."""

WORK = {
    ("first", FORWARD): Work(mac=FIRST, accumulators=B * N, add=B * N),
    ("relu", FORWARD): Work(cmp=B * N),
    ("second", FORWARD): Work(mac=SECOND, accumulators=B * N),
    ("(loss)", LOSS): Work(add=B * N - 1, mul=3 * B * N, div=B * N + 1),
    ("second", INPUT_GRADIENT): Work(mac=SECOND, accumulators=B * N),
    ("second", WEIGHT_GRADIENT): Work(mac=SECOND, accumulators=N * N),
    ("relu", INPUT_GRADIENT): Work(cmp=B * N),
    ("first", WEIGHT_GRADIENT): Work(mac=FIRST, accumulators=K * N, add=(B - 1) * N),
    ("first", OPTIMIZER): Work(mul=K * N + N, add=K * N + N),
    ("second", OPTIMIZER): Work(mul=N * N, add=N * N),
}


def steps() -> TraceResult:
    rows = tuple(
        TraceRow(f"{phase}/{layer}", layer, layer, "op", (tensor(B, K),), (tensor(B, N),), 1, phase, work)
        for (layer, phase), work in WORK.items()
    )
    total = sum(WORK.values(), Work())
    return replace(
        trace("torch"),
        rows=rows,
        totals={c.name: c.flops(total) for c in BUILT_IN.values()},
        notes=("one training step",),
    )


def trained(convention: Convention = BUILT_IN["matmul"]) -> Answer:
    """PyTorch alone; flop_counter counts the first weight gradient twice, thop sees nothing."""
    ran = steps()
    total = 2 * (2 * FIRST + 3 * SECOND)
    proof = replace(evidence(Cause.FORMULA_DIFFERS, "first", "flop_counter"), ops=(f"{WEIGHT_GRADIENT}/first",))
    again = replace(line(Cause.FORMULA_DIFFERS, "first", "flop_counter", -2 * FIRST), evidence=(proof,))
    counted = {"first": 6 * FIRST, "second": 6 * SECOND}
    return Answer(
        model="steps",
        pass_="training",
        convention=convention,
        params={},
        environment={},
        description="",
        traces=(ran,),
        ledgers=(
            replace(blank("thop", State.NOT_COMPARABLE, "it sees the forward pass only"), framework="torch"),
            ledger("flop_counter", FLOP, counted),
        ),
        layers=(
            LayerRow(
                "first",
                {"torch": 4 * FIRST},
                {"flop_counter": counted["first"]},
                {"flop_counter": {Cause.FORMULA_DIFFERS: -2 * FIRST}},
                {},
            ),
            LayerRow("second", {"torch": 6 * SECOND}, {"flop_counter": counted["second"]}, {}, {}),
        ),
        statements=(statement("flop_counter", ran.name, sum(counted.values()), total, again),),
        exit_code=0,
    )


def with_a_hole() -> Answer:
    """The same, with an op in the second layer whose work is unknown."""
    result = trained()
    (ran,) = result.traces
    hole = Unknown("second", "aten.gru_backward", "7", "no work formula")
    reason = "the trace is incomplete: aten.gru_backward at layer second: no work formula"
    broken = replace(ran, complete=False, state=State.UNEXPLAINED, reason=reason, unknown=(hole,), totals={})
    return replace(
        result,
        traces=(broken,),
        ledgers=tuple(replace(x, state=State.NOT_COMPARABLE, reason=reason) for x in result.ledgers),
        layers=(result.layers[0], replace(result.layers[1], work={})),
        statements=(
            statement("flop_counter", ran.name, 1, None, state=State.NOT_COMPARABLE, reason=reason, residual=None),
        ),
        exit_code=1,
    )
