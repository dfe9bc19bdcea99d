"""A change of the model's own work is told once: before, after, per cent, the total, and what changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.records import Ledger, Op, Tensor, Trace
from reconcile.drift import work_changes
from reconcile.drift.changes import Drift
from reconcile.drift.compare import compare
from reconcile.drift.report import describe_totals, details, group_changes, verdict
from reconcile.engine.settle import Collected
from reconcile.products.ci.github import rows
from tests.drift.takes import DENSE, NEW, OLD, take

SIDE, IN, OUT = 12, 3, 8


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, "float32")


def conv(kernel: int, count: int = OUT) -> Op:
    side = SIDE - kernel + 1
    weights = tensor(count, IN, kernel, kernel)
    attrs = {"transposed": False, "groups": 1}
    ins = (tensor(1, IN, SIDE, SIDE), weights)
    return Op("op0", "aten.convolution", "conv", ins, (tensor(1, count, side, side),), attrs, 1)


def flops(kernel: int, count: int = OUT) -> int:
    return 2 * (SIDE - kernel + 1) ** 2 * kernel**2 * IN * count


def of(op: Op) -> Collected:
    base = take()
    (old,) = (trace for trace in base.traces if isinstance(trace, Trace))
    return replace(base, traces=(old._replace(ops=(op,)),), ledgers=())


def moved(kernel: int = 5, count: int = OUT) -> Drift:
    return compare(of(conv(3)), of(conv(kernel, count)))


def test_before_after_per_cent_total_and_the_kernel() -> None:
    drift = moved()
    (trace,) = drift.traces
    assert trace.totals == (flops(3), flops(5))
    assert trace.layers == (("conv", flops(3), flops(5)),)
    tenths = round(1000 * (flops(5) - flops(3)) / flops(3))
    share = f"+{tenths // 10}.{tenths % 10} %"
    layer, total = work_changes.layer_rows(trace)
    assert layer == ("conv", f"{flops(3):,}", f"{flops(5):,}", share, "kernel 3x3 to 5x5")
    assert total == ("total", f"{flops(3):,}", f"{flops(5):,}", share, "")
    assert verdict(drift, "x.json").endswith(f"kFLOPs, {share}: conv, kernel 3x3 to 5x5")


def test_layers_that_come_and_go_are_named_with_their_amount() -> None:
    """A second block comes and the head goes: the verdict names both with what they add, and the totals alone say how much."""
    layers = {"blocks.0": 3, "blocks.1": 3, "head": 5}

    def ops(*names: str) -> Collected:
        held = of(conv(3))
        (trace,) = (trace for trace in held.traces if isinstance(trace, Trace))
        return replace(
            held, traces=(trace._replace(ops=tuple(conv(layers[n])._replace(layer=n, id=n) for n in names)),)
        )

    drift = compare(ops("blocks.0", "head"), ops("blocks.0", "blocks.1"))
    assert verdict(drift, "x").endswith(f": gone torch:head (-{flops(5):,}); new torch:blocks.1 (+{flops(3):,})")
    lines, far = describe_totals(drift, "x", 1)
    assert far
    assert [f"{flops(3) + flops(5):,} -> {2 * flops(3):,} FLOPs" in line for line in lines] == [False, True]


def test_the_framework_that_moved_is_named_where_two_ran() -> None:
    one, other = of(conv(3)), of(conv(5))
    (still,) = (trace._replace(framework="tf") for trace in one.traces if isinstance(trace, Trace))
    both = compare(replace(one, traces=(*one.traces, still)), replace(other, traces=(*other.traces, still)))
    assert [title in verdict(both, "x") for title in ("PyTorch: ", "TensorFlow: ")] == [True, False]
    assert "PyTorch" not in verdict(compare(one, other), "x")


def test_other_channels_are_no_kernel() -> None:
    (trace,) = moved(3, 2 * OUT).traces
    assert work_changes.layer_rows(trace)[0][3:] == ("+100.0 %", f"({OUT}, {IN}, 3, 3) to ({2 * OUT}, {IN}, 3, 3)")


def test_a_kernel_with_its_channels_last() -> None:
    assert work_changes._kernel("(3, 3, 8, 16)", "(5, 5, 8, 16)", "Conv2D") == "3x3 to 5x5"
    assert work_changes._kernel("(3, 3, 8, 16)", "(3, 3, 8, 32)", "Conv2D") == ""


def test_a_larger_picture_is_no_kernel() -> None:
    op = conv(3)
    larger = op._replace(inputs=(tensor(1, IN, 14, 14), op.inputs[1]), outputs=(tensor(1, OUT, 12, 12),))
    (trace,) = compare(of(op), of(larger)).traces
    assert work_changes.layer_rows(trace)[0][4] == f"(1, {IN}, 12, 12) to (1, {IN}, 14, 14)"


def test_work_that_is_not_known_is_told_op_by_op() -> None:
    unknown = conv(5)._replace(op="aten.never_heard_of")
    drift = compare(of(conv(3)), of(unknown))
    assert [trace.layers for trace in drift.traces] == [()]
    assert work_changes.traces_in_flops(drift) == []
    assert verdict(drift, "x.json").endswith("trace@torch moved, at conv (aten.convolution, aten.never_heard_of)")
    assert describe_totals(drift, "x.json", 50)[1]  # unknown is within no tolerance
    assert len(group_changes(drift.traces[0].changes)) == 2  # one op is gone, the other is new


@pytest.mark.parametrize("own", [0, 7])
def test_a_counter_that_counts_the_same_change_is_named_once(own: int) -> None:
    """Twice as many rows go through the dense layer. With a number of its own, the counter is told by itself."""
    base = take()
    (old,) = (x for x in base.ledgers if isinstance(x, Ledger))
    (trace,) = (t for t in base.traces if isinstance(t, Trace))
    *others, dense = trace.ops
    more = tensor(2 * 97, 96), tensor(2 * 97, 256)
    traced = trace._replace(
        ops=(*others, dense._replace(inputs=(dense.inputs[0], more[0], dense.inputs[2]), outputs=more[1:]))
    )
    *rest, seen = old.sightings
    wide = seen.op._replace(inputs=(tensor(2, 97, 96),), outputs=(tensor(2, 97, 256),))
    entries = tuple(e._replace(value=2 * DENSE + own) if e.id == "dense" else e for e in old.entries)
    new = old._replace(total=old.total + DENSE + own, entries=entries, sightings=(*rest, seen._replace(op=wide)))
    drift = compare(base, replace(base, traces=(traced,), ledgers=(new,)))
    text = "\n".join(details(drift))
    assert f"dense  {2 * DENSE:,} -> {4 * DENSE:,}, +100.0 %: (97, 96) to (194, 96)" in text
    assert (work_changes.following_counters(drift) == ["thop"]) is (own == 0), text
    assert ("thop: the same change, and no other" in text) is (own == 0)
    assert (f"unexplained +{2 * own}" in text) is (own != 0)  # thop's unit is two FLOPs


def test_totals_that_look_alike_are_whole_numbers() -> None:
    (before, after) = (flops(3, count) for count in (10_000, 10_001))
    assert (
        verdict(compare(of(conv(3, 10_000)), of(conv(3, 10_001))), "x.json")
        .partition(": ")[2]
        .count(f"{before:,} to {after:,} FLOPs")
        == 1
    )


def test_a_small_change_shows_two_digits() -> None:
    (total,) = work_changes.layer_rows(moved(3, OUT).traces[0])
    assert total[3] == "as before"
    one = compare(of(conv(3, 2000)), of(conv(3, 2001)))
    assert f"+{100 / 2000:.2g} %" in "\n".join(describe_totals(one, "x", 0.06)[0])
    assert not describe_totals(one, "x", 0.06)[1]


def test_counters_that_moved_alike_share_what_is_said() -> None:
    drift = compare(take(OLD), take(NEW))
    (thop,) = drift.counters
    two = replace(drift, counters=(thop, replace(thop, counter="other")))
    (head,) = [line for line in details(two) if "thop" in line and line.partition(": ")[0] == "thop, other"]
    assert details(two) == [
        head if line == head.replace("thop, other: ", "thop: ") else line for line in details(drift)
    ]
    assert [row[0] for row in rows(two)] == ["thop, other" for _ in rows(drift)]
