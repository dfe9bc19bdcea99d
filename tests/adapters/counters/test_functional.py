"""Counters of functions: hand-made calls beside a trace, without a framework; and the packages themselves, where they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.core.causes import Cause
from reconcile.core.conventions import ALL, MATMUL, Convention
from reconcile.core.records import FLOP, LIVE, MAC, Entry, Ledger, Op, Sighting
from reconcile.engine.ledger import Reconciled
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from tests.adapters.counters import functional_cases
from tests.adapters.counters import records_by_hand as by_hand
from tests.adapters.counters.records_by_hand import tensors
from tests.programs import output_of

VERSIONS = {"torch": "2.13.0", "calflops": "0.3.2", "deepspeed": "0.19.8"}
F = "torch.nn.functional."
B, IN, OUT = 2, 5, 3
PRODUCTS = B * IN * OUT
OTHER = "the model ran other ops here under "


def product(calls: int = 1, rows: int = B) -> Op:
    return Op("mm", "aten.mm", "m", tensors((rows, IN), (IN, OUT)), tensors((rows, OUT)), {}, calls)


def times(calls: int = 1) -> Op:
    return Op("mul", "aten.mul", "m", tensors((B, OUT), (B, OUT)), tensors((B, OUT)), {}, calls)


def linear(calls: int = 1, number: str = "flops") -> Op:
    attrs = {"bias": None, "number": number}
    return Op("linear", F + "linear", "m", tensors((B, IN), (OUT, IN)), tensors((B, OUT)), attrs, calls)


def mul(calls: int = 1, within: tuple[str, ...] = ()) -> Op:
    inputs = tensors((B, OUT), (B, OUT))
    return Op("torch.mul", "torch.mul", "m", inputs, inputs[:1], {"number": "flops"}, calls, within=within)


def feeds(op: Op, entry: str = "m", role: str = LIVE) -> Sighting:
    return Sighting(op, entry, role)


def met(op: Op, *within: str) -> Sighting:
    return Sighting(op._replace(within=within), "")


def reconciled(
    values: dict[str, int],
    sightings: list[Sighting],
    ran: tuple[Op, ...],
    counter: str = "calflops",
    convention: Convention = ALL,
) -> Reconciled:
    unit = MAC if counter.endswith("@macs") else FLOP
    entries = tuple(Entry(name, "m", "Net", value, 1) for name, value in values.items())
    ledger = Ledger(counter, "torch", unit, "cpu", VERSIONS, sum(values.values()), entries, tuple(sightings), {}, ())
    return by_hand.reconciled(ledger, *ran, convention=convention)


def test_a_function_and_an_operator_of_one_shape_are_told_apart() -> None:
    """torch.mul once and * twice: the two others are not seen, and no formula differs."""
    sightings = [feeds(mul()), met(times(), "torch.mul"), met(times(2))]
    assert by_hand.causes(reconciled({"m": B * OUT}, sightings, (times(3),))) == {Cause.CALL_NOT_SEEN: 2 * B * OUT}


def test_a_call_around_another_counts_its_work_again() -> None:
    outer = mul()._replace(id="outer")
    sightings = [feeds(outer), feeds(mul(within=("outer",))), met(times(), "outer", "torch.mul")]
    assert by_hand.causes(reconciled({"m": 2 * B * OUT}, sightings, (times(),))) == {Cause.RECOUNTED: -B * OUT}


def test_whole_numbers_are_no_floating_point_work() -> None:
    whole = tensors((B, OUT), (B, OUT), dtype="int64")
    call = mul()._replace(inputs=whole, outputs=whole[:1])
    op = times()._replace(inputs=whole, outputs=whole[:1])
    result = reconciled({"m": B * OUT}, [feeds(call), met(op, "torch.mul")], (op,))
    assert by_hand.causes(result) == {Cause.INTEGER_OP: -B * OUT}


def test_other_ops_of_the_same_work_are_the_same() -> None:
    """The function ran a batched product under the counter, and single products in the trace."""
    batched = Op("bmm", "aten.bmm", "m", tensors((3, B, IN), (3, IN, OUT)), tensors((3, B, OUT)), {})
    sightings = [feeds(linear(3)), met(batched, "linear")]
    assert by_hand.causes(reconciled({"m": 6 * PRODUCTS}, sightings, (product(3),), convention=MATMUL)) == {}


@pytest.mark.parametrize(
    ("sightings", "ran", "value", "residual"),
    [
        # under the counter it ran twice: nothing is booked, not even what the trace has of it
        ([feeds(linear(2)), met(product(2), "linear")], (product(),), 2, -1),
        ([feeds(linear()), met(product(), "linear")], (), 1, -1),
        ([feeds(linear()), met(product(), "linear")], (product(rows=2 * B),), 1, 1),
        # the counter counted nothing of it, and did not meet as much as the trace has
        ([met(product())], (product(2),), 0, 2),
    ],
)
def test_other_work_than_in_the_trace_is_unexplained(
    sightings: list[Sighting], ran: tuple[Op, ...], value: int, residual: int
) -> None:
    result = reconciled({"m": value * 2 * PRODUCTS} if value else {}, sightings, ran, convention=MATMUL)
    assert result.adjustments == ()
    assert [(r.amount, OTHER in r.reason) for r in result.residuals] == [(residual * 2 * PRODUCTS, True)]


def test_what_is_added_to_an_entry_is_the_residual() -> None:
    sightings = [feeds(linear()), met(product(), "linear")]
    result = reconciled({"m": 2 * PRODUCTS + 7}, sightings, (product(),), convention=MATMUL)
    assert [(r.layer, r.amount) for r in result.residuals] == [("m", -7)]
    assert result.adjustments == ()


@pytest.fixture(scope="module", params=["calflops", "deepspeed"])
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def real(family: str) -> Any:
    """What the package says in its environment."""
    printed = output_of("-m", "tests.adapters.counters.functional_real", family, python=ensure(load()[family]))
    return json.loads(printed.splitlines()[-1])


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_cases_are_what_the_package_counts(family: str, real: Any) -> None:
    cases = getattr(functional_cases, family.upper())
    of_flops = [number for number, case in enumerate(cases) if case.op.attrs["number"] == "flops"]
    assert [number for _, number, _ in real["cases"]] == of_flops
    off = [(name, cases[number].total, value) for name, number, value in real["cases"] if value != cases[number].total]
    assert off == []


GRU = 2 * 5 * 2 * (3 * 4) * (3 + 4)
ATTENTION = 2 * 2 * 2 * 7 * 7 * 4
TRANSPOSED = 2 * 5 * 5 * 3 * 3 * 4 * 3


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_bugs_on_record_are_found(family: str, real: Any) -> None:
    """The total, and its causes under the convention that counts all elementwise work."""
    models, old = real["models"], family == "calflops"
    residuals = {name: rows[-1] for name, rows in models.items() if not isinstance(rows, str)}
    assert {name: row for name, row in residuals.items() if row != ["residual", 0]} == {}
    totals = {name: rows[0] for name, rows in models.items() if not isinstance(rows, str)}
    causes = {name: [cause for cause, _ in rows[1:-1]] for name, rows in models.items() if not isinstance(rows, str)}
    # recurrent layers have no MACs, in both; FLOPs are 7 per hidden element and step above the products
    assert (totals["gru " + family], totals[f"gru {family}@macs"]) == (GRU + 2 * 5 * 7 * 4, 0)
    assert causes[f"gru {family}@macs"] == ["op-not-counted"]
    # calflops: #26 and #48, attention and x @ w are nothing; DeepSpeed counts them since #4723
    assert totals["attention " + family] == (0 if old else ATTENTION)
    assert totals["product " + family] == (0 if old else 2 * 3 * 3 * 3)
    assert causes["product " + family] == (["call-not-seen"] if old else [])
    # groups divide a transposed convolution's products once more; corrected in DeepSpeed
    assert totals["transposed " + family] == (TRANSPOSED // 3 if old else TRANSPOSED)
    assert causes["transposed " + family] == (["formula-differs"] if old else [])
    # x + x is nothing in both (DeepSpeed#3087), and a dot product of 8 terms is 8 * 8
    assert (totals["sum " + family], causes["sum " + family]) == (0, ["call-not-seen"])
    assert (totals["vector " + family], causes["vector " + family]) == (2 * 8 * 8, ["formula-differs"])
    # a layer under two parents is added twice; DeepSpeed#7256 is closed
    assert totals["shared " + family] == 2 * 2 * 3 * 5 * (2 if old else 1)
    assert causes["shared " + family] == (["recounted"] if old else [])
    # padding="same" with an even kernel loses an output
    assert totals["even " + family] == 2 * 7 * 4


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_a_counter_that_stops_halfway_leaves_nothing_patched(family: str, real: Any) -> None:
    """A convolution without a batch fails in the counter's formula, which leaves torch patched."""
    assert "its own code stops on this model, which runs without it" in real["models"]["unbatched " + family]
    assert real["intact"]
