"""The log beside real layers: closed forms, what has no line by name, and lies about either side."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries import PRODUCTS
from reconcile.adapters.counters.tf_libraries.bridge import NO_LINE_WRITTEN, NO_NODE_RAN, bridge
from reconcile.adapters.counters.tf_libraries.logged_products import products_of
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.core.records import Ledger, Op, Trace
from reconcile.work import known_part

from .layers import MACS

pytestmark = pytest.mark.frameworks


def gaps(ledger: Ledger, trace: Trace) -> list[str]:
    """Why something cannot be booked, and the entries that the rules do not add up to."""
    items = bridge(view(ledger), trace).items
    expected = Counter[str]()
    for item in items:
        expected[item.entry] += item.counted.mac * item.seen
    others = [f"{e.id} is {e.value}, not {expected[e.id]}" for e in ledger.entries if e.value != expected[e.id]]
    return [item.gap for item in items if item.gap] + others


def unwitnessed(ledger: Ledger, trace: Trace) -> list[tuple[str, int, str]]:
    """The op, its multiply-adds and the reason of what has no line of its own."""
    items = bridge(view(ledger), trace).items
    return sorted((i.op, i.ran.mac * i.times, i.formula) for i in items if i.cause is not None and i.ran.mac)


def by_layer(ledger: Ledger) -> dict[str, int]:
    """The amounts of the outermost layers."""
    found = Counter[str]()
    for entry in ledger.entries:
        found[entry.layer.partition(".")[0]] += entry.value
    return dict(found)


def test_the_log_has_the_products_of_each_layer(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("network")
    assert by_layer(ledger) == MACS
    assert ledger.total == sum(MACS.values())
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])


def test_lines_say_their_routine_sizes_and_calls(heard: Callable[..., Any]) -> None:
    ledger, _ = heard("network")
    lines = [(s.op, product) for s in ledger.sightings if PRODUCTS in s.op.attrs for product in products_of(s.op)]
    (convolved,) = (p.routine for op, p in lines if op.layer == "steps")
    assert convolved.startswith("convolution:forward")
    assert {p.routine for op, p in lines if op.layer == "transposed"} == {"convolution:backward_data"}
    steps = [(op.calls, p.routine, p.sizes["k"]) for op, p in lines if op.layer.startswith("lstm")]
    assert sorted(steps) == [(13, "gemm_api", 7), (13, "gemm_api", 20)]


@pytest.mark.slow
def test_a_training_step_has_the_products_of_its_gradients(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("network", "sgd")
    assert gaps(ledger, trace) == []
    assert {op for op, _, _ in unwitnessed(ledger, trace)} <= {
        "Conv2DBackpropInput",
        "Conv2DBackpropFilter",
    }  # XLA's, of groups
    phases = Counter[str]()
    for op in (s.op for s in ledger.sightings if s.op.layer == "head"):
        phases[op.phase] += op.calls * sum(p.macs for p in products_of(op))
    assert {phase: count for phase, count in phases.items() if count} == dict.fromkeys(
        ("forward", "weight-gradient", "input-gradient"), MACS["head"]
    )


@pytest.mark.slow
def test_what_has_no_line_is_named(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("twins")
    assert gaps(ledger, trace) == []
    assert ledger.total == 6 * 8 * 6  # the second product is the first one's result
    gone, silent = NO_NODE_RAN.format(op="MatMul"), NO_LINE_WRITTEN.format(op="MatMul")
    assert unwitnessed(ledger, trace) == sorted(
        [("MatMul", 6 * 8 * 6, gone), ("MatMul", 6 * 8 * 3, silent), ("MatMul", 6 * 8 * 5, silent)]
    )


def products(ledger: Ledger) -> list[int]:
    """Where sightings have lines: the first of each op and routine."""
    kinds: dict[tuple[str, str], int] = {}
    for at, op in enumerate(s.op for s in ledger.sightings):
        if PRODUCTS in op.attrs:
            kinds.setdefault((op.op, op.attrs[PRODUCTS][0][0]), at)
    return [*kinds.values()]


def with_op(ledger: Ledger, at: int, op: Op) -> Ledger:
    """The ledger with another op there."""
    seen = ledger.sightings
    return ledger._replace(sightings=(*seen[:at], seen[at]._replace(op=op), *seen[at + 1 :]))


def test_a_lie_about_one_size_is_a_residual(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("network")
    for at in products(ledger):
        op = ledger.sightings[at].op
        routine, sizes, *rest = op.attrs[PRODUCTS][0]
        for name in sizes:
            lie = [[routine, dict(sizes, **{name: sizes[name] + 1}), *rest], *op.attrs[PRODUCTS][1:]]
            told = with_op(ledger, at, op._replace(attrs=dict(op.attrs, **{PRODUCTS: lie})))
            assert gaps(told, trace), (op.op, op.layer, name)


def test_a_line_too_many_or_too_few_is_a_residual(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("network")
    for at in products(ledger):
        op = ledger.sightings[at].op
        lines = op.attrs[PRODUCTS]
        for told in ([*lines, lines[0]], lines[1:]):
            assert gaps(with_op(ledger, at, op._replace(attrs=dict(op.attrs, **{PRODUCTS: told}))), trace), op.layer


def test_an_op_too_many_or_too_few_is_a_residual(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("network")
    work = {op.op: at for at, op in enumerate(trace.ops) if known_part(op).work.mac}
    assert len(work) > 3
    for at in work.values():
        op = trace.ops[at]
        without = (*trace.ops[:at], *trace.ops[at + 1 :])
        longer = op._replace(calls=op.calls + 1)
        for ops in (without, (*trace.ops, op), (*without, longer)):
            assert gaps(ledger, trace._replace(ops=ops)), op.id


def test_a_node_that_no_op_is_stays_in_the_ledger(heard: Callable[..., Any]) -> None:
    ledger, trace = heard("network")
    stray = ledger.entries[0]._replace(id="head|_MklMatMul (x)", op="_MklMatMul (x)", value=7)
    assert gaps(ledger._replace(entries=(*ledger.entries, stray)), trace) == ["head|_MklMatMul (x) is 7, not 0"]


def test_a_process_with_no_log_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    from reconcile.adapters.counters.tf_libraries import capture

    assert os.environ.get("ONEDNN_VERBOSE") is None
    with pytest.raises(BeyondCounter, match="a process of its own"):
        capture.capture("tf_libraries", None)
    for name, value in capture.COUNTERS[0].variables:
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(capture, "_collect_lines", lambda run: [])
    with pytest.raises(BeyondCounter, match="writes nothing of a product here"):
        capture.capture("tf_libraries", None)
