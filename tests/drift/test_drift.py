"""What counts as a move, at which layer, and for which cause; on takes made by hand and on the committed one."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.causes import Cause, State
from reconcile.core.records import Entry, Ledger, Op, Trace
from reconcile.drift.compare import compare
from reconcile.drift.report import details, verdict
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.work import Work
from tests.drift import takes
from tests.drift.takes import CONV, DENSE, GRU, NEW, OLD, take, trace, with_ledger


@functools.cache
def committed() -> Collected:
    return takes.committed()


def test_two_versions_of_a_counter() -> None:
    drift = compare(take(OLD), take(NEW))
    (counter,) = drift.counters
    moved = {c.layer: (c.before and c.before.amount, c.after and c.after.amount) for c in counter.changes}
    assert moved == {"dense": (2 * DENSE, DENSE), "gru": (None, GRU)}
    causes = {(c.layer, c.cause): (c.before, c.after) for c in counter.causes}
    products, beside = 2 * 97 * 3 * 96 * (4064 + 96), 2 * 97 * 13 * 96  # FLOPs: of MACs; of gates and biases
    assert causes == {
        ("dense", Cause.FORMULA_DIFFERS): (-2 * DENSE, 0),
        ("gru", Cause.OP_NOT_COUNTED): (products, 0),
        ("gru", Cause.OUTSIDE_CONVENTION): (0, -beside),
    }
    assert counter.open == ((), ())
    assert counter.residual == 0
    assert sum(line.amount for line in counter.lines) == 2 * (GRU - DENSE)
    assert [t for t in drift.traces if t.has_moved] == []
    text = "\n".join(details(drift))
    for words in (
        f"thop {OLD} -> {NEW}", f"{2 * DENSE:,} -> {DENSE:,}", f"no entry -> {GRU:,}",
        "thop has no hook for torch.nn.modules.rnn.GRU", "O (in_features + in_features - 1 + bias) (",
        "unexplained 0",
    ):  # fmt: skip
        assert words in text
    assert "conv" not in text.replace("convention", "")
    assert verdict(drift, "x.json") == "toy: not as in x.json: thop moved, at dense, gru"


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_number_that_no_rule_gives_is_unexplained(side: str) -> None:
    takes_ = (take(gru=GRU + 1), take()) if side == "before" else (take(), take(gru=GRU + 1))
    (counter,) = compare(*takes_).counters
    (change,) = counter.changes
    assert (change.layer, counter.causes) == ("gru", ())
    assert abs(counter.residual or 0) == 2
    (residual,) = counter.open[side == "after"]
    assert residual.layer == "gru"
    assert f"expected {GRU:,} MAC, reported {GRU + 1:,} MAC" in residual.reason


def test_work_that_runs_otherwise_is_named_op_by_op() -> None:
    longer = tuple(
        s._replace(op=s.op._replace(inputs=takes.tensors((1, 98, 4064)), outputs=takes.tensors((1, 98, 96))))
        if s.entry == "gru"
        else s
        for s in takes.SIGHTINGS
    )
    counted = takes.ledger(gru=GRU // 97 * 98)._replace(sightings=longer)
    drift = compare(take(), replace(take(), traces=(trace(steps=98),), ledgers=(counted,)))
    (change,) = drift.traces[0].changes
    assert (change.layer, change.op) == ("gru", "aten.gru")
    assert change.after is not None
    assert isinstance(change.after.amount, Work)
    assert change.after.amount.mac == 98 * 3 * 96 * (4064 + 96)
    assert {c.cause for c in drift.counters[0].causes} == {
        Cause.OUTSIDE_CONVENTION
    }  # gates and biases of one step more
    assert drift.counters[0].residual == 0
    assert "saw (1, 97, 4064)" in "\n".join(details(drift))


def test_a_trace_of_another_run_is_no_difference_of_formulas() -> None:
    """One step more in the trace, and not under thop."""
    (counter,) = compare(take(), replace(take(), traces=(trace(steps=98),))).counters
    assert Cause.FORMULA_DIFFERS not in {c.cause for c in counter.causes}
    assert abs(counter.residual or 0) == abs(2 * 98 * 3 * 96 * (4064 + 96) - 2 * GRU)


def test_the_same_work_by_another_op_is_a_note() -> None:
    def gated(kind: str, rows: int = 97) -> Collected:
        gate = Op("op9", kind, "gru", takes.tensors((rows, 96), (rows, 96)), takes.tensors((rows, 96)), {"alpha": 1})
        return replace(take(), traces=(trace()._replace(ops=(*trace().ops, gate)),))

    drift = compare(gated("aten.add"), gated("aten.sub"))
    assert not drift.has_moved
    assert "; gru does the same work by other ops: aten.add before, aten.sub now" in verdict(drift, "x")
    assert compare(gated("aten.add"), gated("aten.sub", rows=98)).has_moved


def test_an_op_whose_work_nobody_knows_is_no_rename() -> None:
    ops = tuple(op._replace(op="aten.gru.input") if op.op == "aten.gru" else op for op in trace().ops)
    renamed = tuple(op._replace(id=f"x{op.id}") for op in trace().ops)
    assert not compare(take(), replace(take(), traces=(trace()._replace(ops=renamed),))).has_moved
    assert compare(
        take(), replace(take(), traces=(trace()._replace(ops=ops),))
    ).has_moved  # no formula: unknown is no 0


def test_a_framework_that_is_gone_is_no_zero() -> None:
    gone = Missing("thop", "torch", State.FAILED, "it crashed", "MAC", "cpu")
    drift = compare(take(), replace(take(), ledgers=(gone,)))
    assert (drift.has_moved, drift.failed) == (False, (gone,))
    assert "thop (torch) is missing" in verdict(drift, "x")
    no_trace = Missing("trace", "torch", State.SKIPPED, "not installed")
    assert compare(take(), replace(take(), traces=(no_trace,))).failed == (no_trace,)


def test_without_traces_moves_are_shown_and_no_cause_is_guessed() -> None:
    old, new = replace(take(), traces=()), replace(take(gru=1), traces=())
    (counter,) = compare(old, new).counters
    assert [c.layer for c in counter.changes] == ["gru"]
    assert (counter.causes, counter.residual) == ((), None)
    assert "no trace beside the older ledger" in "\n".join(details(compare(old, new)))


def test_a_total_that_no_entry_accounts_for_moves() -> None:
    drift = compare(take(), with_ledger(take(), takes.ledger()._replace(total=5)))
    assert drift.has_moved
    assert drift.counters[0].residual == 2 * (5 - CONV - GRU - DENSE)
    assert "at no layer of its own" in verdict(drift, "x")


Seen = tuple[str, int, int]
"""A dense layer: name, value, rows of the input."""


def dense(*named: Seen) -> Collected:
    """A take whose thop saw these dense layers, in this order."""
    like = next(s for s in takes.SIGHTINGS if s.entry == "dense")
    entries = tuple(Entry(name, "dense", like.op.op, value, 1) for name, value, _ in named)
    sightings = tuple(
        like._replace(entry=name, op=like.op._replace(id=name, inputs=takes.tensors((1, rows, 96))))
        for name, _, rows in named
    )
    total = sum(value for _, value, _ in named)
    return with_ledger(take(), takes.ledger()._replace(entries=entries, sightings=sightings, total=total))


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ([("a", 5, 1), ("b", 7, 1)], [("a", 7, 1), ("b", 5, 1)], [("a", 5, "a", 7), ("b", 7, "b", 5)]),
        ([("a", 5, 1), ("b", 7, 1)], [("x", 7, 1), ("y", 5, 1)], []),  # new names in another order
        # Where shapes moved too, names decide before the order; where names moved as well, the order does.
        ([("a", 5, 1), ("b", 7, 2)], [("b", 70, 20), ("a", 50, 10)], [("b", 7, "b", 70), ("a", 5, "a", 50)]),
        ([("a", 5, 1), ("b", 7, 2)], [("x", 50, 10), ("y", 70, 20)], [("a", 5, "x", 50), ("b", 7, "y", 70)]),
    ],
)
def test_names_shapes_and_order_say_which_entry_moved(old: list[Seen], new: list[Seen], moved: list[object]) -> None:
    (counter,) = compare(dense(*old), dense(*new)).counters
    held = [(c.before, c.after) for c in counter.changes]
    assert [(a.id, a.amount, b.id, b.amount) for a, b in held if a and b] == moved


def _renamed(found: Collected, name: dict[str, str]) -> Collected:
    """Every node of every record under another name."""

    def ledger(x: Ledger) -> Ledger:
        entries = tuple(e._replace(id=name.get(e.id, e.id)) for e in x.entries)
        sightings = tuple(
            s._replace(
                entry=name.get(s.entry, s.entry),
                op=s.op._replace(id=name.get(s.op.id, s.op.id), within=tuple(name.get(w, w) for w in s.op.within)),
            )
            for s in x.sightings
        )
        return x._replace(entries=entries, sightings=sightings)

    def trace(x: Trace) -> Trace:
        return x._replace(
            ops=tuple(
                o._replace(id=name.get(o.id, o.id), within=tuple(name.get(w, w) for w in o.within)) for o in x.ops
            )
        )

    return replace(found, traces=tuple(map(trace, found.traces)), ledgers=tuple(map(ledger, found.ledgers)))


def _names(found: Collected) -> list[str]:
    names = [e.id for x in found.ledgers for e in x.entries]
    names += [s.op.id for x in found.ledgers for s in x.sightings]
    return sorted(
        {*names, *(s.entry for x in found.ledgers for s in x.sightings), *(o.id for o in found.traces[0].ops)}
    )


@pytest.mark.parametrize("whose", ["toy", "committed"])
def test_new_names_never_drift(whose: str) -> None:
    found = take() if whose == "toy" else committed()
    names = _names(found)

    @settings(max_examples=30 if whose == "toy" else 3, deadline=None)
    @given(st.randoms(use_true_random=False), st.booleans())
    def check(random, among_themselves):  # type: ignore[no-untyped-def]
        others = list(names) if among_themselves else [f"node_{i}" for i in range(len(names))]
        random.shuffle(others)
        drift = compare(found, _renamed(found, dict(zip(names, others, strict=True))))
        assert not drift.has_moved, "\n".join(details(drift, verbose=True))
        assert "unchanged" in verdict(drift, "x")

    check()


@pytest.mark.parametrize("whose", ["toy", "committed"])
def test_any_single_change_is_found_at_its_layer(whose: str) -> None:
    found = take() if whose == "toy" else committed()
    align = found.declared_layers

    @settings(max_examples=40 if whose == "toy" else 4, deadline=None)
    @given(st.data(), st.integers(-(2**60), 2**60).filter(bool))
    def check(data, n):  # type: ignore[no-untyped-def]
        ledger = data.draw(st.sampled_from(found.ledgers))
        entry = data.draw(st.sampled_from(ledger.entries))
        entries = tuple(e._replace(value=e.value + n) if e is entry else e for e in ledger.entries)
        new = with_ledger(found, ledger._replace(entries=entries, total=ledger.total + n))
        for drift, before in ((compare(found, new), False), (compare(new, found), True)):
            (moved,) = [c for c in drift.counters if c.has_moved]
            (change,) = moved.changes
            assert moved.counter == ledger.counter
            assert (change.layer, change.op) == (align.layer(ledger.framework, entry.layer), entry.op)
            (held,) = [h for h in (change.before if before else change.after,) if h is not None]
            assert (held.id, held.amount) == (entry.id, entry.value + n)
            assert [t for t in drift.traces if t.has_moved] == []
            assert verdict(drift, "x").endswith(f"{ledger.counter} moved, at {change.layer}")

    check()


def _with_layers(found: Collected, names: dict[str, str]) -> Collected:
    """The take with other names of layers, and rows for none of them."""

    def rename(one: Any) -> Any:
        return one._replace(layer=names[one.layer])

    def trace(one: Any) -> Any:
        return one._replace(ops=tuple(map(rename, one.ops)), layers=tuple(names[layer] for layer in one.layers))

    def ledger(one: Any) -> Any:
        met = tuple(s._replace(op=rename(s.op)) for s in one.sightings)
        return one._replace(entries=tuple(map(rename, one.entries)), sightings=met)

    meta = {**found.meta, "layers": []}
    return replace(found, meta=meta, traces=tuple(map(trace, found.traces)), ledgers=tuple(map(ledger, found.ledgers)))


@pytest.mark.parametrize(
    "later", [("add_2", "add_3", "dense_9"), ("add_1", "add_2", "dense_1"), ("add_9", "add_10", "x.dense_3")]
)
def test_the_second_model_of_a_process_is_as_the_first(later: tuple[str, str, str]) -> None:
    """Keras counts on where a process makes the model again: the same layers have other numbers, and nothing moved."""
    first = ("add", "add_1", later[2].rpartition("_")[0])
    places = ("conv", "gru", "dense")
    old, new = (_with_layers(take(), dict(zip(places, names, strict=True))) for names in (first, later))
    assert not compare(old, new).has_moved
    assert not compare(new, old).has_moved


def test_layers_of_other_names_or_in_other_order_are_no_renumbering() -> None:
    places = ("conv", "gru", "dense")
    names = [("a_1", "a_2", "b"), ("a_2", "a_1", "b"), ("c_1", "c_2", "b"), ("a_1", "a_2", "b_c")]
    old, *others = (_with_layers(take(), dict(zip(places, some, strict=True))) for some in names)
    assert [compare(old, other).has_moved for other in others] == [True, True, True]
