"""Results for the page, without any framework: a real network from its saved baseline, and a large one made by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import FLOP, MAC
from reconcile.core.results import Adjustment, LayerRow, Match
from reconcile.core.work import Work
from reconcile.drift import baselines
from reconcile.engine.answer import Answer
from reconcile.engine.settle import settle_each
from reconcile.model_zoo.loading import load_pair, pair_path
from reconcile.model_zoo.pair import Params
from reconcile.work import load
from reconcile.worker.introspect import documentation
from tests.report import samples

REPORTS = Path(__file__).parents[2] / "reports"


@cache
def gru_demo() -> Answer:
    """The run that ``reports/gru_demo.*`` shows, with the other conventions, from the records saved beside it."""
    load()
    found = baselines.load(REPORTS / "baselines/gru_demo/current.json").collected
    result = settle_each(found, Conventions(BUILT_IN["matmul"]))
    pair = load_pair(pair_path("gru_demo"))
    (given,) = pair.inputs(Params(pair.params))
    told = {
        "description": documentation(pair.module),
        "notes": pair.notes,
        "inputs": dict.fromkeys(("tf", "torch"), f"{given.dtype} {given.shape}"),
    }
    return replace(result, **told, others=tuple(replace(other, **told) for other in result.others))


COMMAND = "reconcile run --model gru_demo"
PER_LAYER = 4
MISSED = 7
"""fvcore leaves out every so-manieth layer."""


@cache
def large(ops: int, mark: str = ".") -> Answer:
    """Two models of ``ops`` matrix products each, four to a layer. tf.profiler counts a bias with each, fvcore misses
    layers, thop is exact. ``mark`` stands between the levels of a layer's name."""
    layers = ops // PER_LAYER
    names = [mark.join((f"stage{i // 500}", f"block{i // 10 % 50}", f"dense{i % 10}")) for i in range(layers)]
    missed = set(names[::MISSED])
    product, bias = samples.MM_DENSE, samples.BIAS
    base = samples.clean()
    traces = tuple(
        replace(
            trace,
            rows=tuple(
                replace(
                    trace.rows[0],
                    id=f"functional_1/{name.replace(mark, '/')}/MatMul_{k}",
                    layer=name,
                    path=name,
                    work=replace(samples.DENSE, add=0),
                )
                for name in names
                for k in range(PER_LAYER)
            ),
            totals=dict.fromkeys(BUILT_IN, ops * product),
        )
        for trace in base.traces
    )

    def lines(cause: Cause, counter: str, each: int, where: list[str]) -> tuple[Adjustment, ...]:
        proof = samples.evidence(cause, "dense", counter)
        proofs = tuple(replace(proof, ops=(f"functional_1/x/MatMul_{k}",)) for k in range(PER_LAYER))
        return tuple(Adjustment(cause, name, "MatMul", counter, PER_LAYER * each, proofs) for name in where)

    frozen = lines(Cause.OUTSIDE_CONVENTION, samples.FROZEN, -bias, names)
    fvcore = lines(Cause.OP_NOT_COUNTED, "fvcore", product, [n for n in names if n in missed])
    work = PER_LAYER * product
    return replace(
        base,
        model=f"large_{ops}",
        traces=traces,
        ledgers=(
            samples.ledger(samples.FROZEN, FLOP, dict.fromkeys(names, PER_LAYER * (product + bias))),
            samples.ledger("thop", MAC, dict.fromkeys(names, work // 2)),
            samples.ledger("fvcore", MAC, {n: 0 if n in missed else work // 2 for n in names}),
        ),
        layers=tuple(LayerRow(n, {"tf": work, "torch": work}, {}, {}, {}) for n in names),
        statements=(
            samples.statement(samples.FROZEN, samples.TF, ops * (product + bias), ops * product, *frozen),
            samples.statement("thop", samples.TORCH, ops * product, ops * product),
            samples.statement("fvcore", samples.TORCH, (layers - len(missed)) * work, ops * product, *fvcore),
            samples.statement(samples.TF, samples.TORCH, ops * product, ops * product),
        ),
    )


def aligned(layers: int) -> Answer:
    """Two models of ``layers`` layers that are not declared to belong together; one layer has no partner."""
    result = large(PER_LAYER * layers)
    rows = [
        Match(row.layer, {"tf": (row.layer,), "torch": (f"torch.{row.layer}",)}, "name+work") for row in result.layers
    ]
    lone = Match("tf:extra", {"tf": ("extra",), "torch": ()}, "", "no layer of torch is like it")
    return replace(result, alignment=(*rows, lone))


def steps(blocks: int) -> Answer:
    """A training step of ``blocks`` blocks of two layers; the last block has other numbers."""
    result = samples.trained()
    (ran,) = result.traces
    rows = tuple(
        replace(
            row,
            id=f"{row.id}.{block}",
            layer=f"blocks.{block}.{row.layer}",
            work=row.work + Work(mac=block // (blocks - 1), accumulators=0),
        )
        for block in range(blocks)
        for row in ran.rows
        if row.layer != "(loss)"
    )
    loss = tuple(row for row in ran.rows if row.layer == "(loss)")
    return replace(result, traces=(replace(ran, rows=(*rows, *loss)),))
