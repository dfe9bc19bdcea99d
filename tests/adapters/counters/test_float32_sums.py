"""thop's sums in float32, until April 2020: numpy's float32 is the oracle of what its buffers hold."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconcile.adapters.counters.float32_sums import float32_sum
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, MATMUL, Convention
from reconcile.core.records import MAC, Entry, Ledger, Op, Sighting, Tensor
from reconcile.engine.ledger import Reconciled
from reconcile.products.recompute import recompute
from tests.adapters.counters import records_by_hand as by_hand

OLD = {"torch": "1.10.1", "thop": "0.0.31.post2001170342"}
SINCE = {**OLD, "thop": "0.0.31.post2005241907"}
KIND = "torch.nn.modules.conv.Conv1d"
SUM = "(sum)"


def as_float32(*addends: int) -> int:
    total = numpy.zeros(1, numpy.float32)
    for addend in addends:
        total += numpy.array([addend], numpy.float32)
    return int(total[0])


@given(
    st.lists(
        st.tuples(st.one_of(st.integers(1, 40), st.integers(1 << 22, 1 << 26)), st.integers(1, 300)),
        min_size=1,
        max_size=5,
    )
)
@example([(1 << 24, 1), (1, 50), (3, 200)])
@example([((1 << 25) - 6, 1), (2, 3), (3, 300)])
@example([((1 << 24) + 1, 3), (16_777_213, 2)])
@example([(603_134_721, 1), (11, 1_000)])
def test_sums_taken_at_once_are_those_taken_one_by_one(addends: list[tuple[int, int]]) -> None:
    assert float32_sum(addends) == as_float32(*(amount for amount, times in addends for _ in range(times)))


def test_a_count_of_calls_that_no_model_has_takes_no_time() -> None:
    assert float32_sum([(1, 10**40)]) == 1 << 24  # the next sum is rounded to this one
    assert float32_sum([(10**39, 2), (1, 10**40)]) == 2 * 10**39 + 10**40  # more than float32 holds


def convolution(layer: str, positions: int, calls: int = 1) -> tuple[Op, Op]:
    """A convolution of 3 taps from one channel to one, as thop and as PyTorch see it."""
    x, y = Tensor((1, 1, positions + 2), "float32"), Tensor((1, 1, positions), "float32")
    weight = Tensor((1, 1, 3), "float32")
    attrs = {"weight": [1, 1, 3], "bias": None, "in_channels": 1, "groups": 1, "bases": [], "packed_batch": 0}
    plain = {"stride": [1], "padding": [0], "dilation": [1], "transposed": False, "output_padding": [0], "groups": 1}
    seen = Op(f"{layer}#", KIND, layer, (x,), (y,), attrs, calls)
    return seen, Op(f"op:{layer}", "aten.convolution", layer, (x, weight), (y,), {**plain, "bias": None}, calls)


def ledger(values: dict[str, int], seen: list[Op], total: int, versions: dict[str, str]) -> Ledger:
    entries = [Entry(layer, layer, KIND, value, 1) for layer, value in values.items()]
    if total != sum(values.values()):
        entries.append(Entry(SUM, "", "thop.float32", total - sum(values.values()), 1))
    root = Op("#0", "models.Net", "", seen[0].inputs, seen[0].outputs, {"bases": []})
    sightings = [Sighting(root, "(root)"), *(Sighting(op, op.layer) for op in seen)]
    return Ledger("thop", "torch", MAC, "cpu", versions, total, tuple(entries), tuple(sightings), {}, ())


A, B, CALLS, C = 5_592_407, 3_333_337, 3, 2
"""Positions: 3 A is 2^24 + 5, 3 B is added by each of 3 calls, and 3 C is what the sum cannot hold."""
SEEN, RAN = zip(convolution("a", A), convolution("b", B, CALLS), convolution("c", C), strict=True)
EXACT = 3 * A + 3 * B * CALLS + 3 * C
VALUES = {"a": as_float32(3 * A), "b": as_float32(*[3 * B] * CALLS), "c": 3 * C}
TOTAL = as_float32(*VALUES.values())


def reconciled(
    total: int = TOTAL, versions: dict[str, str] = OLD, *, convention: Convention = MATMUL, **values: int
) -> Reconciled:
    made = ledger({**VALUES, **values}, list(SEEN), total, versions)
    return by_hand.reconciled(made, *RAN, convention=convention)


@pytest.mark.parametrize("convention", [MATMUL, ALL])
def test_what_float32_rounds_has_its_own_cause(convention: Convention) -> None:
    result = reconciled(convention=convention)
    assert result.residuals == ()
    rounded = {line.layer: line.amount for line in result.adjustments if line.cause is Cause.FLOAT32_ROUNDING}
    assert rounded == {
        "a": 2 * (3 * A - VALUES["a"]),
        "b": 2 * (3 * B * CALLS - VALUES["b"]),
        "(model)": 2 * (sum(VALUES.values()) - TOTAL),
    }
    assert min(map(abs, rounded.values())) > 0
    assert sum(rounded.values()) == 2 * (EXACT - TOTAL)
    assert result.ledger.state is State.EXPLAINED


def test_a_rounded_amount_can_be_recomputed() -> None:
    ops = {f"torch:{op.id}": op for op in RAN}
    for line in reconciled().adjustments:
        assert recompute(line, ops, {"thop": OLD}, MATMUL) == line.amount


def test_a_total_that_float32_does_not_give_is_unexplained() -> None:
    """The total enters nowhere: one unit of float32 more, and the residual is that, where the sum is."""
    (residual,) = reconciled(TOTAL + 4).residuals
    assert (residual.layer, residual.amount) == ("(model)", -8)
    (residual,) = reconciled(TOTAL + 2, a=VALUES["a"] + 2).residuals
    assert (residual.layer, residual.amount) == ("a", -4)


def test_later_releases_round_nothing() -> None:
    exact = {"a": 3 * A, "b": 3 * B * CALLS, "c": 3 * C}
    result = reconciled(EXACT, SINCE, **exact)
    assert (result.residuals, result.adjustments) == ((), ())
